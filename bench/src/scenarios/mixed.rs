//! Eight reads and two writes in ten calls, beside each other.

use super::create::{caught_up, measured_task};
use crate::args::Args;
use crate::client::Request;
use crate::history::{BLOCK_TASKS, USERS, task_id};
use crate::load::{Call, Until, load};
use crate::meter::Meter;
use crate::nodes::Nodes;
use crate::place::Place;
use crate::report::{Figures, Report};
use serde_json::{Value, json};
use std::sync::Arc;

const CONNECTIONS: usize = 64;
/// Tasks that are there before.
const TASKS: u64 = 20 * BLOCK_TASKS;
/// Flows at the beginning of each block that are trees.
const TREES: u64 = 49;
/// Kinds of calls.
const READ: usize = 0;
const WRITE: usize = 1;

/// What one connection does: it reads more often than it writes, and not always the same.
fn calls(connection: usize) -> Arc<[Call]> {
    let flow = connection as u64 % TREES;
    let call = |kind: usize, method: &str, params: Value| Call {
        request: Request::call(method, &params),
        kind,
        follow: false,
    };
    let get = |k: u64| call(READ, "tasks.get", json!({"task_id": task_id(flow, k)}));
    let update = |name: &str| {
        let params = json!({"task_id": task_id(flow, 1), "updates": {"name": name}});
        call(WRITE, "tasks.update", params)
    };
    let user = format!("user-{}", flow % USERS);
    let ten = |name: &str| {
        vec![
            get(1),
            call(READ, "tasks.list", json!({"limit": 20})),
            get(2),
            call(WRITE, "tasks.create", measured_task()),
            get(3),
            get(4),
            call(READ, "tasks.list", json!({"limit": 20, "user_id": user})),
            get(5),
            update(name),
            call(READ, "tasks.tree", json!({"task_id": task_id(flow, 0)})),
        ]
    };
    [ten("one name"), ten("another name")].concat().into()
}

/// The scenario, on a place with some tasks.
pub(crate) async fn mixed(args: &Args, report: &mut Report) -> Result<(), String> {
    let place = Place::fresh(args, "mixed").await?;
    place.import(&args.program, |log| log.blocks(TASKS))?;
    let nodes = Nodes::start_on(args, place, &[]).await?;
    caught_up(&nodes).await?;
    let targets = nodes.targets();
    let round = |seconds| load(&targets, CONNECTIONS, Until::Seconds(seconds), calls);
    round(args.warm_up()).await?;
    let mut figures = Figures::default();
    for _ in 0..args.rounds() {
        caught_up(&nodes).await?;
        let meter = Meter::start(&nodes).await?;
        let load = round(args.seconds()).await?;
        let cost = meter.stop().await?;
        figures.add("rate", "calls/s", load.per_second());
        for (kind, name) in [(READ, "reads"), (WRITE, "writes")] {
            let p50 = load.percentile_ms(kind, 50.0);
            figures.add(&format!("{name}, p50"), "ms", p50);
            let p99 = load.percentile_ms(kind, 99.0);
            figures.add(&format!("{name}, p99"), "ms", p99);
        }
        if load.busy > 0 {
            figures.add("answers that asked to come back", "", load.busy as f64);
        }
        figures.cpu(&cost, "call", load.calls() as f64);
        figures.syncs(&cost, "write", cost.events);
    }
    report.figures(
        &format!("mixed, 80 % reads, {CONNECTIONS} connections"),
        figures,
    );
    nodes.stop().await
}

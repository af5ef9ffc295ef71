//! `tasks.get` and `tasks.tree`.

use super::create::{latency, measured_task};
use crate::args::Args;
use crate::client::{Client, Request};
use crate::history::task_id;
use crate::limit::door::{self, Like};
use crate::load::{Call, Until, load};
use crate::meter::Meter;
use crate::nodes::Nodes;
use crate::place::Place;
use crate::report::{Figures, Report};
use serde_json::json;
use std::sync::Arc;

const GET_CONNECTIONS: [usize; 2] = [1, 64];
/// Tasks that are read in turn.
const GET_TASKS: usize = 256;
/// Tasks of a tree, connections that read it, reads of a round.
const TREES: [(u64, usize, usize); 3] = [(1_000, 1, 50), (1_000, 16, 200), (100_000, 1, 2)];

/// `tasks.get` of tasks that were created a moment ago.
pub(crate) async fn get(args: &Args, report: &mut Report) -> Result<(), String> {
    let nodes = Nodes::start(args, "get").await?;
    let mut client = Client::connect(&nodes.first().address).await?;
    let mut calls = Vec::new();
    for _ in 0..GET_TASKS {
        let created = client.call("tasks.create", &measured_task()).await?;
        let get = json!({"task_id": created["id"]});
        calls.push(Call::plain(Request::call("tasks.get", &get)));
    }
    let calls: Arc<[Call]> = calls.into();
    for connections in GET_CONNECTIONS {
        let targets = nodes.targets();
        let round = |seconds| {
            load(&targets, connections, Until::Seconds(seconds), |_| {
                calls.clone()
            })
        };
        round(args.warm_up()).await?;
        let mut figures = Figures::default();
        for _ in 0..args.rounds() {
            let meter = Meter::start(&nodes).await?;
            let load = round(args.seconds()).await?;
            let cost = meter.stop().await?;
            figures.add("rate", "1/s", load.per_second());
            latency(&mut figures, &load);
            figures.cpu(&cost, "call", load.calls() as f64);
        }
        let limit = format!("{}: rate", door::name(Like::Get, connections));
        figures.limit("rate", limit, 1.0);
        report.figures(&format!("tasks.get, {connections} connections"), figures);
    }
    nodes.stop().await
}

/// `tasks.tree` of trees that nobody has touched since the server started.
pub(crate) async fn tree(args: &Args, report: &mut Report) -> Result<(), String> {
    let place = Place::fresh(args, "tree").await?;
    place.import(&args.program, |log| {
        for (tasks, ..) in TREES {
            log.tree(tasks)?;
        }
        Ok(())
    })?;
    let nodes = Nodes::start_on(args, place, &[]).await?;
    super::create::caught_up(&nodes).await?;
    for (flow, (tasks, connections, reads)) in (0..).zip(TREES) {
        let params = json!({"task_id": task_id(flow, 0)});
        let calls = Call::again(Request::call("tasks.tree", &params));
        let targets = nodes.targets();
        let round = |reads| {
            load(&targets, connections, Until::Calls(reads), |_| {
                calls.clone()
            })
        };
        round(connections).await?;
        let mut figures = Figures::default();
        for _ in 0..args.rounds() {
            let meter = Meter::start(&nodes).await?;
            let load = round(reads).await?;
            let cost = meter.stop().await?;
            let shown = load.calls() as f64 * tasks as f64;
            figures.add("tasks shown", "1/s", shown / load.seconds);
            latency(&mut figures, &load);
            figures.cpu(&cost, "task shown", shown);
            let bytes = load.bytes as f64 / load.calls() as f64;
            figures.add("answer", "kB", bytes / 1e3);
        }
        report.figures(
            &format!("tasks.tree, {tasks} tasks, {connections} connections"),
            figures,
        );
    }
    report.row(
        "tasks.tree: memory of the server, most",
        "MB",
        &[nodes.peak_memory_mb()?],
    );
    nodes.stop().await
}

//! `tasks.list` of stores of different sizes: pages and filters.

use super::create::latency;
use super::long_log::{self, LongLog};
use crate::args::Args;
use crate::client::{Client, Request};
use crate::load::{Call, Until, load};
use crate::meter::Meter;
use crate::nodes::Nodes;
use crate::report::{Figures, Report};
use serde_json::{Value, json};

/// Tasks of the small stores.
const SMALL: [u64; 2] = [1_000, 100_000];
/// Part of the time of a round that each query gets: there are many of them.
const SHARE: f64 = 0.25;
/// Connections that ask for the first page.
const CONNECTIONS: usize = 16;

/// The scenario.
pub(crate) async fn list(
    args: &Args,
    long_log: &mut LongLog,
    report: &mut Report,
) -> Result<(), String> {
    let large = long_log::tasks(args);
    for tasks in SMALL.into_iter().filter(|tasks| *tasks < large) {
        let (nodes, _) = long_log::filled(args, "list", tasks).await?;
        queries(args, &nodes, tasks, report).await?;
        nodes.stop().await?;
    }
    let nodes = long_log.serve(args, report).await?;
    queries(args, &nodes, large, report).await?;
    report.row(
        format!(
            "tasks.list, {}: memory of the server",
            long_log::name(large)
        ),
        "MB",
        &[nodes.memory_mb()?],
    );
    long_log.give_back(nodes.end().await?);
    Ok(())
}

async fn queries(
    args: &Args,
    nodes: &Nodes,
    tasks: u64,
    report: &mut Report,
) -> Result<(), String> {
    let mut client = Client::connect(&nodes.first().address).await?;
    let middle = json!({"offset": tasks / 2});
    let middle = client.call("tasks.list", &middle).await?;
    if middle["total"].as_u64() != Some(tasks) {
        return Err(format!("{tasks} tasks are stored, not {}", middle["total"]));
    }
    let cursor = &middle["next_cursor"];
    let deep = tasks / 10 * 9;
    let queries = [
        ("first page", 1, json!({})),
        ("first page", CONNECTIONS, json!({})),
        (
            "page behind a cursor in the middle",
            1,
            json!({"cursor": cursor}),
        ),
        ("page at nine tenths, by offset", 1, json!({"offset": deep})),
        ("oldest first", 1, json!({"order": "asc"})),
        ("roots", 1, json!({"root_only": true})),
        ("status completed", 1, json!({"status": "completed"})),
        ("one of 1,000 users", 1, json!({"user_id": "user-7"})),
        (
            "one of 1,000 users, status pending",
            1,
            json!({"user_id": "user-7", "status": "pending"}),
        ),
        ("one of 1,000 names", 1, json!({"name": "Task 42"})),
        ("priority 1", 1, json!({"priority": 1})),
        (
            "created before",
            1,
            json!({"created_before": "2026-01-01T00:00:00.500Z"}),
        ),
    ];
    for (what, connections, params) in queries {
        let mut name = format!("tasks.list, {}, {what}", long_log::name(tasks));
        if connections > 1 {
            name += &format!(", {connections} connections");
        }
        report.figures(&name, query(args, nodes, connections, &params).await?);
    }
    Ok(())
}

async fn query(
    args: &Args,
    nodes: &Nodes,
    connections: usize,
    params: &Value,
) -> Result<Figures, String> {
    let calls = Call::again(Request::call("tasks.list", params));
    let targets = nodes.targets();
    let round = |seconds| {
        load(&targets, connections, Until::Seconds(seconds), |_| {
            calls.clone()
        })
    };
    round(args.warm_up() * SHARE).await?;
    let mut figures = Figures::default();
    for _ in 0..args.rounds() {
        let meter = Meter::start(nodes).await?;
        let load = round(args.seconds() * SHARE).await?;
        let cost = meter.stop().await?;
        latency(&mut figures, &load);
        figures.add("rate", "1/s", load.per_second());
        figures.cpu(&cost, "call", load.calls() as f64);
    }
    Ok(figures)
}

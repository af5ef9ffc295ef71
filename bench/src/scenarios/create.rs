//! `tasks.create`: one task a call, a batch of a hundred calls, a tree in one call.

use crate::args::Args;
use crate::client::{Client, Request, call};
use crate::limit;
use crate::limit::door::Like;
use crate::load::{Call, Round, Until, load};
use crate::meter::Meter;
use crate::nodes::Nodes;
use crate::report::{Figures, Report};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections with one task a call.
const CONNECTIONS: [usize; 4] = [1, 16, 64, 256];
/// Calls of a batch.
const BATCH_CALLS: usize = 100;
const BATCH_CONNECTIONS: usize = 16;
/// Tasks of a tree.
const TREE_TASKS: usize = 1_000;
const TREE_CONNECTIONS: usize = 4;
/// Longest wait for read models that are behind after a round of load.
pub(crate) const CATCH_UP_PATIENCE: Duration = Duration::from_secs(1800);

/// The parameters of the task that is created again and again.
pub(crate) fn measured_task() -> Value {
    json!({"name": "Measured task", "user_id": "bench", "priority": 2,
        "inputs": {"url": "https://example.com", "timeout": 60},
        "schemas": {"method": "echo_executor"}, "dependencies": []})
}

/// Calls of `connections` connections that create `tasks` tasks each.
struct Shape {
    name: String,
    connections: usize,
    calls: Arc<[Call]>,
    tasks: usize,
    /// Rows that the committer can put into one transaction, when all connections wait.
    rows: usize,
}

fn shapes() -> Vec<Shape> {
    let single = Call::again(Request::call("tasks.create", &measured_task()));
    let mut shapes: Vec<Shape> = CONNECTIONS
        .iter()
        .map(|connections| Shape {
            name: format!("tasks.create, {connections} connections"),
            connections: *connections,
            calls: single.clone(),
            tasks: 1,
            rows: *connections,
        })
        .collect();
    let one = call("tasks.create", &measured_task());
    let batch = format!("[{}]", vec![one.as_str(); BATCH_CALLS].join(","));
    shapes.push(Shape {
        name: format!("tasks.create, batches of 100 calls, {BATCH_CONNECTIONS} connections"),
        connections: BATCH_CONNECTIONS,
        calls: Call::again(Request::post(&batch)),
        tasks: BATCH_CALLS,
        rows: BATCH_CONNECTIONS,
    });
    shapes.push(Shape {
        name: format!("tasks.create, trees of 1,000, {TREE_CONNECTIONS} connections"),
        connections: TREE_CONNECTIONS,
        calls: Call::again(Request::call("tasks.create", &tree(TREE_TASKS))),
        tasks: TREE_TASKS,
        rows: 1_000,
    });
    shapes
}

/// A group with tasks below it, in one call.
fn tree(tasks: usize) -> Value {
    let mut all = vec![json!({"id": "root", "name": "Measured tree"})];
    all.extend((1..tasks).map(|k| {
        let mut task = measured_task();
        task["id"] = json!(format!("t{k}"));
        task["parent_id"] = json!("root");
        task
    }));
    json!({ "tasks": all })
}

/// The scenario, on a fresh place.
pub(crate) async fn create(args: &Args, report: &mut Report) -> Result<(), String> {
    let nodes = Nodes::start(args, "create").await?;
    let (empty, mut created) = (nodes.place().sizes().await?, 0.0);
    for shape in shapes() {
        created += measure(args, &nodes, &shape, report).await?;
    }
    let full = nodes.place().sizes().await?;
    let name = |what: &str| format!("tasks.create: {what}");
    report.row(
        name("log bytes per task"),
        "B",
        &[(full.log - empty.log) / created],
    );
    report.row(
        name("read model bytes per task"),
        "B",
        &[(full.read_models - empty.read_models) / created],
    );
    report.row(
        name("memory of the server at the end"),
        "MB",
        &[nodes.memory_mb()?],
    );
    report.row(
        name("memory of the server, most"),
        "MB",
        &[nodes.peak_memory_mb()?],
    );
    nodes.stop().await
}

/// Gives how many tasks were created, warm-up included.
async fn measure(
    args: &Args,
    nodes: &Nodes,
    shape: &Shape,
    report: &mut Report,
) -> Result<f64, String> {
    let targets = nodes.targets();
    let round = |seconds| {
        load(&targets, shape.connections, Until::Seconds(seconds), |_| {
            shape.calls.clone()
        })
    };
    let mut created = (round(args.warm_up()).await?.calls() * shape.tasks) as f64;
    caught_up(nodes).await?;
    let mut figures = Figures::default();
    for _ in 0..args.rounds() {
        let began = Instant::now();
        let meter = Meter::start(nodes).await?;
        let load = round(args.seconds()).await?;
        let cost = meter.stop().await?;
        caught_up(nodes).await?;
        let took = began.elapsed().as_secs_f64();
        let tasks = (load.calls() * shape.tasks) as f64;
        if cost.events < tasks {
            return Err(format!(
                "{}: {tasks} tasks were answered, the log has {} events more",
                shape.name, cost.events
            ));
        }
        created += tasks;
        figures.add("rate", "tasks/s", tasks / load.seconds);
        figures.add(
            "rate until read models have caught up",
            "tasks/s",
            tasks / took,
        );
        latency(&mut figures, &load);
        figures.syncs(&cost, "task", tasks);
        figures.cpu(&cost, "task", tasks);
    }
    figures.limit("rate", limit::rate_name(args, shape.rows), 1.0);
    if shape.connections == 64 || shape.connections == 1 {
        let door = limit::door::name(Like::Create, shape.connections);
        let door = format!("{door}: rate");
        figures.limit("rate until read models have caught up", door, 1.0);
    }
    report.figures(&shape.name, figures);
    Ok(created)
}

/// Delays of a round, and how often the server asked to come back.
pub(crate) fn latency(figures: &mut Figures, round: &Round) {
    figures.add("p50", "ms", round.p50_ms());
    figures.add("p99", "ms", round.p99_ms());
    if round.busy > 0 {
        figures.add("answers that asked to come back", "", round.busy as f64);
    }
}

/// Waits until the read models show all that was written so far.
pub(crate) async fn caught_up(nodes: &Nodes) -> Result<(), String> {
    Client::connect(&nodes.first().address)
        .await?
        .insist("tasks.list", &json!({"limit": 1}), CATCH_UP_PATIENCE)
        .await?;
    Ok(())
}

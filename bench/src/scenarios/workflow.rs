//! Workflows of tasks that do nothing, from their submission to the end of the stream of events with
//! which the submission is answered.

use super::create::caught_up;
use crate::args::Args;
use crate::client::{Client, Request};
use crate::load::{Call, Until, load};
use crate::meter::{Cost, Meter};
use crate::nodes::Nodes;
use crate::report::{Figures, Report};
use crate::{disk, limit};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// Who runs the tasks. None of them does anything.
#[derive(Clone, Copy)]
pub(crate) enum Executor {
    /// A pure one, whose attempts end in the turn that starts them.
    Pure,
    /// One that may wait, so that each start is durable before it is launched.
    Launched,
    /// A worker outside the server.
    Remote,
}

/// The method of the tasks that a worker does.
pub(crate) const REMOTE_METHOD: &str = "noop";

impl Executor {
    /// Those of the server itself.
    pub(crate) const BUILT_IN: [Self; 2] = [Self::Pure, Self::Launched];

    /// What comes behind the names of figures.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Pure => "",
            Self::Launched => ", launched",
            Self::Remote => ", remote",
        }
    }

    /// A task that it runs, with these members too.
    fn task(self, mut members: Value) -> Value {
        let (schemas, inputs) = match self {
            Self::Pure => (json!({"method": "echo_executor"}), json!({"k": 1})),
            Self::Launched => (
                json!({"method": "sleep_executor"}),
                json!({"duration_ms": 0}),
            ),
            Self::Remote => (
                json!({"method": REMOTE_METHOD, "type": "remote"}),
                json!({"k": 1}),
            ),
        };
        members["schemas"] = schemas;
        members["inputs"] = inputs;
        members
    }
}

/// Tasks of the chain.
pub(crate) const CHAIN: usize = 100;
/// Tasks that wait for one and that one waits for.
pub(crate) const FANS: [usize; 2] = [500, 10_000];
/// Tasks that have nothing to do with each other, of a round, and those under way at once.
const INDEPENDENT: usize = 2_000;
pub(crate) const IN_FLIGHT: usize = 64;
/// Events of a task in a large flow: created, started, completed.
pub(crate) const EVENTS_OF_TASK: f64 = 3.0;
/// Those of a task in a flow of its own: also the beginning and the end of its run.
const EVENTS_OF_LONE_TASK: f64 = 5.0;

/// `len` tasks, each waiting for the one before.
pub(crate) fn chain(executor: Executor, len: usize) -> Value {
    let mut tasks = vec![json!({"id": "root", "name": "chain"})];
    for k in 0..len {
        let waits: Vec<Value> = k
            .checked_sub(1)
            .map(|before| json!({"id": format!("t{before}")}))
            .into_iter()
            .collect();
        tasks.push(executor.task(
            json!({"id": format!("t{k}"), "parent_id": "root", "name": format!("task {k}"), "dependencies": waits}),
        ));
    }
    json!({ "tasks": tasks, "use_streaming": true })
}

/// One task, `width` tasks that wait for it, one that waits for all of them.
pub(crate) fn fan(executor: Executor, width: usize) -> Value {
    let task = |id: String, waits: Vec<Value>| {
        executor.task(json!({"id": id, "parent_id": "root", "name": id, "dependencies": waits}))
    };
    let mut tasks = vec![
        json!({"id": "root", "name": "fan"}),
        task("first".to_owned(), vec![]),
    ];
    tasks.extend((0..width).map(|k| task(format!("t{k}"), vec![json!({"id": "first"})])));
    tasks.push(task(
        "last".to_owned(),
        (0..width).map(|k| json!({"id": format!("t{k}")})).collect(),
    ));
    json!({ "tasks": tasks, "use_streaming": true })
}

/// A chain of 100.
pub(crate) async fn chains(args: &Args, report: &mut Report) -> Result<(), String> {
    let nodes = Nodes::start(args, "chain").await?;
    for executor in Executor::BUILT_IN {
        let mut figures = run(args, &nodes, &chain(executor, CHAIN), CHAIN).await?;
        if let Executor::Launched = executor {
            // A microsecond each, told in milliseconds.
            figures.limit("submission to end", disk::SYNC, CHAIN as f64 / 1e3);
        }
        report.figures(&format!("chain of {CHAIN}{}", executor.suffix()), figures);
    }
    nodes.stop().await
}

/// Fan-out with fan-in.
pub(crate) async fn fans(args: &Args, report: &mut Report) -> Result<(), String> {
    for (executor, width) in Executor::BUILT_IN
        .into_iter()
        .flat_map(|e| FANS.map(|n| (e, n)))
    {
        let nodes = Nodes::start(args, "fan").await?;
        let mut figures = run(args, &nodes, &fan(executor, width), width).await?;
        let limit = limit::rate_name(args, 1_000);
        figures.limit("tasks", limit, 1.0 / EVENTS_OF_TASK);
        let name = format!("fan-out of {width} with fan-in{}", executor.suffix());
        report.figures(&name, figures);
        report.row(
            format!("{name}: memory of the server, most"),
            "MB",
            &[nodes.peak_memory_mb()?],
        );
        nodes.stop().await?;
    }
    Ok(())
}

/// A workflow of so many tasks, several times.
pub(crate) async fn run(
    args: &Args,
    nodes: &Nodes,
    params: &Value,
    tasks: usize,
) -> Result<Figures, String> {
    let request = Request::call("tasks.execute", params);
    let mut client = Client::connect(&nodes.first().address).await?;
    let mut figures = Figures::default();
    let mut costs: Option<Cost> = None;
    // The first one warms up. More rounds than elsewhere, because they are short.
    let rounds = 2 * args.rounds();
    for round in 0..=rounds {
        let meter = Meter::start(nodes).await?;
        let began = Instant::now();
        client.follow(&request).await?;
        let took = began.elapsed().as_secs_f64();
        let cost = meter.stop().await?;
        caught_up(nodes).await?;
        if round == 0 {
            continue;
        }
        figures.add("submission to end", "ms", took * 1e3);
        figures.add("tasks", "1/s", tasks as f64 / took);
        figures.add("syncs", "", cost.commits);
        costs = Some(costs.map_or(cost, |costs| costs.and(cost)));
    }
    if let Some(costs) = costs {
        // The system counts processor time in steps that are long beside one workflow.
        figures.cpu(&costs, "task", (tasks * rounds) as f64);
        figures.syncs(&costs, "task", (tasks * rounds) as f64);
    }
    Ok(figures)
}

/// Tasks in flows of their own, each submitted and awaited.
pub(crate) async fn independent(args: &Args, report: &mut Report) -> Result<(), String> {
    for executor in Executor::BUILT_IN {
        lone_tasks(args, executor, report).await?;
    }
    Ok(())
}

async fn lone_tasks(args: &Args, executor: Executor, report: &mut Report) -> Result<(), String> {
    let nodes = Nodes::start(args, "independent").await?;
    let figures = submitted(args, &nodes, executor, IN_FLIGHT, INDEPENDENT).await?;
    let name = format!(
        "independent tasks, {IN_FLIGHT} in flight{}",
        executor.suffix()
    );
    report.figures(&name, figures);
    report.row(
        format!("{name}: memory of the server, most"),
        "MB",
        &[nodes.peak_memory_mb()?],
    );
    nodes.stop().await
}

/// So many tasks in flows of their own, each submitted and awaited, so many in flight; several times.
pub(crate) async fn submitted(
    args: &Args,
    nodes: &Nodes,
    executor: Executor,
    in_flight: usize,
    tasks: usize,
) -> Result<Figures, String> {
    let task = executor.task(json!({"name": "no-op"}));
    let params = json!({"use_streaming": true, "tasks": [task]});
    let calls: Arc<[Call]> = Arc::new([Call {
        request: Request::call("tasks.execute", &params),
        kind: 0,
        follow: true,
    }]);
    let targets = nodes.targets();
    let round = || load(&targets, in_flight, Until::Calls(tasks), |_| calls.clone());
    round().await?;
    let mut figures = Figures::default();
    let mut costs: Option<Cost> = None;
    let rounds = 2 * args.rounds();
    for _ in 0..rounds {
        caught_up(nodes).await?;
        let meter = Meter::start(nodes).await?;
        let load = round().await?;
        let cost = meter.stop().await?;
        figures.add("rate", "tasks/s", load.per_second());
        super::create::latency(&mut figures, &load);
        costs = Some(costs.map_or(cost, |costs| costs.and(cost)));
    }
    if let Some(costs) = costs {
        figures.cpu(&costs, "task", (tasks * rounds) as f64);
        figures.syncs(&costs, "task", (tasks * rounds) as f64);
    }
    let limit = limit::rate_name(args, in_flight);
    figures.limit("rate", limit, 1.0 / EVENTS_OF_LONE_TASK);
    Ok(figures)
}

//! Whether a command costs the same however large its flow and however long the log is.

use super::create::{caught_up, latency, measured_task};
use super::long_log::{self, LongLog};
use crate::args::Args;
use crate::client::Request;
use crate::history::{events_of, task_id};
use crate::load::{Call, Round, Until, load};
use crate::meter::{Cost, Meter};
use crate::nodes::Nodes;
use crate::place::Place;
use crate::report::{Figures, Report, number};
use serde_json::json;
use std::sync::Arc;

/// Tasks of a flow as it is named and as it is at the beginning (100,000 are allowed, and some are
/// added), and how many there are of the size, so that small ones stay small and all stay in memory.
const SIZES: [(u64, u64, u64); 4] = [
    (10, 10, 20),
    (1_000, 1_000, 10),
    (10_000, 10_000, 2),
    (100_000, 98_000, 1),
];
/// Tasks that are added in a round.
const ADDED: usize = 100;
/// Connections beside the single one.
const CONNECTIONS: usize = 16;
/// Connections that append to logs of different lengths.
const LOG_CONNECTIONS: usize = 64;
/// Tasks of the log that is made when it is asked for: more than ten million events.
const VERY_LONG_TASKS: u64 = 9_300_000;

/// The scenario.
pub(crate) async fn growth(
    args: &Args,
    long_log: &mut LongLog,
    report: &mut Report,
) -> Result<(), String> {
    flows(args, report).await?;
    let nodes = Nodes::start(args, "growth").await?;
    log(args, &nodes, 0, report).await?;
    nodes.stop().await?;
    let nodes = long_log.serve(args, report).await?;
    log(args, &nodes, long_log::tasks(args), report).await?;
    // What was created here would change what others see.
    nodes.stop().await?;
    if args.very_long_log {
        let (nodes, made) = long_log::filled(args, "very_long", VERY_LONG_TASKS).await?;
        made.tell(&nodes, report).await?;
        log(args, &nodes, VERY_LONG_TASKS, report).await?;
        nodes.stop().await?;
    }
    Ok(())
}

/// A round of calls and what it cost.
async fn round(
    nodes: &Nodes,
    connections: usize,
    until: Until,
    calls: impl Fn(usize) -> Arc<[Call]>,
) -> Result<(Round, Cost), String> {
    caught_up(nodes).await?;
    let meter = Meter::start(nodes).await?;
    let load = load(&nodes.targets(), connections, until, calls).await?;
    Ok((load, meter.stop().await?))
}

/// What a round says of its commands.
fn add(figures: &mut Figures, load: &Round, cost: &Cost) {
    let commands = load.calls() as f64;
    figures.add("rate", "1/s", load.per_second());
    latency(figures, load);
    figures.cpu(cost, "command", commands);
    figures.syncs(cost, "command", commands);
}

/// Commands for flows of different sizes.
async fn flows(args: &Args, report: &mut Report) -> Result<(), String> {
    let place = Place::fresh(args, "growth").await?;
    place.import(&args.program, |log| {
        for (_, tasks, copies) in SIZES {
            for _ in 0..copies {
                log.tree(tasks)?;
            }
        }
        Ok(())
    })?;
    let nodes = Nodes::start_on(args, place, &[]).await?;
    let mut first = 0;
    for (size, tasks, copies) in SIZES {
        let size = number(size as f64);
        let flow = |n: usize| first + n as u64 % copies;
        // Each connection renames tasks of its own, of all flows of the size in turn.
        let rename = |connection: usize| -> Arc<[Call]> {
            let calls = (0..2 * copies.max(10)).map(|n| {
                let task = 1 + (connection as u64 * 7 + n / 2) % (tasks - 1);
                let task = task_id(flow(n as usize / 2), task);
                let name = format!("renamed by {connection}, {}", n % 2);
                let params = json!({"task_id": task, "updates": {"name": name}});
                Call::plain(Request::call("tasks.update", &params))
            });
            calls.collect()
        };
        for connections in [1, CONNECTIONS] {
            let seconds = args.seconds() / 2.0;
            round(&nodes, connections, Until::Seconds(seconds), rename).await?;
            let mut figures = Figures::default();
            for _ in 0..args.rounds() {
                let until = Until::Seconds(seconds);
                let (load, cost) = round(&nodes, connections, until, rename).await?;
                add(&mut figures, &load, &cost);
            }
            let name = format!("growth, tasks.update in a flow of {size}, {connections}");
            report.figures(&format!("{name} connections"), figures);
        }
        let create = |_: usize| -> Arc<[Call]> {
            let calls = (0..copies).map(|n| {
                let mut task = measured_task();
                task["parent_id"] = json!(task_id(flow(n as usize), 0));
                Call::plain(Request::call("tasks.create", &task))
            });
            calls.collect()
        };
        let mut figures = Figures::default();
        for _ in 0..2 * args.rounds() {
            let (load, cost) = round(&nodes, 1, Until::Calls(ADDED), create).await?;
            add(&mut figures, &load, &cost);
        }
        report.figures(
            &format!("growth, tasks.create in a flow of {size}, 1 connection"),
            figures,
        );
        first += copies;
    }
    let most = nodes.peak_memory_mb()?;
    report.row("growth: memory of the server, most", "MB", &[most]);
    let figure = |size: &str| {
        let name = format!("growth, tasks.update in a flow of {size}, {CONNECTIONS} connections");
        report.median(&format!("{name}: server CPU per command"))
    };
    if let (Some(small), Some(large)) = (figure("10"), figure("100,000")) {
        let name = "growth: server CPU of tasks.update, 100,000 tasks a flow against 10";
        report.row(name, "times", &[large / small]);
    }
    nodes.stop().await
}

/// Appends to a log of so many tasks.
async fn log(args: &Args, nodes: &Nodes, tasks: u64, report: &mut Report) -> Result<(), String> {
    let events = number(events_of(tasks) as f64);
    let calls = Call::again(Request::call("tasks.create", &measured_task()));
    for connections in [1, LOG_CONNECTIONS] {
        let send = |_: usize| calls.clone();
        let warm_up = Until::Seconds(args.warm_up());
        round(nodes, connections, warm_up, send).await?;
        let mut figures = Figures::default();
        for _ in 0..args.rounds() {
            let until = Until::Seconds(args.seconds());
            let (load, cost) = round(nodes, connections, until, send).await?;
            add(&mut figures, &load, &cost);
        }
        let name = format!("growth, tasks.create behind {events} events, {connections}");
        report.figures(&format!("{name} connections"), figures);
    }
    let memory = nodes.memory_mb()?;
    report.row(
        format!("growth, behind {events} events: memory of the server"),
        "MB",
        &[memory],
    );
    Ok(())
}

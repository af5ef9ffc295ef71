//! Tasks that programs outside the server do: a worker in Node on the socket and on long polls, beside the
//! same shapes run by the server itself; what connections cost on which nothing happens (`idle`); claims
//! behind many tasks that wait (`waiting`).

mod idle;
mod process;
mod waiting;

use super::workflow::{self, CHAIN, Executor, FANS, IN_FLIGHT, REMOTE_METHOD};
use crate::args::Args;
use crate::nodes::Nodes;
use crate::report::{Figures, Report};
use crate::{disk, limit};
use process::{Connection, Worker};

/// Claims that the worker holds at once at most.
const WINDOW: usize = 64;
/// Tasks of a round, one at a time and [`IN_FLIGHT`] at a time.
const ONE_AT_A_TIME: usize = 200;
const MANY_AT_A_TIME: usize = 2_000;
/// The width of the fan.
const FAN: usize = FANS[0];

/// Who does the tasks, and what is said of it.
const DONE_BY: [(Executor, Option<Connection>, &str); 4] = [
    (Executor::Pure, None, "engine, pure"),
    (Executor::Launched, None, "engine, launched"),
    (
        Executor::Remote,
        Some(Connection::Socket),
        "Node worker, socket",
    ),
    (
        Executor::Remote,
        Some(Connection::Poll),
        "Node worker, long polls",
    ),
];
/// The row of [`DONE_BY`] beside which workers are put: its starts are durable before anything is done, as claims are.
const REFERENCE: &str = "engine, launched";

/// What is done.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Tasks in flows of their own, each submitted and awaited, so many at a time.
    Calls(usize, usize),
    Chain,
    Fan,
}

impl Shape {
    const ALL: [Self; 4] = [
        Self::Calls(1, ONE_AT_A_TIME),
        Self::Calls(IN_FLIGHT, MANY_AT_A_TIME),
        Self::Chain,
        Self::Fan,
    ];

    fn name(self) -> String {
        match self {
            Self::Calls(in_flight, _) => format!("call and wait, {in_flight} in flight"),
            Self::Chain => format!("chain of {CHAIN}"),
            Self::Fan => format!("fan-out of {FAN} with fan-in"),
        }
    }

    /// The figures that are put beside those of the reference.
    const fn compared(self) -> &'static [&'static str] {
        match self {
            Self::Calls(1, _) => &["p50", "server CPU per task"],
            Self::Calls(..) => &["rate", "p50", "server CPU per task"],
            Self::Chain | Self::Fan => &["submission to end", "server CPU per task"],
        }
    }

    async fn measure(self, args: &Args, nodes: &Nodes, by: Executor) -> Result<Figures, String> {
        match self {
            Self::Calls(in_flight, tasks) => {
                let mut figures = workflow::submitted(args, nodes, by, in_flight, tasks).await?;
                if in_flight == 1 {
                    // A microsecond, told in milliseconds.
                    figures.limit("p50", disk::SYNC, 1e-3);
                }
                Ok(figures)
            }
            Self::Chain => {
                let chain = workflow::chain(by, CHAIN);
                let mut figures = workflow::run(args, nodes, &chain, CHAIN).await?;
                figures.limit("submission to end", disk::SYNC, CHAIN as f64 / 1e3);
                Ok(figures)
            }
            Self::Fan => {
                let fan = workflow::fan(by, FAN);
                let mut figures = workflow::run(args, nodes, &fan, FAN).await?;
                let limit = limit::rate_name(args, 1_000);
                figures.limit("tasks", limit, 1.0 / workflow::EVENTS_OF_TASK);
                Ok(figures)
            }
        }
    }
}

/// The whole scenario.
pub(crate) async fn workers(args: &Args, report: &mut Report) -> Result<(), String> {
    let load = crate::process::load()?;
    report.row("workers: load of the machine before", "", &[load]);
    for shape in Shape::ALL {
        // All on one server, so that they differ in nothing but who does the tasks.
        let nodes = Nodes::start(args, "workers").await?;
        for (executor, connection, by) in DONE_BY {
            let worker = match connection {
                None => None,
                Some(connection) => Some(
                    Worker::start(
                        args,
                        &nodes.first().address,
                        connection,
                        REMOTE_METHOD,
                        WINDOW,
                    )
                    .await?,
                ),
            };
            let mut figures = shape.measure(args, &nodes, executor).await?;
            if let Some(worker) = &worker {
                figures.add("CPU of the worker, of one core", "%", worker.cpu_percent()?);
            }
            drop(worker);
            report.figures(&format!("workers, {}, {by}", shape.name()), figures);
            if connection.is_some() {
                beside_the_reference(shape, by, report);
            }
        }
        nodes.stop().await?;
    }
    idle::idle(args, report).await?;
    waiting::waiting(args, report).await
}

/// Rows that divide the figures by those of the reference in the same run.
fn beside_the_reference(shape: Shape, by: &str, report: &mut Report) {
    for figure in shape.compared() {
        let name = |by: &str| format!("workers, {}, {by}: {figure}", shape.name());
        let both = report
            .median(&name(by))
            .zip(report.median(&name(REFERENCE)));
        if let Some((own, reference)) = both {
            let name = format!("{}, of {REFERENCE}", name(by));
            report.row(name, "x", &[own / reference]);
        }
    }
}

//! What is aimed at, on two cores, client and server on the same machine, durable.

use super::number;
use serde::Serialize;

/// A bound on the median of a row.
#[derive(Debug, Clone, Copy)]
enum Aim {
    AtLeast(f64),
    AtMost(f64),
    /// So much of the limit, or more.
    OfLimit(f64),
    /// At most so much, or so much of the limit.
    AtMostOrOfLimit(f64, f64),
}

/// The rows that have one.
const AIMS: &[(&str, Aim)] = &[
    (
        "hash chain, 64 in flight: append, of the same without",
        Aim::AtMost(1.1),
    ),
    (
        "tasks.create, 64 connections: rate until read models have caught up",
        Aim::AtLeast(20_000.0),
    ),
    ("tasks.create, 64 connections: p99", Aim::AtMost(10.0)),
    (
        "tasks.create, 64 connections: syncs per task",
        Aim::AtMost(0.1),
    ),
    (
        "tasks.create, trees of 1,000, 4 connections: rate until read models have caught up",
        Aim::AtLeast(40_000.0),
    ),
    ("tasks.get, 64 connections: rate", Aim::OfLimit(0.6)),
    (
        "tasks.list, 1,000,000 tasks, first page: p50",
        Aim::AtMost(2.0),
    ),
    ("chain of 100: submission to end", Aim::AtMost(25.0)),
    (
        "chain of 100, launched: submission to end",
        Aim::AtMostOrOfLimit(25.0, 1.3),
    ),
    (
        "fan-out of 500 with fan-in: submission to end",
        Aim::AtMost(50.0),
    ),
    (
        "fan-out of 500 with fan-in, launched: submission to end",
        Aim::AtMost(50.0),
    ),
    ("broker, publish, 64 callers: rate", Aim::AtLeast(10_000.0)),
    (
        "broker, round trip, 64 in flight: rate",
        Aim::AtLeast(3_000.0),
    ),
    ("broker, round trip, 1 in flight: p50", Aim::AtMost(3.0)),
    (
        "a2a, 1 in flight, SendMessage, JSON-RPC: p50, of tasks.execute",
        Aim::AtMost(1.3),
    ),
    (
        "a2a, 1 in flight, SendMessage, HTTP+JSON: p50, of tasks.execute",
        Aim::AtMost(1.3),
    ),
    (
        "a2a, 1 in flight, SendMessage, gRPC: p50, of tasks.execute",
        Aim::AtMost(1.3),
    ),
    ("chain of 100, wired: of the same without", Aim::AtMost(1.3)),
    (
        "fan-out of 500 with fan-in, wired: of the same without",
        Aim::AtMost(1.3),
    ),
    ("workflows.validate, 1,000 phases: call", Aim::AtMost(50.0)),
    (
        "independent tasks, 64 in flight: rate",
        Aim::AtLeast(8_000.0),
    ),
    (
        "independent tasks, 64 in flight, launched: rate",
        Aim::AtLeast(8_000.0),
    ),
    (
        "callers, one user at a pace beside a flood of another: p99, of that alone",
        Aim::AtMost(2.0),
    ),
    (
        "callers, strangers without credentials: left of the throughput",
        Aim::AtLeast(0.9),
    ),
    (
        "callers, strangers with wrong ones: left of the throughput",
        Aim::AtLeast(0.9),
    ),
    (
        "callers, metrics: scraped, of not scraped",
        Aim::AtMost(1.01),
    ),
    (
        "start with 1,000,000 tasks: to the first answer",
        Aim::AtMost(1_000.0),
    ),
    (
        "start with 1,000,000 tasks: to the first page of tasks.list",
        Aim::AtMost(1_000.0),
    ),
    (
        "rebuild of read models, 1,000,000 tasks: rate",
        Aim::AtLeast(200_000.0),
    ),
    ("idle memory, empty store", Aim::AtMost(25.0)),
];

/// An aim, and whether it was met.
#[derive(Debug, Serialize)]
pub(super) struct Judged {
    aim: String,
    met: bool,
}

impl Judged {
    pub(super) fn text(&self) -> String {
        let verdict = if self.met { "met" } else { "missed" };
        format!("{}: {verdict}", self.aim)
    }
}

/// Holds a row against its aim, if it has one; an aim that needs a limit is left out without it.
pub(super) fn judge(name: &str, median: f64, ratio: Option<f64>) -> Option<Judged> {
    let (_, aim) = AIMS.iter().find(|(row, _)| *row == name)?;
    let (aim, met) = match *aim {
        Aim::AtLeast(least) => (format!("{} or more", number(least)), median >= least),
        Aim::AtMost(most) => (format!("{} or less", number(most)), median <= most),
        Aim::OfLimit(share) => (format!("{share} of the limit or more"), ratio? >= share),
        Aim::AtMostOrOfLimit(most, share) => (
            format!("{} or less, or {share} of the limit", number(most)),
            median <= most || ratio.is_some_and(|ratio| ratio <= share),
        ),
    };
    Some(Judged { aim, met })
}

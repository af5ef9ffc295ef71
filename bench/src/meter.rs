//! What a stretch of work costs: processor time of everybody involved, events, commits, and what the
//! disk was asked for.

use crate::client::Client;
use crate::nodes::Nodes;
use crate::{machine, process};
use serde_json::json;
use std::time::Instant;

/// Begun before the work, ended behind it.
pub(crate) struct Meter<'a> {
    nodes: &'a Nodes,
    began: Instant,
    before: Reading,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    server_s: f64,
    client_s: f64,
    database_s: Option<f64>,
    head: f64,
    commits: f64,
    flushes: Option<f64>,
}

/// What it cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    /// Processor time of the servers, of this program, and of the database if it is on this machine.
    pub(crate) server_s: f64,
    pub(crate) client_s: f64,
    pub(crate) database_s: Option<f64>,
    /// Events that the log has more.
    pub(crate) events: f64,
    /// Transactions of the log that were made durable: one sync each.
    pub(crate) commits: f64,
    /// Flushes that the disk has carried out, for whomever.
    pub(crate) flushes: Option<f64>,
}

impl<'a> Meter<'a> {
    pub(crate) async fn start(nodes: &'a Nodes) -> Result<Self, String> {
        Ok(Self {
            nodes,
            before: Reading::now(nodes).await?,
            began: Instant::now(),
        })
    }

    pub(crate) async fn stop(self) -> Result<Cost, String> {
        let seconds = self.began.elapsed().as_secs_f64();
        let (before, after) = (self.before, Reading::now(self.nodes).await?);
        let more = |before: Option<f64>, after: Option<f64>| Some(after? - before?);
        Ok(Cost {
            seconds,
            server_s: after.server_s - before.server_s,
            client_s: after.client_s - before.client_s,
            database_s: more(before.database_s, after.database_s),
            events: after.head - before.head,
            commits: after.commits - before.commits,
            flushes: more(before.flushes, after.flushes),
        })
    }
}

impl Reading {
    async fn now(nodes: &Nodes) -> Result<Self, String> {
        let (mut head, mut commits) = (0.0_f64, 0.0);
        for address in nodes.addresses() {
            let mut client = Client::connect(address).await?;
            let health = client.call("system.health", &json!({})).await?;
            let figure = |name: &str| health["log"][name].as_f64().unwrap_or(0.0);
            head = head.max(figure("head"));
            commits += figure("commits");
        }
        Ok(Self {
            server_s: nodes.cpu_seconds()?,
            client_s: process::cpu_seconds(std::process::id())?,
            database_s: nodes.database_cpu_seconds()?,
            head,
            commits,
            flushes: machine::flushes(nodes.place().folder()),
        })
    }
}

impl Cost {
    /// Both, one after the other.
    pub(crate) fn and(self, other: Self) -> Self {
        let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        Self {
            seconds: self.seconds + other.seconds,
            server_s: self.server_s + other.server_s,
            client_s: self.client_s + other.client_s,
            database_s: sum(self.database_s, other.database_s),
            events: self.events + other.events,
            commits: self.commits + other.commits,
            flushes: sum(self.flushes, other.flushes),
        }
    }
}

//! Replies about the server itself: health, executors, nodes, rebuilds.

use std::sync::Arc;
use taskledger_domain::{Payload, Position, Timestamp};
use uuid::Uuid;

/// One thing that must work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What is checked, in one word.
    pub name: &'static str,
    /// Whether it works.
    pub ok: bool,
    /// What an operator should know; nothing secret.
    pub detail: String,
}

/// The check that fails while the server drains.
pub const DRAINING: &str = "draining";

/// The answer to a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draining {
    /// Whether nothing begins any more.
    pub is_draining: bool,
    /// Whether that was so before.
    pub was_draining: bool,
    /// Whether the server stops as soon as what is under way has ended: this cannot be cancelled.
    pub is_stopping: bool,
    /// Attempts in the server that are under way.
    pub running: usize,
}

/// The health of the server: checks and figures.
#[derive(Debug, Clone)]
pub struct Health {
    /// The product's version.
    pub version: &'static str,
    /// Now.
    pub time: Timestamp,
    /// What must work.
    pub checks: Vec<Check>,
    /// The end of the log.
    pub head: Position,
    /// What the log has written since the start.
    pub commits: u64,
    /// How far the read models are.
    pub checkpoint: Position,
    /// How the last rebuild of the read models stands; absent when there was none since the start.
    pub rebuild: Option<Rebuild>,
    /// Flows in memory.
    pub resident_flows: usize,
    /// Bytes of those that are idle.
    pub idle_bytes: usize,
    /// Slots in use, by executor.
    pub slots: Vec<SlotUsage>,
    /// Streams that are open.
    pub watchers: usize,
    /// What was sent to webhooks since the start.
    pub deliveries: Deliveries,
    /// The time zones of schedules.
    pub zones: ZoneHealth,
    /// This server among those that share the log; absent when it is alone.
    pub node: Option<NodeHealth>,
}

/// The time zone database of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneHealth {
    /// Its edition, such as `2026a`.
    pub edition: Arc<str>,
    /// `bundled`, or the folder.
    pub source: String,
    /// The editions that other servers of the database use, which may compute other times.
    pub other_editions: Vec<Arc<str>>,
}

impl Health {
    /// Whether everything works.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.checks.iter().all(|check| check.ok)
    }
}

/// The state of a rebuild of the read models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebuild {
    /// It is under way.
    Running {
        /// How far.
        position: Position,
        /// The end.
        of: Position,
    },
    /// It has ended.
    Done {
        /// What it contains.
        position: Position,
    },
    /// It has failed.
    Failed {
        /// The error, in words for people.
        reason: Arc<str>,
    },
}

/// The slots of one executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotUsage {
    /// Name of the executor.
    pub executor: String,
    /// Attempts that run.
    pub running: usize,
    /// Attempts that may run.
    pub limit: usize,
}

/// Counts of deliveries to webhooks since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deliveries {
    /// Requests that were sent, repetitions included.
    pub attempts: u64,
    /// Those that arrived.
    pub delivered: u64,
    /// Those that did not.
    pub failed: u64,
    /// Messages that were given up.
    pub dead: u64,
    /// Endpoints that are left alone for a while.
    pub open_breakers: usize,
}

/// A server among those that share the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeHealth {
    /// This server.
    pub id: Uuid,
    /// Partitions that it may rely on.
    pub partitions: usize,
    /// Whether it folds the read models.
    pub folds_read_models: bool,
    /// All that live, this one included.
    pub alive: Vec<NodeShare>,
}

/// A server and its part of the flows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeShare {
    /// The id of the node, fresh for each start of a server.
    pub id: Uuid,
    /// Where others reach it.
    pub url: Arc<str>,
    /// Number of partitions that it owns.
    pub partitions: usize,
}

/// The name of the executor that runs programs of the server's machine. It is off unless the server allows
/// programs, which a refusal of it explains.
pub const COMMAND_EXECUTOR: &str = "command_executor";

/// An executor as callers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorView {
    /// The name for `schemas.method`.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// One sentence for people.
    pub summary: String,
    /// Whether running an attempt twice does no harm.
    pub idempotent: bool,
    /// Whether its result follows from the job alone, at once.
    pub pure: bool,
    /// The JSON Schema of its inputs.
    pub input_schema: Option<Payload>,
    /// The members of `params` that it reads beside the engine's own; absent when it does not say.
    pub params: Option<Arc<[String]>>,
    /// Attempts that may run at once; absent: any number.
    pub limit: Option<usize>,
    /// Workers outside the server claim its tasks.
    pub remote: bool,
}

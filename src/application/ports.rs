//! What the application needs of the engine, which depends on it and not the other way round.

use super::api::ExecutorView;
use super::ownership::Partitions;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use taskledger_domain::flow::{Command, Event};
use taskledger_domain::schedule::Launch;
use taskledger_domain::task::inputs::CompiledSchema;
use taskledger_domain::{EventId, FlowId, Metadata, TaskId, Version, Violation};

/// The executors of this server.
pub trait Executors: Send + Sync + fmt::Debug + 'static {
    /// Whether one has this name or alias.
    fn knows(&self, method: &str) -> bool;
    /// Whether running the same attempt twice does no harm; false for an unknown one.
    fn is_idempotent(&self, method: &str) -> bool;
    /// The name behind an alias; the same text for an unknown one.
    fn canonical_name<'a>(&'a self, method: &'a str) -> &'a str;
    /// Attempts that may run at once.
    fn slot_limit(&self, method: &str) -> usize;
    /// What an executor itself finds wrong with inputs, at paths from their root. Must be quick.
    fn check(&self, _method: &str, _inputs: &Map<String, Value>) -> Vec<Violation> {
        Vec::new()
    }
    /// What inputs must conform to.
    fn input_schema(&self, method: &str) -> Option<Arc<CompiledSchema>>;
}

/// The executors as callers see them.
pub trait ExecutorList: Send + Sync + fmt::Debug + 'static {
    /// All of them, by name.
    fn list(&self) -> Vec<ExecutorView>;
}

/// An attempt to run, with what its outcome must refer back to.
#[derive(Debug, Clone)]
pub struct Started {
    /// The flow.
    pub flow: FlowId,
    /// What to run.
    pub launch: Launch,
    /// The event that started it.
    pub event: EventId,
    /// Of that event.
    pub metadata: Metadata,
}

/// The events of a flow that are decided and not durable yet, by version.
pub type Undurable<'a> = &'a dyn Fn(Version) -> Option<Arc<Event>>;

/// Runs attempts. Called from a flow's turn, so it must not wait.
pub trait Attempts: Send + Sync + fmt::Debug + 'static {
    /// The end of an attempt whose start was decided just now, if it needs neither time nor anything
    /// outside: both then become one append. `None`: it is to be launched when its start is durable.
    /// `bytes_left` is what this turn may still work through, and is made less.
    fn end_at_once(
        &self,
        _started: &Started,
        _undurable: Undurable<'_>,
        _bytes_left: &mut usize,
    ) -> Option<Command> {
        None
    }
    /// Runs an attempt whose start is durable; its outcome comes back as a command.
    fn launch(&self, started: Started);
    /// Stops an attempt, if it runs; its outcome is of no interest any more.
    fn stop(&self, flow: FlowId, task: TaskId, attempt: u32);
    /// The attempts of a flow that run, or are about to.
    fn alive(&self, flow: FlowId) -> Vec<(TaskId, u32)>;
    /// Stops the attempts of all flows in these partitions, which belong to another node now. They
    /// are not alive any more, even if one of the flows comes back before its executor has ended.
    fn forsake(&self, partitions: &Partitions);
    /// The same for one flow.
    fn forsake_flow(&self, flow: FlowId);
    /// The partitions in which attempts run.
    fn partitions(&self) -> Partitions;
}

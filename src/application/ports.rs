//! The ports that the engine implements. The engine depends on the application, not the other way round.

mod workers;

pub use taskledger_workers::{Renewal, Renewed};
pub use workers::{
    ASK_AGAIN_MS, ASKED_FOR_MS, AskRefusal, Asking, Asks, DeclareRefusal, KnownMethod, Workers,
};

use super::api::ExecutorView;
use super::ownership::Partitions;
use crate::sealing::Secret;
use crate::store;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use taskledger_auth::{Reach, SecretName};
use taskledger_domain::flow::{Command, Event};
use taskledger_domain::schedule::Launch;
use taskledger_domain::task::inputs::CompiledSchema;
use taskledger_domain::{
    EventId, FlowId, LeaseId, Metadata, Payload, TaskId, Timestamp, Version, Violation,
};
use taskledger_workers::MethodKey;
use tokio::sync::watch;

/// The directory of executors, whose contents may change while the server runs.
///
/// Whoever decides takes one snapshot and asks nothing else until the decision is made, so that a
/// decision never rests on two states of the directory.
pub trait Executors: Send + Sync + fmt::Debug + 'static {
    /// The newest snapshot, as it is for whoever has declared nothing for themselves. Cost: O(1).
    fn snapshot(&self) -> Arc<dyn ExecutorSnapshot>;
    /// The newest snapshot as it is for flows of `owner`, with what that user has declared and asks for; `None` for
    /// flows of nobody. Cost: O(1), without an allocation.
    fn snapshot_for(&self, _owner: Option<&str>) -> Arc<dyn ExecutorSnapshot> {
        self.snapshot()
    }
    /// The number of the newest snapshot, for whoever has to act when it changes.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// The executors as they stand at one moment. A snapshot never changes; what comes later is another one
/// with a higher number.
pub trait ExecutorSnapshot: Send + Sync + fmt::Debug + 'static {
    /// From 1; each snapshot of a directory has a higher number than those before it.
    fn number(&self) -> u64;
    /// Whether an executor has this name or alias.
    fn knows(&self, method: &str) -> bool;
    /// The names of all, without aliases, in no order. Cost: O(executors).
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }
    /// Whether its attempts are started by claims of workers outside this process; false for an unknown
    /// one.
    fn is_remote(&self, _method: &str) -> bool {
        false
    }
    /// The same for flows of any user, whosever flows the snapshot is for.
    fn is_remote_for_any(&self, method: &str) -> bool {
        self.is_remote(method)
    }
    /// Whether it starts programs on the machine of a server that has it, this one or another: what is accepted here
    /// may run there. False for an unknown name that no server gives to such an executor.
    fn starts_programs(&self, _method: &str) -> bool {
        false
    }
    /// Whether running the same attempt twice does no harm; false for an unknown one.
    fn is_idempotent(&self, method: &str) -> bool;
    /// The name behind an alias; the same text for an unknown one.
    fn canonical_name<'a>(&'a self, method: &'a str) -> &'a str;
    /// Attempts that may run at once; 0 for an unknown one.
    fn slot_limit(&self, method: &str) -> usize;
    /// What an executor itself finds wrong with inputs, at paths from their root. Must be quick.
    fn check(&self, _method: &str, _inputs: &Map<String, Value>) -> Vec<Violation> {
        Vec::new()
    }
    /// The secrets that inputs of an executor of this process name, each once.
    fn secrets(&self, _method: &str, _inputs: &Map<String, Value>) -> Vec<SecretName> {
        Vec::new()
    }
    /// The members of `params` that an executor reads beside the engine's own; `None` when it does not
    /// say, or there is no such executor.
    fn params(&self, _method: &str) -> Option<Arc<[String]>> {
        None
    }
    /// The owner of the flows that it is for, if that user has declared the method for themselves: their tasks of it
    /// are offered and counted apart from those of others.
    fn declared_for(&self, _method: &str) -> Option<&Arc<str>> {
        None
    }
    /// Whether any user has declared a method for themselves, or asks for one for their own flows alone.
    fn has_owners(&self) -> bool {
        false
    }
    /// The number of the first snapshot in which the same users have declared the same methods for themselves.
    fn declared_since(&self) -> u64 {
        0
    }
    /// Which users have declared which methods for themselves; the same value in all snapshots in which these are the
    /// same. Only of the snapshot for everybody.
    fn declared_by_users(&self) -> Arc<DeclaredByUsers> {
        Arc::default()
    }
    /// The users who have declared the method for themselves. Only of the snapshot for everybody.
    fn owners_of(&self, _method: &str) -> &[Arc<str>] {
        &[]
    }
    /// How many attempts of methods that workers claim may be under way at once, of those that have a limit, whoever
    /// has declared it. Only of the snapshot for everybody.
    fn claim_limits(&self) -> HashMap<MethodKey, usize> {
        HashMap::new()
    }
    /// What inputs must conform to.
    fn input_schema(&self, method: &str) -> Option<Arc<CompiledSchema>>;
    /// What outputs of its workers must conform to; `None` for one that runs in this process.
    fn output_schema(&self, _method: &str) -> Option<Arc<CompiledSchema>> {
        None
    }
    /// The members of `params` that new tasks of a declared method get when they do not say.
    fn defaults(&self, _method: &str) -> Option<Payload> {
        None
    }
}

/// By method, the users who have declared it for themselves, in order.
pub type DeclaredByUsers = HashMap<Arc<str>, Vec<Arc<str>>>;

/// How a snapshot stands to a method: what decides whether a flow starts its tasks by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// No executor has this name.
    Unknown,
    /// It runs in this process.
    BuiltIn,
    /// Workers claim its tasks.
    Remote,
}

impl Standing {
    /// How `executors` stand to `method`.
    #[must_use]
    pub fn of(executors: &dyn ExecutorSnapshot, method: &str) -> Self {
        if executors.is_remote(method) {
            Self::Remote
        } else if executors.knows(method) {
            Self::BuiltIn
        } else {
            Self::Unknown
        }
    }
}

/// Until when leases of attempts outside the server were renewed. Beside the log, because renewals are not
/// history: what the log has is who began an attempt, and until when the lease held then.
///
/// Leases of a flow are renewed by the node that owns it. Losing what is stored here ends no lease before
/// the time that the log has, and none that is renewed in time after that.
#[async_trait]
pub trait Renewals: Send + Sync + fmt::Debug + 'static {
    /// Keeps that each lease holds until its `expires_at` now. Once it returns, a restart does not forget it,
    /// if this implementation outlives one.
    ///
    /// # Errors
    /// It cannot be written.
    async fn renew(&self, renewals: &[Renewal]) -> Result<(), store::Error>;
    /// Until when leases of a flow hold, as far as they were renewed or extended.
    ///
    /// # Errors
    /// It cannot be read.
    async fn of(&self, flow: FlowId) -> Result<HashMap<LeaseId, Renewed>, store::Error>;
    /// These leases are over.
    ///
    /// # Errors
    /// It cannot be written; nothing rests on it but memory.
    async fn forget(&self, leases: &[LeaseId]) -> Result<(), store::Error>;
}

/// A method, the lease of an attempt of it, and until when that holds if it is not renewed.
pub type TicketsOf = Vec<(MethodKey, LeaseId, Timestamp)>;

/// The right of an attempt to count under the limit of its method, where several nodes share the limit. A ticket
/// counts while its lease holds, so a node that is gone keeps nobody from work for longer than that.
#[async_trait]
pub trait Tickets: Send + Sync + fmt::Debug + 'static {
    /// Takes tickets for attempts under these leases, which hold until then unless they are renewed. Gives how many
    /// of them, the first ones, got one: all when the method has no limit.
    ///
    /// # Errors
    /// It cannot be written; whether there are tickets is not known then.
    async fn take(
        &self,
        method: &MethodKey,
        leases: (&[LeaseId], Timestamp),
        now: Timestamp,
    ) -> Result<usize, store::Error>;
    /// Attempts that are under way get tickets, whatever the limit is. They count for the next call of
    /// [`Self::take`] on this node, and for others after [`Self::write`].
    fn keep(&self, tickets: TicketsOf);
    /// The ticket is free, for this node and for others as [`Self::keep`] says. Says whether there was one.
    fn give_back(&self, lease: LeaseId) -> bool;
    /// Another node keeps the ticket from now on.
    fn forget(&self, lease: LeaseId);
    /// Shows other nodes what was kept and given back.
    ///
    /// # Errors
    /// It cannot be written; the next call that writes does it.
    async fn write(&self) -> Result<(), store::Error>;
}

/// The secrets that tasks name in their inputs, for the attempts that use them.
#[async_trait]
pub trait Secrets: Send + Sync + fmt::Debug + 'static {
    /// The texts of these secrets of an owner, in the same order. `None` owns what belongs to the flows
    /// without a user.
    ///
    /// # Errors
    /// [`SecretsError`].
    async fn open(
        &self,
        owner: Option<&str>,
        names: &[SecretName],
    ) -> Result<Vec<Secret>, SecretsError>;
}

/// Why an attempt does not get its secrets.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// The owner has no secret of this name.
    #[error("there is no secret `{0}`")]
    Missing(SecretName),
    /// It cannot be opened with the keys of this server; the operator can mend it.
    #[error("the secret `{name}` does not open: {reason}")]
    Closed {
        /// Name of the secret.
        name: SecretName,
        /// The reason, for the operator.
        reason: String,
    },
    /// The store does not answer; retry.
    #[error("secrets cannot be read: {0}")]
    Unavailable(String),
}

/// The executors as callers see them.
pub trait ExecutorList: Send + Sync + fmt::Debug + 'static {
    /// All of them that whoever has this reach may know, by name: the server's own, the shared ones, and those of one's
    /// own flows.
    fn list(&self, reach: &Reach) -> Vec<ExecutorView>;
    /// What workers have declared of a method for everybody, in words for people.
    fn description(&self, method: &str) -> Option<Arc<str>>;
}

/// The figures of the whole server, for monitoring.
#[async_trait]
pub trait Exposition: Send + Sync + fmt::Debug + 'static {
    /// All of them, as OpenMetrics text. Never held up by a store that does not answer.
    async fn text(&self) -> String;

    /// Those of the agent broker under the names of the public one, as `text/plain; version=0.0.4`.
    async fn broker_text(&self) -> String;
}

/// Bytes of results and errors of its dependencies that an attempt may be given.
pub const DEPENDENCY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An attempt to run, with what its outcome must refer back to.
#[derive(Debug, Clone)]
pub struct Started {
    /// The flow that the attempt's task belongs to.
    pub flow: FlowId,
    /// What to run.
    pub launch: Launch,
    /// The event that started it.
    pub event: EventId,
    /// The metadata of that event.
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
    /// Stops what an attempt has left outside that has asked something, at `asked_at`, because nobody will answer.
    /// Tried a few times; lost when the server stops meanwhile.
    fn give_up(&self, _attempt: Started, _asked_at: Version) {}
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

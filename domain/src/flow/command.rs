//! The commands. A command carries every id and time that its events will need.

use super::event::{Dependency, Specification};
use super::event::{
    FailureReason, FlowArchived, OnAnswer, OnExpiry, OutputPart, Remarks, RunKind, RunOrigin,
    WaitBounds,
};
use crate::contract::{Breach, Broken, OutputFault};
use crate::question::Question;
use crate::task::call::NewTask;
use crate::task::spec::Updates;
use crate::task::{Priority, Progress, Status};
use crate::{CallbackId, LeaseId, Payload, RunId, SuspensionId, TaskId, Timestamp, Version};
use hashbrown::HashSet;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What somebody wants of a flow.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "a command is handed on by reference; few are held at a time"
)]
pub enum Command {
    /// Add tasks: a new flow when it has none yet, else below existing tasks.
    Create(Vec<NewTask>),
    /// Add the tasks of a new flow, if any, and run them.
    Execute(Execute),
    /// Change a task.
    Update(Update),
    /// Remove a pending task.
    Delete {
        /// Must be pending, as must everything below it.
        task: TaskId,
        /// With everything below it.
        cascade: bool,
    },
    /// Stop a task for good.
    Cancel {
        /// Must be pending or in progress.
        task: TaskId,
        /// With everything below it; groups always do.
        cascade: bool,
        /// Text for `error`.
        reason: Option<String>,
    },
    /// An attempt ended with a result.
    Complete {
        /// The task of the attempt; an outcome of another attempt than the present one is stale.
        task: TaskId,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// What it returned.
        result: Payload,
        /// The lease under which the attempt runs outside the server; `None` for one of this process.
        lease: Option<LeaseId>,
    },
    /// An attempt ended with an error.
    Fail {
        /// The task of the attempt; an outcome of another attempt than the present one is stale.
        task: TaskId,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// Never empty.
        error: String,
        /// What kind of failure it is; decides whether the task is tried again.
        reason: FailureReason,
        /// How far it had come.
        progress: Progress,
        /// The lease under which the attempt runs outside the server; `None` for one of this process.
        lease: Option<LeaseId>,
        /// Milliseconds that the next attempt waits at least, because a server that the attempt called asked for it;
        /// at most `limits::RETRY_AFTER_MS_MAX` count.
        retry_after_ms: u64,
    },
    /// An attempt ended, because a contract of the task was not kept.
    FailBreached {
        /// The task of the attempt; an outcome of another attempt than the present one is stale.
        task: TaskId,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// What was not kept; says the error.
        breach: Box<Breach>,
        /// What kind of failure it is; decides whether the task is tried again.
        reason: FailureReason,
        /// How far it had come.
        progress: Progress,
        /// The lease under which the attempt runs outside the server; `None` for one of this process.
        lease: Option<LeaseId>,
    },
    /// An attempt reports how far it is.
    Report {
        /// The task of the attempt; a report of another attempt than the present one is stale.
        task: TaskId,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// How far.
        progress: Progress,
        /// What the worker says of it; at most `limits::MESSAGE_CHARS_MAX` characters.
        message: Option<String>,
        /// The lease under which the attempt runs outside the server; `None` for one of this process.
        lease: Option<LeaseId>,
    },
    /// An attempt has made a part of its output.
    Append(Append),
    /// What a worker says of its attempt, with remarks that are kept with the event: one of `Report`, `Complete`,
    /// `Fail` and `Cancel`. Remarks beside another command are not kept.
    Remarked {
        /// What is said.
        said: Box<Command>,
        /// What is said beside it.
        remarks: Remarks,
    },
    /// A worker outside the server completes its attempt with a result that is not what the task declares. The
    /// attempt goes on.
    RejectCompletion {
        /// The task of the attempt.
        task: TaskId,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The lease under which it runs.
        lease: LeaseId,
        /// What is wrong with the result.
        fault: OutputFault,
        /// The name of the task.
        phase_name: Option<String>,
    },
    /// A worker was refused a task, for what [`Flow::claim_fault`](super::Flow::claim_fault) said. Recorded unless
    /// that is so no more, or was recorded last.
    RejectClaim {
        /// The task that was to be claimed.
        task: TaskId,
        /// Who wanted it.
        worker: String,
        /// What was said.
        found: Box<Broken>,
        /// The same with names of tasks, as the worker is told.
        breach: Box<Breach>,
    },
    /// An attempt asks a person, and ends with it.
    Suspend(Suspend),
    /// A person answers.
    Respond(Respond),
    /// Whoever began a run says something more to it.
    Receive(Receive),
    /// Stop a run for good, with everything of it that has not ended.
    CancelRun(CancelRun),
    /// A worker outside the server begins attempts.
    Claim(Claim),
    /// A worker gives an attempt back: it goes to somebody else, and uses up nothing.
    Release {
        /// The task that is given back.
        task: TaskId,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The lease that the worker presents; must be that of the attempt.
        lease: LeaseId,
    },
    /// A lease has ended without an outcome: the attempt is lost.
    EndLease {
        /// The task that is held under the lease.
        task: TaskId,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The lease that has ended.
        lease: LeaseId,
        /// When it ended: as it was claimed, or as its worker last said.
        expired_at: Timestamp,
    },
    /// After a restart: attempts that are under way, but not on this server any more, have ended. Those
    /// that run outside the server under a lease go on.
    Recover {
        /// Attempts that do run.
        alive: HashSet<(TaskId, u32)>,
    },
    /// Time has passed or a slot is free: look what is due.
    Wake,
    /// Everything that happened was copied to an archive: end the stream.
    Archive(Archive),
}

impl Command {
    /// The command with remarks, if there are any.
    #[must_use]
    pub fn remarked(self, remarks: Option<Remarks>) -> Self {
        match remarks {
            None => self,
            Some(remarks) => Self::Remarked {
                said: Box::new(self),
                remarks,
            },
        }
    }

    /// The command without remarks.
    #[must_use]
    pub fn plain(&self) -> &Self {
        let mut plain = self;
        while let Self::Remarked { said, .. } = plain {
            plain = said;
        }
        plain
    }
}

/// See [`Command::Append`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// The task of the attempt; a part of another attempt than the present one is stale.
    pub task: TaskId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The lease under which the attempt runs outside the server; `None` for one of this process.
    pub lease: Option<LeaseId>,
    /// Its place among the parts of the attempt, from 1: one that is there already changes nothing.
    pub number: u32,
    /// The content: a piece of text or a JSON object.
    pub part: OutputPart,
}

/// See [`Command::Archive`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// Version of the last event that was copied; the flow must not have changed since.
    pub version: Version,
    /// Which flows may go.
    pub rest: Rest,
    /// Where the copy is.
    pub copy: FlowArchived,
}

/// See [`Command::Receive`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receive {
    /// The run, which must be on.
    pub run: RunId,
    /// What the sender calls the message; at most `limits::MESSAGE_ID_CHARS_MAX` characters.
    pub message_id: String,
    /// SHA-256 of its name and its text, in hexadecimal. The same message twice is one message.
    pub body_hash: String,
    /// The message; at most `limits::RUN_MESSAGE_BYTES_MAX` bytes.
    pub message: Payload,
    /// The answer that it is, to a task of the run.
    pub answers: Respond,
}

/// See [`Command::CancelRun`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelRun {
    /// The run, which must be on.
    pub run: RunId,
    /// Text for `error` of its tasks.
    pub reason: Option<String>,
}

/// See [`Command::Suspend`].
#[derive(Debug, Clone, PartialEq)]
pub struct Suspend {
    /// The task that asks.
    pub task: TaskId,
    /// Number of the attempt that asks, from 1.
    pub attempt: u32,
    /// The lease under which it runs outside the server; `None` for one of this process.
    pub lease: Option<LeaseId>,
    /// The new wait.
    pub suspension: SuspensionId,
    /// What is asked; at most `limits::QUESTION_BYTES_MAX` bytes.
    pub asked: Payload,
    /// The same, read.
    pub question: Question,
    /// What follows from an answer.
    pub on_answer: OnAnswer,
    /// What follows without one.
    pub on_expiry: OnExpiry,
}

/// See [`Command::Respond`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Respond {
    /// The task that has asked.
    pub task: TaskId,
    /// Identifies the wait that is answered.
    pub suspension: SuspensionId,
    /// What is said: an object with `value`.
    pub answer: Payload,
    /// The principal that says it.
    pub responded_by: String,
    /// The person on whose behalf the principal answers, if it names one.
    pub on_behalf_of: Option<String>,
    /// What follows.
    pub then: Then,
}

/// What follows from an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// The task is ready again.
    Continue,
    /// The task completes with this result.
    Complete(Payload),
    /// The task fails with this error.
    Decline(String),
}

/// See [`Command::Claim`]. Accepted without events, and with the status `Pending`, when there is nothing that
/// could start now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// What it is about.
    pub of: Claimable,
    /// New leases, never empty: as many attempts begin at most, the first with the first. The same claim
    /// twice is one claim.
    pub leases: Vec<LeaseId>,
    /// The worker, by its name; at most `limits::KEY_CHARS_MAX` characters.
    pub worker: String,
    /// The principal that claims, who alone may use the leases; `None` for anybody.
    pub holder: Option<String>,
    /// Until when the leases hold unless they are renewed.
    pub expires_at: Timestamp,
}

/// The work that a worker asks to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimable {
    /// This task, which must be ready.
    Task(TaskId),
    /// The first ready tasks of a method, by their rank.
    Next {
        /// As the tasks name it.
        method: String,
        /// Tasks behind this rank are left, but for the first one: others have a better right to the worker.
        until: Option<(Priority, Timestamp)>,
    },
}

/// How much at rest a flow must be to be archived. Nothing of it may run in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Every task has completed, failed or was cancelled.
    Finished,
    /// Tasks may be pending still: never executed, or blocked.
    Idle,
}

/// See [`Command::Execute`].
#[derive(Debug, Clone, PartialEq)]
pub struct Execute {
    /// Tasks to create first; empty for a stored task.
    pub create: Vec<NewTask>,
    /// The task that is asked for.
    pub task: TaskId,
    /// Execute or retry.
    pub kind: RunKind,
    /// Which failed tasks run again.
    pub include: Include,
    /// The id of the new run.
    pub run_id: RunId,
    /// Whether tasks may wait for an executor that does not exist yet.
    pub allow_unknown_executors: bool,
    /// Milliseconds that they wait.
    pub executor_wait_ms: u64,
    /// How long its tasks wait that do not say so themselves.
    pub wait_bounds: WaitBounds,
    /// Where its caller wants to be told of it.
    pub callback: Option<CallbackId>,
    /// The message that it is begun by.
    pub origin: Option<Box<RunOrigin>>,
}

/// See [`Command::Update`].
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// Must be in the flow. Which members may change depends on its status.
    pub task: TaskId,
    /// What to change.
    pub updates: Updates,
    /// The resolved `dependencies` of `updates`.
    pub dependencies: Option<Vec<Dependency>>,
    /// The resolved `parent_id` of `updates`; `Some(None)` asks for a root.
    pub parent: Option<Option<TaskId>>,
    /// The specification as it is, and the version of the event that holds it; needed when inputs,
    /// schemas or params change.
    pub current: Option<(Version, Specification)>,
    /// What results that are there have of what the task needs of them; `None`: nobody has looked, and a claim
    /// finds out.
    pub looked: Option<Looked>,
    /// When the owner of the flow may change with it.
    pub handover: Handover,
}

/// When an update may give a flow to another owner. Whoever sends the command knows what its caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Handover {
    /// While its root is pending, like the other members of what is to be done.
    #[default]
    WhilePending,
    /// Whenever no attempt of the flow is under way, whatever has ended: for those who answer for the flows of all
    /// users.
    WhileIdle,
}

/// Findings in the results of the dependencies of a task that is updated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Looked {
    /// Completed tasks whose results were looked into.
    pub at: Vec<TaskId>,
    /// References, as they are stored, without a value there.
    pub absent: Vec<String>,
}

/// The tasks that a new run starts, those that must wait for others or may stay blocked included. Groups are not among
/// them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WillRun {
    /// The first of them in order of creation; at most `limits::WILL_RUN_LISTED_MAX`.
    pub tasks: Vec<TaskId>,
    /// How many there are.
    pub count: u32,
}

/// Which failed tasks a run of stored tasks runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Include {
    /// Those that were asked for and were not tolerated, and those that something that runs needs.
    #[default]
    Needed,
    /// Also tolerated ones, and those behind completed dependencies.
    Failed,
}

/// The effect of an accepted command, for the answer to its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// Nothing to tell.
    Ok,
    /// The status of the task that was addressed.
    Status(Status),
    /// A run has begun.
    Begun(Arc<WillRun>),
    /// A claim was refused: inputs of the task cannot be resolved, or not yet.
    /// [`Flow::claim_fault`](super::Flow::claim_fault) says why.
    ClaimRefused,
}

/// The port through which rules ask about the server.
pub trait Capacity {
    /// Whether an executor of this name exists.
    fn knows(&self, method: &str) -> bool;
    /// Whether its attempts are started by claims of workers outside the server, never by the flow
    /// itself. Only of an executor that exists.
    fn is_remote(&self, _method: &str) -> bool {
        false
    }
    /// Whether running the same attempt twice does no harm; false for an unknown executor.
    fn is_idempotent(&self, method: &str) -> bool;
    /// The name of the executor behind an alias; the same text when it is none. Names that share
    /// it share slots.
    fn canonical_name<'a>(&'a self, method: &'a str) -> &'a str {
        method
    }
    /// Takes a slot for an attempt if one is free and nobody with a better rank waits for it; else
    /// remembers that this flow waits with this rank.
    fn take_slot(&mut self, attempt: &SlotRequest<'_>) -> bool;
}

/// An attempt that wants to start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlotRequest<'a> {
    /// Name of the executor whose slot is wanted.
    pub method: &'a str,
    /// Ready, and covered by a run.
    pub task: TaskId,
    /// The attempt to be.
    pub attempt: u32,
    /// Its urgency.
    pub priority: Priority,
    /// When it became ready.
    pub since: Timestamp,
    /// The owner of the flow; `None`: nobody.
    pub owner: Option<&'a str>,
    /// A worker outside the server claims it: whoever lets it claim has counted it.
    pub is_claimed: bool,
}

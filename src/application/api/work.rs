//! Requests and replies of workers, which carry out tasks outside the server.

mod output;

pub use output::{Appends, Output};

use super::Origin;
pub use crate::application::claim_ends::{ClaimEnd, ClaimWatch, HeldClaims};
pub use crate::application::service::Connected;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::contract::Breach;
use taskledger_domain::flow::{Remarks, Turn};
use taskledger_domain::task::{Progress, Status};
use taskledger_domain::{
    FlowId, LeaseId, Payload, RunId, SuspensionId, TaskId, Timestamp, Version,
};
use taskledger_projections::TaskRow;
pub use taskledger_workers::{Connection, Method, is_unseen};

/// A worker asks for tasks.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Its name; the principal's unless it is said.
    pub worker: Option<Arc<str>>,
    /// The methods, the task or the earlier attempts that the worker asks for.
    pub wanted: Wanted,
    /// At most so many, from 1 to `limits::CLAIMS_MAX`.
    pub max: usize,
    /// Milliseconds that the leases hold unless they are renewed.
    pub lease_ms: u64,
    /// How long it waits for the first one.
    pub wait: Duration,
    /// How it is connected.
    pub connection: Connection,
    /// When it was last heard of: it may have stood still since, and not know that it has lost what it held.
    pub heard_at: tokio::time::Instant,
}

/// The tasks that a worker asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wanted {
    /// The best ones of these methods.
    Methods(Arc<[Arc<str>]>),
    /// This one.
    Task(TaskId),
    /// Those that it has begun already, through something that is gone: it has come back.
    Left(Left),
}

/// Attempts of a worker under leases that nobody keeps for it any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Left {
    /// The leases that are named here.
    These(Arc<[LeaseId]>),
    /// Those that a server has found in the log and nobody has renewed since, or for some time.
    Silent {
        /// Only leases of these methods.
        methods: Arc<[Arc<str>]>,
        /// And of those that begin so.
        beginnings: Arc<[Arc<str>]>,
        /// For how many milliseconds, where another node may be renewing them.
        silent_ms: u64,
    },
}

/// The answer to a claim.
#[derive(Debug, Clone, Default)]
pub struct Claims {
    /// Attempts that have begun; empty when there was nothing in time.
    pub claims: Vec<Claimed>,
    /// The worker gets nothing any more, because somebody drains it.
    pub draining: bool,
    /// The worker has lost a lease since it was last heard of, and gets nothing until it says something.
    pub silent: bool,
}

/// An attempt that a worker has begun.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// The task as it stands.
    pub task: Arc<TaskRow>,
    /// What the attempt works on.
    pub input: Payload,
    /// Where values of it came from; `None`: all of them are literal.
    pub lineage: Option<Vec<Origin>>,
    /// When the attempt must have ended, ancestors' deadlines included.
    pub deadline: Option<Timestamp>,
    /// Milliseconds that the attempt may take.
    pub timeout_ms: Option<u64>,
    /// What the run of a workflow document was started with; absent for tasks that are no phase of one.
    pub trigger: Option<Payload>,
    /// The message with which the run began; absent for runs that began without one.
    pub message: Option<OriginMessage>,
    /// The trace of the call that began the run.
    pub trace: Option<Arc<str>>,
    /// What the task has asked people in earlier attempts of the run, and was answered.
    pub answers: Vec<AnsweredBefore>,
    /// What everything that the worker says of it must present.
    pub lease: LeaseId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Until when the lease holds unless it is renewed.
    pub expires_at: Timestamp,
    /// Milliseconds that it holds after each renewal, unless the renewal says otherwise.
    pub lease_ms: u64,
}

/// What a worker learns of the message that began a run, beside the inputs that the door made of its content.
#[derive(Debug, Clone, PartialEq)]
pub struct OriginMessage {
    /// The conversation that the run belongs to.
    pub context_id: Arc<str>,
    /// What its sender calls the message.
    pub message_id: Option<String>,
    /// Free-form members that the sender has added.
    pub metadata: Option<Payload>,
    /// Runs that the message refers to; those of the owner of the flow only.
    pub references: Vec<RunId>,
}

impl OriginMessage {
    /// Bytes that a claim has for it, roughly.
    pub(crate) fn bytes(&self) -> usize {
        /// An id as text, with its quotes.
        const ID_BYTES: usize = 40;
        let metadata = self.metadata.as_ref().map_or(0, |it| it.as_str().len());
        let message_id = self.message_id.as_ref().map_or(0, String::len);
        self.context_id.len() + message_id + metadata + self.references.len() * ID_BYTES
    }
}

impl Claimed {
    /// How to give the attempt back.
    #[must_use]
    pub fn release(&self) -> Release {
        Release {
            task: self.task.id,
            lease: self.lease,
        }
    }
}

/// What the node that owns a flow knows of a claim; the rest is read where the worker is connected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// The flow that the task belongs to.
    pub flow: FlowId,
    /// The task that the worker does.
    pub task: TaskId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Identifies the lease; the worker presents it in later calls.
    pub lease: LeaseId,
    /// Until when it holds.
    pub expires_at: Timestamp,
    /// See [`Claimed`].
    pub lease_ms: u64,
    /// See [`Claimed`].
    pub deadline: Option<Timestamp>,
    /// See [`Claimed`].
    pub trace: Option<Arc<str>>,
    /// What the task has asked people before, and was answered.
    pub turns: Vec<Turn>,
    /// The dependencies that have completed, with the versions of the events that hold their results.
    pub results: Vec<(TaskId, Version)>,
    /// The event that holds the message with which the run began, if it began with one.
    pub origin_at: Option<Version>,
}

/// A worker asks one node, which does not wait, for tasks of flows that it owns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClaimHere {
    /// The name that the worker gives itself.
    pub worker: Arc<str>,
    /// The methods, the task or the earlier attempts that the worker asks for.
    pub wanted: Wanted,
    /// At most so many.
    pub max: usize,
    /// See [`Claim`].
    pub lease_ms: u64,
    /// How long ago it was last heard of, when it was sent; in milliseconds.
    pub silent_ms: u64,
}

/// A node has tasks that no worker of its own wants.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hint {
    /// The node that has the tasks.
    pub node: uuid::Uuid,
    /// The methods, each with how many tasks there are, as far as they were counted, and who has declared it for
    /// themselves.
    pub methods: Vec<(Arc<str>, usize, Option<Arc<str>>)>,
}

/// A worker keeps its attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Renew {
    /// The task that the worker holds.
    pub task: TaskId,
    /// The lease that the worker was given with the task.
    pub lease: LeaseId,
    /// Milliseconds that it holds from now on, even if that is less than what is left of it; as claimed, or what is
    /// left, unless it is said.
    pub lease_ms: Option<u64>,
    /// How far it is.
    pub progress: Option<Progress>,
    /// What it says of that; at most `limits::MESSAGE_CHARS_MAX` characters.
    pub message: Option<String>,
    /// The same in detail.
    pub remarks: Option<Remarks>,
    /// What it has made of its output since the last time.
    pub output: Option<Appends>,
}

/// A worker has a result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Complete {
    /// The task that is done.
    pub task: TaskId,
    /// The lease that the worker was given with the task.
    pub lease: LeaseId,
    /// The result as JSON.
    pub output: Output,
    /// What it says beside it.
    pub remarks: Option<Remarks>,
}

/// A worker could not do it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Fail {
    /// The task whose attempt failed.
    pub task: TaskId,
    /// The lease that the worker was given with the task.
    pub lease: LeaseId,
    /// Why; never empty.
    pub error: String,
    /// Whether another attempt may end otherwise.
    pub retryable: bool,
    /// Whether its worker does not do it, whatever another attempt might: then none follows.
    pub rejected: bool,
    /// What it says beside it.
    pub remarks: Option<Remarks>,
    /// The contract that was not kept, where the server itself ends the attempt for it; says `error`, too.
    pub breach: Option<Box<Breach>>,
}

/// A worker gives an attempt back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Release {
    /// The task that is given back.
    pub task: TaskId,
    /// The lease that the worker was given with the task.
    pub lease: LeaseId,
}

/// A worker has its task wait for a person, and gives up its attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Suspend {
    /// The task that asks.
    pub task: TaskId,
    /// The lease that the worker was given with the task.
    pub lease: LeaseId,
    /// What is asked, in the form of [`taskledger_domain::question`].
    pub request: Payload,
}

/// A task waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspended {
    /// The task that waits from now on.
    pub task: TaskId,
    /// Names the wait.
    pub suspension: SuspensionId,
    /// When nobody will answer any more; `None` for never.
    pub expires_at: Option<Timestamp>,
}

/// A person answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Respond {
    /// The task that has asked.
    pub task: TaskId,
    /// Identifies the wait that is answered.
    pub suspension: SuspensionId,
    /// An object with the answer as `value`.
    pub answer: Payload,
    /// The person on whose behalf the caller answers, if it names one.
    pub on_behalf_of: Option<String>,
}

/// An answer was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Responded {
    /// The task whose question is answered.
    pub task: TaskId,
    /// The wait, which is over.
    pub suspension: SuspensionId,
    /// How the task stands now.
    pub status: Status,
    /// An object with the answer as `value`.
    pub answer: Payload,
    /// What people read of the choice.
    pub choice_label: Option<String>,
    /// The principal that answered.
    pub responded_by: String,
}

/// A question that was answered before this attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredBefore {
    /// Identifies the wait.
    pub suspension: SuspensionId,
    /// What was asked.
    pub question: Payload,
    /// An object with the answer as `value`.
    pub answer: Payload,
    /// The principal that answered; `None`: nobody did, and this is what stands for an answer then.
    pub responded_by: Option<String>,
    /// When it was answered.
    pub at: Timestamp,
}

/// Somebody asks by which lease a worker holds a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LeaseOf {
    /// The task that is held.
    pub task: TaskId,
    /// The worker, of the caller's principal.
    pub worker: Arc<str>,
}

/// The lease and attempt by which a worker holds a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldLease {
    /// The lease that the worker presents in later calls.
    pub lease: LeaseId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Until when it holds.
    pub expires_at: Timestamp,
}

/// A worker wants the result of another task below the same parent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SiblingOutput {
    /// The task that it holds.
    pub task: TaskId,
    /// The lease that the worker was given with the held task.
    pub lease: LeaseId,
    /// The name or id of the other task.
    pub name: String,
}

/// A task beside another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sibling {
    /// The task beside the held one.
    pub task: TaskId,
    /// The name that callers gave the task.
    pub name: Arc<str>,
    /// How it stands.
    pub status: Status,
    /// Its result, once it has completed.
    pub output: Option<Payload>,
}

/// Why a worker should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// Somebody cancelled the task.
    Cancelled,
    /// The attempt has taken as long as it may.
    TimedOut,
    /// The deadline has passed.
    Deadline,
}

/// The answer to a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewed {
    /// Until when the lease holds, or the worker has to stop.
    pub expires_at: Timestamp,
    /// Why it should stop; nothing that it says changes anything then.
    pub stop: Option<StopReason>,
}

/// The status of a task after a worker's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The task that was ended.
    pub task: TaskId,
    /// How it stands.
    pub status: Status,
    /// When it may be claimed again, if that is later than now.
    pub next_attempt_at: Option<Timestamp>,
}

/// Why a lease does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseLoss {
    /// Its attempt has ended by its worker's word.
    Ended,
    /// Its attempt took longer than it may.
    TimedOut,
    /// The deadline of the task has passed.
    Deadline,
    /// The task was cancelled.
    Cancelled,
    /// It was not renewed in time.
    Lost,
    /// Nobody knows it, or it is another principal's.
    Unknown,
}

/// A method as a caller declares it.
#[derive(Debug, Clone)]
pub struct Declare {
    /// Name of the method, as tasks name it.
    pub method: Arc<str>,
    /// What the method does, in words for people.
    pub description: Option<Arc<str>>,
    /// The JSON Schema of inputs.
    pub input_schema: Option<Payload>,
    /// The JSON Schema of outputs.
    pub output_schema: Option<Payload>,
    /// Members of `params` that new tasks get when they do not say.
    pub defaults: Option<Payload>,
    /// Attempts at once, all nodes together.
    pub limit: Option<u32>,
}

/// A method whose tasks workers claim.
#[derive(Debug, Clone)]
pub struct MethodView {
    /// Name of the method, as tasks name it.
    pub method: Arc<str>,
    /// The user for whose flows alone it was declared.
    pub owner: Option<Arc<str>>,
    /// As it was declared, if it was.
    pub declared: Option<Arc<Method>>,
    /// Workers that ask for it now.
    pub workers: usize,
    /// Attempts under way, as far as the caller may know of them.
    pub running: usize,
    /// Tasks that wait for a worker, as far as the caller sees them.
    pub waiting: usize,
    /// When one last asked.
    pub last_asked_at: Option<Timestamp>,
}

/// A worker that asks for work, or holds some.
#[derive(Debug, Clone)]
pub struct WorkerView {
    /// The name that the worker gives itself.
    pub worker: Arc<str>,
    /// What it asks for.
    pub methods: Vec<Arc<str>>,
    /// How it last asked.
    pub connection: Connection,
    /// Since when it has asked without a long pause.
    pub since: Timestamp,
    /// When it last asked.
    pub last_seen_at: Timestamp,
    /// Whether it gets no more.
    pub draining: bool,
    /// Attempts that it holds.
    pub held: usize,
    /// The first of them.
    pub tasks: Vec<HeldTask>,
    /// The node that it is connected to; absent for a server that is alone.
    pub node: Option<uuid::Uuid>,
}

/// The attempts that a worker holds in flows of a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeldBy {
    /// The name that the worker gives itself.
    pub worker: Arc<str>,
    /// Its principal; absent for a lease that anybody may use.
    pub principal: Option<Arc<str>>,
    /// Attempts.
    pub held: usize,
    /// The first of them.
    pub tasks: Vec<HeldTask>,
}

/// Tasks of a method of the flows of a node, as far as the caller may know of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MethodFigures {
    /// Name of the method.
    pub method: Arc<str>,
    /// Who has declared it for themselves.
    pub owner: Option<Arc<str>>,
    /// Attempts under way.
    pub running: usize,
    /// Tasks that wait for a worker.
    pub waiting: usize,
}

/// A task that a worker holds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct HeldTask {
    /// The task that is held.
    pub task: TaskId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Until when its lease holds.
    pub expires_at: Timestamp,
}

/// Whether a worker is drained.
#[derive(Debug, Clone)]
pub struct Drained {
    /// The name that the worker gives itself.
    pub worker: Arc<str>,
    /// Whether it gets no more.
    pub draining: bool,
    /// Attempts that it holds.
    pub held: usize,
    /// Whether a worker of this name is known now, or holds something.
    pub present: bool,
}

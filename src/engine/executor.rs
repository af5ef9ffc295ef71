//! Executors, which run tasks. Implement [`Executor`], register it in a [`Registry`], name it in `schemas.method`.
//! `examples/custom_executor.rs` does so in twenty lines.

mod a2a;
mod aggregate_results;
mod approval;
mod built_in;
pub mod command;
mod conformance;
mod echo;
mod http;
mod output;
mod past;
mod references;
mod registry;
mod run;
mod sleep;
mod system_info;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;

pub use a2a::A2aExecutor;
pub use aggregate_results::AggregateResultsExecutor;
pub use approval::ApprovalExecutor;
pub use built_in::{BuiltInError, BuiltInOptions, START_PROGRAMS, with_built_ins};
pub use command::CommandExecutor;
pub use conformance::ConformanceExecutor;
pub use echo::EchoExecutor;
pub use http::HttpExecutor;
pub use output::Output;
pub use past::{Answered, Keeper, Notes, Past};
pub use registry::{Registered, Registry, RegistryBuilder, RegistryError};
pub use run::{
    ABORT_GRACE, Asked, AttemptOutcome, RESULT_DEPTH_MAX, STOP_GRACE, TimeLimits, run_at_once,
    run_attempt,
};
pub use sleep::SleepExecutor;
pub use system_info::SystemInfoExecutor;

use super::secrets::SecretTexts;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::SecretName;
use taskledger_domain::task::{Progress, Status};
use taskledger_domain::{FlowId, RunId, TaskId, Timestamp, Violation};
use tokio_util::sync::CancellationToken;

/// How many attempts of one executor may run at once on this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// For executors that mostly wait (timers, sockets): [`Concurrency::WAITING_DEFAULT`].
    Waiting,
    /// For executors that keep a core busy: the number of cores.
    Cores,
    /// Exactly so many.
    Fixed(usize),
}

impl Concurrency {
    /// Attempts at once of an executor that mostly waits.
    pub const WAITING_DEFAULT: usize = 256;
}

/// The description of an executor. Shown by `system.executors`.
#[derive(Debug, Clone)]
pub struct Description {
    /// The name for `schemas.method`; unique in a registry, not empty.
    pub name: String,
    /// Other names for the same executor.
    pub aliases: Vec<String>,
    /// One sentence for people.
    pub summary: String,
    /// True: running the same attempt twice does no harm, so it may be run again after a crash.
    pub idempotent: bool,
    /// True: the result follows from the job alone, at once. Nothing outside is read, changed or waited
    /// for, so an attempt runs where its start is decided, and both become one append. It keeps the
    /// thread meanwhile: what takes longer than some ten microseconds is not for this.
    pub pure: bool,
    /// JSON Schema (draft-07) that `inputs` must conform to.
    pub input_schema: Option<Value>,
    /// How many may run at once unless the configuration says otherwise.
    pub concurrency: Concurrency,
}

/// The outcome of a dependency of the task.
#[derive(Debug, Clone)]
pub struct DependencyOutcome {
    /// The id of the dependency.
    pub id: TaskId,
    /// The name that callers gave the dependency.
    pub name: String,
    /// A terminal status.
    pub status: Status,
    /// Its result when it completed.
    pub result: Option<Map<String, Value>>,
    /// Its error when it did not.
    pub error: Option<String>,
}

/// One attempt: everything that an executor may know of it.
#[derive(Debug, Clone)]
pub struct Job {
    /// The flow that the task belongs to.
    pub flow_id: FlowId,
    /// The run that started it.
    pub run_id: RunId,
    /// The same for all attempts of the task; with `attempt` it names this one.
    pub task_id: TaskId,
    /// From 1, never restarts. Names this attempt; [`Job::idempotency_key`] names the work that it repeats.
    pub attempt: u32,
    /// The task's name.
    pub name: String,
    /// `inputs`, valid against the task's and the executor's schema.
    pub inputs: Map<String, Value>,
    /// `params`, or an empty object.
    pub params: Map<String, Value>,
    /// `schemas`: the method and the schemas that the task declares.
    pub schemas: Map<String, Value>,
    /// How the task's dependencies ended, in the order in which the task lists them. One that can no longer run and
    /// that the task did not wait for (`when: "always"`) is not among them.
    pub dependencies: Vec<DependencyOutcome>,
    /// When the attempt ends by itself, if it does: the earlier of time-out and deadline.
    pub ends_at: Option<Timestamp>,
    /// Cancelled when the attempt must stop: cancel, time-out, deadline, shutdown. An executor that
    /// ignores it is dropped at its next `.await`.
    pub cancel: CancellationToken,
    /// Cancelled before `cancel` when the attempt is over for good: it was cancelled, or is out of time. Not
    /// when the server stops or the flow moves to another node, where an attempt goes on from what this one has kept.
    pub over: CancellationToken,
    /// Where to report progress.
    pub progress: ProgressReporter,
    /// What earlier attempts have left, for executors that ask for it ([`Executor::remembers`]).
    pub past: Past,
    /// Where to keep notes for later attempts.
    pub notes: Notes,
    /// Where to tell what the attempt has made of its output before it ends.
    pub output: Output,
    /// W3C `traceparent` to pass on to whatever is called.
    pub traceparent: Option<Arc<str>>,
    /// The secrets that [`Executor::secrets`] found in the inputs. They are removed from the result or error
    /// of the attempt; an executor that cuts or encodes what it was told removes them before.
    pub secrets: SecretTexts,
}

impl Job {
    /// The key under which receivers recognise the work: the same for all attempts of the task in a run, so that a call
    /// whose answer was lost is not carried out twice. Another run is another order and has another key.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        format!("{}-{}", self.run_id, self.task_id)
    }
}

/// The executor's message that an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ExecutorError {
    text: String,
    follows: Follows,
    not_before: Option<Duration>,
}

/// What follows a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// Another attempt, if the task has retries left.
    Attempt,
    /// Nothing: another attempt would end the same way.
    Nothing,
    /// Nothing: whoever was to do it does not.
    Rejection,
}

impl ExecutorError {
    /// A failure with this text. Another attempt follows if the task has retries left.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            follows: Follows::Attempt,
            not_before: None,
        }
    }

    /// The same failure, after which no attempt follows: it would end the same way.
    #[must_use]
    pub fn not_retryable(mut self) -> Self {
        self.follows = Follows::Nothing;
        self
    }

    /// The same failure, after which the next attempt waits at least so long: the other side has asked for it.
    #[must_use]
    pub const fn retry_after(mut self, pause: Option<Duration>) -> Self {
        self.not_before = pause;
        self
    }

    /// The same failure, because whoever was to do the task does not: a policy, not a fault. No attempt follows.
    #[must_use]
    pub fn rejected(mut self) -> Self {
        self.follows = Follows::Rejection;
        self
    }

    /// Whether whoever was to do the task does not.
    #[must_use]
    pub const fn is_rejected(&self) -> bool {
        matches!(self.follows, Follows::Rejection)
    }

    /// Whether another attempt may do better.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self.follows, Follows::Attempt)
    }
}

/// The codes that `params.retry` lists under this name; `None`: no such list.
fn retry_codes(params: &Map<String, Value>, list: &str) -> Option<Vec<u64>> {
    let codes = params.get("retry")?.get(list)?.as_array()?;
    Some(codes.iter().filter_map(whole).collect())
}

/// A whole number that is not negative, which JSON Schema takes as `1.0` too.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it is whole and within bounds
fn whole(value: &Value) -> Option<u64> {
    /// Larger doubles have no fraction.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let of_double =
        |it: f64| (it.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&it)).then_some(it as u64);
    value
        .as_u64()
        .or_else(|| value.as_f64().and_then(of_double))
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Asks {
    /// In the form of [`taskledger_domain::question`].
    pub question: Map<String, Value>,
    /// Whether the answer `false` fails the task.
    pub declines: bool,
}

/// The end of an attempt that has not failed.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// With a result, which must be a JSON object.
    Result(Value),
    /// With a question to a person, in the form of [`taskledger_domain::question`]. The task waits without a slot; its
    /// next attempt is given the answer.
    Asks(Map<String, Value>),
}

/// Reports how far an attempt is. Cheap to call at any rate: only the latest value is looked at,
/// at most once a second.
#[derive(Debug, Clone)]
pub struct ProgressReporter(Arc<tokio::sync::watch::Sender<Progress>>);

impl ProgressReporter {
    /// A reporter, and where its latest value is seen.
    #[must_use]
    pub fn new() -> (Self, tokio::sync::watch::Receiver<Progress>) {
        let (tx, rx) = tokio::sync::watch::channel(Progress::ZERO);
        (Self(Arc::new(tx)), rx)
    }

    /// `fraction` of the attempt is done; 0.0 to 1.0.
    pub fn report(&self, fraction: f64) {
        self.0.send_replace(Progress::from(fraction));
    }
}

/// Runs attempts of tasks.
#[async_trait]
pub trait Executor: Send + Sync + 'static {
    /// What it is. Called once, at registration.
    fn describe(&self) -> Description;

    /// The members of a task's `params` that it reads, beside those of the engine (`timeout_seconds`,
    /// `retry_count`, `retry`, `deadline`). Tasks with other members are then refused. `None`: any are
    /// taken, except what looks like a member of the engine. Called once, at registration.
    fn params(&self) -> Option<Vec<String>> {
        None
    }

    /// Whether it starts programs on this machine: callers need the scope `exec:local` for its tasks. Must
    /// not change. Nodes of one database need the same executors of this kind, because the scope is checked by the node
    /// that takes the call; only built-in ones are known where they are off.
    fn starts_programs(&self) -> bool {
        false
    }

    /// What is wrong with inputs, beyond what a schema can say or in better words; at paths from their
    /// root. Asked of executors that have a schema, when a task is created, so it must be quick and
    /// must not wait.
    fn check(&self, _inputs: &Map<String, Value>) -> Vec<Violation> {
        Vec::new()
    }

    /// The secrets that inputs name, at the places where this executor uses them. They are opened for the
    /// owner of the flow and come with the [`Job`]. Must be quick.
    fn secrets(&self, _inputs: &Map<String, Value>) -> Vec<SecretName> {
        Vec::new()
    }

    /// What a person is asked in place of running anything: the task is suspended until somebody answers, and the
    /// answer is its result. Must be quick.
    ///
    /// # Errors
    /// [`ExecutorError`]: the attempt failed.
    fn asks(&self, _inputs: &Map<String, Value>) -> Result<Option<Asks>, ExecutorError> {
        Ok(None)
    }

    /// Whether [`Job::past`] says what earlier attempts have left. Costs reading the log for attempts behind the
    /// first. Must not change.
    fn remembers(&self) -> bool {
        false
    }

    /// Whether an attempt that has asked a person leaves something outside, which [`Executor::give_up`] stops. Must not
    /// change.
    fn leaves_something(&self) -> bool {
        false
    }

    /// Stops what an attempt has left outside when it asked `question`: the task has ended before anybody answered.
    /// `job` is that of the attempt. What it says is of no interest; dropped when the server stops.
    async fn give_up(&self, _job: Job, _question: Map<String, Value>) {}

    /// Runs one attempt. The result must be a JSON object.
    ///
    /// # Errors
    /// [`ExecutorError`]: the attempt failed; the text becomes the task's `error`.
    async fn execute(&self, job: Job) -> Result<Value, ExecutorError>;

    /// The same for executors that may find out on the way that a person has to be asked. Others leave it as it is.
    ///
    /// # Errors
    /// [`ExecutorError`]: the attempt failed.
    async fn attempt(&self, job: Job) -> Result<Ended, ExecutorError> {
        self.execute(job).await.map(Ended::Result)
    }
}

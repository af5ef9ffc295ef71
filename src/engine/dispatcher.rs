//! Runs the attempts that flows have started, and reports how they end.
//!
//! An attempt is launched from the durable append that holds its start. It is *alive* until its
//! outcome is recorded, so that nobody takes it for interrupted in between. Its slot is free as
//! soon as its executor has ended. Attempts of pure executors are not launched but ended in the turn
//! that starts them, when what they need is at hand and small.

mod ends;
mod given;
mod giving_up;
mod outputs;

use super::directory::ExecutorDirectory;
use super::executor::{AttemptOutcome, TimeLimits, run_at_once, run_attempt};
use super::executor::{Job, Notes, Output, Past, ProgressReporter};
use super::job_source::{JobSource, Material, MaterialError};
use super::past::InTheLog;
use super::secrets::SecretTexts;
use crate::application::ports::{Attempts, Secrets, Started, Undurable};
use crate::application::{Flows, Partitions, Validation};
use crate::clock::SharedClock;
use crate::meters::{Buckets, FirstUse, Histogram};
use crate::store;
use ends::end_of;
use futures_util::FutureExt;
use giving_up::GIVING_UP_AT_ONCE_MAX;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;
use taskledger_domain::flow::{Command, FailureReason};
use taskledger_domain::partition;
use taskledger_domain::task::Progress;
use taskledger_domain::{FlowId, Payload, TaskId, Timestamp, Version};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The shortest time between two recorded reports of progress of an attempt.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Pause before the log is asked again for what an attempt needs.
const PREPARE_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// Bytes of inputs and of results of dependencies up to which an attempt may end in the turn that
/// starts it, which others wait for: some hundred microseconds of parsing and writing.
const BYTES_AT_ONCE_MAX: usize = 64 * 1024;
/// Steps of checking its inputs against schemas up to which it may: 150 microseconds.
const STEPS_AT_ONCE_MAX: u64 = 10_000;
/// The smallest recorded change of progress, in millionths.
pub const PROGRESS_STEP: u32 = 10_000;

type Key = (TaskId, u32);

/// How an attempt is stopped.
#[derive(Debug, Clone)]
struct Alive {
    cancel: CancellationToken,
    /// Cancelled first if the attempt is over for good.
    over: CancellationToken,
}

/// Launches attempts and ends them; one for each server. Knows the flows weakly, because they hold it.
pub struct Dispatcher {
    flows: Weak<Flows>,
    directory: Arc<ExecutorDirectory>,
    source: JobSource,
    validation: Arc<Validation>,
    secrets: Arc<dyn Secrets>,
    clock: SharedClock,
    alive: Mutex<HashMap<FlowId, HashMap<Key, Alive>>>,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// Attempts whose executors stop what they have left.
    giving_up: Semaphore,
    /// How long executors ran.
    times: FirstUse<Histogram>,
    me: Weak<Self>,
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher")
            .field("attempts", &self.tasks.len())
            .finish_non_exhaustive()
    }
}

impl Dispatcher {
    /// A dispatcher that reports to `flows`.
    #[must_use]
    pub fn new(
        flows: &Arc<Flows>,
        directory: Arc<ExecutorDirectory>,
        source: JobSource,
        validation: Arc<Validation>,
        secrets: Arc<dyn Secrets>,
        clock: SharedClock,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            flows: Arc::downgrade(flows),
            directory,
            source,
            validation,
            secrets,
            clock,
            alive: Mutex::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            giving_up: Semaphore::new(GIVING_UP_AT_ONCE_MAX),
            times: FirstUse::new(|| Histogram::new(&Buckets::ATTEMPTS)),
            me: me.clone(),
        })
    }

    /// How long executors of this process ran, one attempt after the other.
    #[must_use]
    pub const fn times(&self) -> &FirstUse<Histogram> {
        &self.times
    }

    /// Attempts under way.
    #[must_use]
    pub fn running(&self) -> usize {
        self.tasks.len()
    }

    /// Waits until the ends of all attempts are recorded; to be asked when none begins any more.
    pub async fn at_rest(&self) {
        // Closed it may still take more; it is only waited for then.
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Stops every executor and waits for them. Their attempts stay in progress in the log: the
    /// next start of the server treats them as interrupted.
    pub async fn shut_down(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn attempts(&self) -> MutexGuard<'_, HashMap<FlowId, HashMap<Key, Alive>>> {
        self.alive
            .lock()
            .expect("no code panics while it holds the attempts")
    }

    async fn attend(&self, started: Started, alive: Alive) {
        let Some(flows) = self.flows.upgrade() else {
            return;
        };
        let key = (started.launch.task, started.launch.attempt);
        // Whatever breaks, the slot is given back and the task does not stay in progress.
        let run = AssertUnwindSafe(self.run(&flows, &started, alive)).catch_unwind();
        let (outcome, progress) = run.await.unwrap_or_else(|_| {
            let error =
                "the attempt could not be carried out: an invariant of the server is broken"
                    .to_owned();
            (
                AttemptOutcome::Failed {
                    reason: FailureReason::Executor,
                    error,
                    retry_after: None,
                },
                Progress::ZERO,
            )
        });
        let (task, attempt) = key;
        let slot = flows.slots().held(&started.launch.method, task, attempt);
        let command = end_of(&started, outcome, progress, &*self.clock);
        if let Some(command) = command {
            flows.report_end(&started, command, slot, &self.stop).await;
        }
        let mut alive = self.attempts();
        if let Some(of_flow) = alive.get_mut(&started.flow) {
            of_flow.remove(&key);
            if of_flow.is_empty() {
                alive.remove(&started.flow);
            }
        }
    }

    async fn run(
        &self,
        flows: &Arc<Flows>,
        started: &Started,
        Alive { cancel, over }: Alive,
    ) -> (AttemptOutcome, Progress) {
        let failed = |reason, error: String| {
            let outcome = AttemptOutcome::Failed {
                reason,
                error,
                retry_after: None,
            };
            (outcome, Progress::ZERO)
        };
        let material = loop {
            match self.source.material(started).await {
                Ok(material) => break material,
                Err(MaterialError::TooLarge) => {
                    return failed(FailureReason::Executor, MaterialError::TooLarge.to_string());
                }
                Err(MaterialError::Unresolvable(breach)) => {
                    let reason = FailureReason::InvalidInputs;
                    let outcome = AttemptOutcome::Breached { reason, breach };
                    return (outcome, Progress::ZERO);
                }
                Err(MaterialError::Inputs(fault)) => {
                    return failed(FailureReason::InvalidInputs, fault.to_string());
                }
                Err(MaterialError::Store(store::Error::Unavailable(reason))) => {
                    tracing::warn!(task.id = %started.launch.task, reason, "an attempt waits for the log");
                    tokio::select! {
                        () = cancel.cancelled() => return (AttemptOutcome::Stopped, Progress::ZERO),
                        () = tokio::time::sleep(PREPARE_AGAIN_AFTER) => {}
                    }
                }
                Err(error) => {
                    tracing::error!(task.id = %started.launch.task, error = %error, "an attempt could not be prepared");
                    let text =
                        "the attempt could not be prepared: the log does not hold what it needs";
                    return failed(FailureReason::Executor, text.to_owned());
                }
            }
        };
        let executors = self.directory.newest();
        let Some(registered) = executors.get(&started.launch.method) else {
            let error = format!("executor `{}` not found", started.launch.method);
            return failed(FailureReason::ExecutorNotFound, error);
        };
        let faults = self
            .validation
            .check(None, vec![(Vec::new(), material.specification.clone())])
            .await;
        if !faults.is_empty() {
            let list: Vec<_> = faults
                .iter()
                .map(|v| format!("`{}`: {}, expected {}", v.field, v.reason, v.expected))
                .collect();
            return failed(
                FailureReason::InvalidInputs,
                format!("inputs do not conform: {}", list.join("; ")),
            );
        }
        let inputs = material.specification.inputs.to_map();
        let results = material.wired.as_ref().map(|it| it.results(&inputs));
        if let Some(name) = results.and_then(|results| registered.secret_in(&results)) {
            let error = format!(
                "a result that is wired to an input names the secret `{name}`; only `inputs` may"
            );
            return failed(FailureReason::InvalidInputs, error);
        }
        let named = registered.executor().secrets(&inputs);
        let secrets = match self.secrets(started, &named, &cancel).await {
            Ok(secrets) => secrets,
            Err(outcome) => return (outcome, Progress::ZERO),
        };
        let past = match registered.executor().remembers() {
            true => match self.past(flows, started, &cancel).await {
                Some(past) => past,
                None => return (AttemptOutcome::Stopped, Progress::ZERO),
            },
            false => Past::default(),
        };
        let now = self.clock.now();
        let limits = limits(started, &material, now);
        let (reporter, mut progress) = ProgressReporter::new();
        let notes = Notes::of(Arc::new(InTheLog {
            flows: flows.clone(),
            started: started.clone(),
            progress: progress.clone(),
            stop: self.stop.clone(),
        }));
        let mut job = job(started, material, inputs, limits, now, cancel, reporter);
        let output = Output::without(secrets.scrubber());
        (job.secrets, job.over, job.past, job.notes) = (secrets, over, past, notes);
        job.output = output.clone();
        let begun = Instant::now();
        let outcome = tokio::select! {
            outcome = run_attempt(registered, job, limits) => outcome,
            () = self.follow_output(flows, started, &output) => unreachable!("outputs are followed for ever"),
            () = self.follow_progress(flows, started, progress.clone()) => unreachable!("progress is followed for ever"),
        };
        self.times
            .of(registered.name())
            .observe_time(begun.elapsed());
        if outcome != AttemptOutcome::Stopped {
            self.rest_of_output(flows, started, &output).await;
        }
        let last = *progress.borrow_and_update();
        (outcome, last)
    }

    /// See [`Attempts::end_at_once`].
    fn at_once(
        &self,
        started: &Started,
        undurable: Undurable<'_>,
        bytes_left: &mut usize,
    ) -> Option<Command> {
        let executors = self.directory.newest();
        let registered = executors.get(&started.launch.method)?;
        let now = self.clock.now();
        let too_late = started.launch.deadline.is_some_and(|at| at <= now);
        if !registered.is_pure() || too_late || self.stop.is_cancelled() {
            return None;
        }
        let bytes_max = BYTES_AT_ONCE_MAX.min(*bytes_left);
        let (material, bytes) = self.source.at_hand(started, undurable, bytes_max)?;
        *bytes_left -= bytes;
        let specification = &material.specification;
        let faults = self
            .validation
            .check_at_once(specification, STEPS_AT_ONCE_MAX)?;
        if !faults.is_empty() {
            return None;
        }
        let inputs = material.specification.inputs.to_map();
        if !registered.executor().secrets(&inputs).is_empty() {
            return None;
        }
        let (reporter, progress) = ProgressReporter::new();
        let limits = limits(started, &material, now);
        let job = job(
            started,
            material,
            inputs,
            limits,
            now,
            CancellationToken::new(),
            reporter,
        );
        let begun = Instant::now();
        let outcome = run_at_once(registered, job)?;
        self.times
            .of(registered.name())
            .observe_time(begun.elapsed());
        end_of(started, outcome, *progress.borrow(), &*self.clock)
    }

    /// Records progress as it is reported, at most once a second and by steps of one percent.
    async fn follow_progress(
        &self,
        flows: &Arc<Flows>,
        started: &Started,
        mut progress: watch::Receiver<Progress>,
    ) {
        let (task, attempt) = (started.launch.task, started.launch.attempt);
        let mut recorded = 0;
        loop {
            if progress.changed().await.is_err() {
                // The executor let go of its reporter; the attempt ends by itself.
                std::future::pending::<()>().await;
            }
            let now = *progress.borrow_and_update();
            if now.millionths().abs_diff(recorded) < PROGRESS_STEP {
                continue;
            }
            recorded = now.millionths();
            flows
                .report(
                    started,
                    Command::Report {
                        task,
                        attempt,
                        progress: now,
                        message: None,
                        lease: None,
                    },
                    &self.stop,
                )
                .await;
            tokio::time::sleep(PROGRESS_INTERVAL).await;
        }
    }
}

fn limits(started: &Started, material: &Material, now: Timestamp) -> TimeLimits {
    TimeLimits {
        timeout: material.specification.timeout_ms.map(Duration::from_millis),
        deadline: started
            .launch
            .deadline
            // Never early: the run could end before the deadlines of what waits have passed.
            .map(|at| Duration::from_millis(at.ms_since(now) + 1)),
    }
}

fn job(
    started: &Started,
    material: Material,
    inputs: Map<String, Value>,
    limits: TimeLimits,
    now: Timestamp,
    cancel: CancellationToken,
    progress: ProgressReporter,
) -> Job {
    let object = |payload: Option<&Payload>| payload.map(Payload::to_map).unwrap_or_default();
    let ends_after = [limits.timeout, limits.deadline]
        .into_iter()
        .flatten()
        .min();
    Job {
        flow_id: started.flow,
        run_id: started.launch.run_id,
        task_id: started.launch.task,
        attempt: started.launch.attempt,
        name: material.name,
        inputs,
        params: object(material.specification.params.as_ref()),
        schemas: object(material.specification.schemas.as_ref()),
        dependencies: material.dependencies,
        ends_at: ends_after.map(|d| now.plus_ms(u64::try_from(d.as_millis()).unwrap_or(u64::MAX))),
        cancel,
        over: CancellationToken::new(),
        progress,
        past: Past::default(),
        notes: Notes::default(),
        output: Output::default(),
        traceparent: started.metadata.trace.clone(),
        secrets: SecretTexts::default(),
    }
}

impl Attempts for Dispatcher {
    fn end_at_once(
        &self,
        started: &Started,
        undurable: Undurable<'_>,
        bytes_left: &mut usize,
    ) -> Option<Command> {
        // Where it breaks, an attempt that is launched fails, and the flow lives on.
        let end = AssertUnwindSafe(|| self.at_once(started, undurable, bytes_left));
        std::panic::catch_unwind(end).unwrap_or(None)
    }

    fn launch(&self, started: Started) {
        let Some(me) = self.me.upgrade() else { return };
        let alive = Alive {
            cancel: self.stop.child_token(),
            over: CancellationToken::new(),
        };
        let key = (started.launch.task, started.launch.attempt);
        self.attempts()
            .entry(started.flow)
            .or_default()
            .insert(key, alive.clone());
        self.tasks
            .spawn(async move { me.attend(started, alive).await });
    }

    fn stop(&self, flow: FlowId, task: TaskId, attempt: u32) {
        let alive = self.attempts();
        if let Some(attempt) = alive
            .get(&flow)
            .and_then(|of_flow| of_flow.get(&(task, attempt)))
        {
            attempt.over.cancel();
            attempt.cancel.cancel();
        }
    }

    fn give_up(&self, attempt: Started, asked_at: Version) {
        if let Some(me) = self.me.upgrade() {
            self.tasks.spawn(me.gives_up(attempt, asked_at));
        }
    }

    fn forsake(&self, partitions: &Partitions) {
        self.attempts().retain(|flow, of_flow| {
            let leaves = partitions.contain(*flow);
            if leaves {
                of_flow.values().for_each(|it| it.cancel.cancel());
            }
            !leaves
        });
    }

    fn forsake_flow(&self, flow: FlowId) {
        let gone = self.attempts().remove(&flow);
        gone.iter()
            .flat_map(HashMap::values)
            .for_each(|it| it.cancel.cancel());
    }

    fn partitions(&self) -> Partitions {
        self.attempts().keys().copied().map(partition).collect()
    }

    fn alive(&self, flow: FlowId) -> Vec<Key> {
        self.attempts()
            .get(&flow)
            .map(|of_flow| of_flow.keys().copied().collect())
            .unwrap_or_default()
    }
}

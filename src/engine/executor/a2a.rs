//! `a2a_executor`: has another agent do the task, over Agent2Agent 1.0.
//!
//! What it promises: each URL, of the task and of the agent's card, passes the rules for receivers (`crates/net`); what
//! an agent sends is held within limits (`crates/a2a-client`); a message is not sent twice unless the agent takes
//! idempotency keys. The id of the agent's task is noted in the log before it is followed, so an attempt that a restart
//! interrupts goes on with that task. A question of the agent suspends the task; the answer goes to the agent's task.
//!
//! `inputs` reads and describes inputs, `http` is the way out, `outcome` makes results, failures and questions.

mod http;
mod inputs;
mod outcome;
mod pieces;
#[cfg(test)]
mod tests;

use super::http::PLACES;
use super::references;
use super::{
    Answered, Concurrency, Description, Ended, Executor, ExecutorError, Job, Notes,
    ProgressReporter,
};
use crate::egress::Egress;
use crate::engine::secrets::Scrubber;
use async_trait::async_trait;
use http::Guarded;
use inputs::{Asked, Place};
use outcome::Remote;
use pieces::Pieces;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use taskledger_a2a::event::TaskStatusUpdateEvent;
use taskledger_a2a::request::{SendMessageConfiguration, SendMessageRequest};
use taskledger_a2a::{ErrorKind, Message, Part, StreamResponse, Task, TaskState};
use taskledger_a2a_client::{Agent, Error, NODES, Retry, Turn, Unwatched, Watcher, question_id};
use taskledger_auth::SecretName;
use taskledger_domain::Violation;
use tokio::time::{Instant, timeout};

/// Its name in `schemas.method`.
const NAME: &str = "a2a_executor";
/// How long an agent may take to cancel: less than an attempt has to stop.
const CANCEL_WITHIN: Duration = Duration::from_secs(4);
/// How often a task of an agent is cancelled that waits for an answer, and the pause after the first try; each further
/// one is twice as long.
const CANCEL_TRIES: u32 = 5;
const CANCEL_PAUSE: Duration = Duration::from_secs(1);
/// What an agent says on the way is noted so often at most, and so many times in an attempt.
const SAID_INTERVAL: Duration = Duration::from_secs(1);
const SAID_MAX: usize = 100;
/// How notes begin: of the agent's task, of a message or answer that is on its way, of what an agent says, of a failure
/// that is tried again.
const TASK_NOTE: &str = "agent task ";
const SENDING_NOTE: &str = "sending to agent ";
const ANSWERING_NOTE: &str = "sending the answer to agent ";
const SAID_NOTE: &str = "agent says: ";
const RETRY_NOTE: &str = "agent does not answer: ";
/// Why a question is none that could be answered later.
const ASKS_IN_SECRET: &str = "the agent asks in a task whose id holds a secret of this task: the id is not recorded, so no \
                              answer could reach it";
/// Characters of an id of a task that can be noted.
const TASK_ID_CHARS_MAX: usize = 500;

/// Sends tasks to agents.
///
/// Inputs: `url` of the agent or its `card`; `text`, `data`, `parts`; `skill`, `context_id`, `reference_task_ids`,
/// `metadata`, `output_modes`, `binding`; `headers`, `auth` as `http_executor` has them. Result: `{data?, text?,
/// task_id?, context_id?, artifacts?, message?}`.
#[derive(Debug)]
pub struct A2aExecutor {
    egress: Arc<Egress>,
}

impl A2aExecutor {
    /// An executor that sends through this client.
    #[must_use]
    pub const fn new(egress: Arc<Egress>) -> Self {
        Self { egress }
    }

    async fn agent(
        &self,
        asked: &Asked,
        watcher: &mut dyn Watcher,
    ) -> Result<Agent, ExecutorError> {
        let http = Arc::new(Guarded {
            egress: self.egress.clone(),
        });
        let options = asked.options();
        let found = match &asked.place {
            Place::Url(url) => Agent::found(http, url, options, watcher).await,
            Place::Card(card) => Agent::of_card(http, (**card).clone(), options),
        };
        found.map_err(failed)
    }

    /// Cancels a task of the agent of an attempt.
    ///
    /// # Errors
    /// Why the agent's task may go on.
    async fn cancelled(&self, job: &Job, task: &str) -> Result<(), String> {
        let filled = references::filled_where_allowed(&PLACES, job);
        let filled = filled.map_err(|error| error.to_string())?;
        let asked = Asked::read(&filled, self.egress.policy());
        let asked = asked.map_err(|faults| references::told(&faults))?;
        let found = timeout(CANCEL_WITHIN, self.agent(&asked, &mut Unwatched)).await;
        let agent = found.map_err(|_| "the agent's card is not answered".to_owned())?;
        let agent = agent.map_err(|error| error.to_string())?;
        cancelled(&agent, task).await
    }
}

#[async_trait]
impl Executor for A2aExecutor {
    fn describe(&self) -> Description {
        Description {
            name: NAME.to_owned(),
            aliases: Vec::new(),
            summary: "Has another agent do the task, over Agent2Agent 1.0: follows it to its end, passes its \
                      questions on, and cancels it."
                .to_owned(),
            // An attempt that a restart interrupts goes on with the agent's task, or fails if it cannot know
            // whether there is one.
            idempotent: true,
            pure: false,
            input_schema: Some(inputs::schema()),
            concurrency: Concurrency::Waiting,
        }
    }

    fn params(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    fn check(&self, inputs: &Map<String, Value>) -> Vec<Violation> {
        references::faults(&PLACES, inputs, |filled| {
            Asked::read(filled, self.egress.policy()).err()
        })
    }

    fn secrets(&self, inputs: &Map<String, Value>) -> Vec<SecretName> {
        PLACES.names(inputs)
    }

    fn remembers(&self) -> bool {
        true
    }

    fn leaves_something(&self) -> bool {
        true
    }

    async fn give_up(&self, job: Job, question: Map<String, Value>) {
        let Some(remote) = Remote::asked_in(&question) else {
            return;
        };
        let mut pause = CANCEL_PAUSE;
        for tried in 1..=CANCEL_TRIES {
            let ended = self.cancelled(&job, &remote.task_id).await;
            let Err(reason) = ended else { return };
            if tried == CANCEL_TRIES {
                not_cancelled(&job, &reason);
                return;
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }

    async fn execute(&self, job: Job) -> Result<Value, ExecutorError> {
        match self.attempt(job).await? {
            Ended::Result(result) => Ok(result),
            Ended::Asks(_) => Err(ExecutorError::new("the agent asks, and nobody can answer")),
        }
    }

    async fn attempt(&self, job: Job) -> Result<Ended, ExecutorError> {
        let filled = references::filled_where_allowed(&PLACES, &job)?;
        let asked = Asked::read(&filled, self.egress.policy());
        let asked = asked.map_err(|faults| ExecutorError::new(references::told(&faults)))?;
        let stopped = || ExecutorError::new("the attempt was stopped");
        let mut watching = Watching::of(&job);
        let agent = tokio::select! {
            biased;
            () = job.cancel.cancelled() => return Err(stopped()),
            agent = self.agent(&asked, &mut watching) => agent?,
        };
        let turn = tokio::select! {
            biased;
            () = job.cancel.cancelled() => None,
            turn = turn(&agent, &asked, &job, &mut watching) => Some(turn),
        };
        match turn {
            Some(turn) => {
                let ended = outcome::of(turn?, &agent.card().name)?;
                let is_secret = watching
                    .task
                    .as_deref()
                    .is_some_and(|id| watching.is_secret(id));
                match ended {
                    Ended::Asks(_) if is_secret => Err(ExecutorError::new(ASKS_IN_SECRET)),
                    Ended::Asks(_) | Ended::Result(_) => Ok(ended),
                }
            }
            None => {
                if job.over.is_cancelled() {
                    cancel(&agent, watching.task.as_deref(), &job).await;
                }
                Err(stopped())
            }
        }
    }
}

/// Passes on that the task is over.
async fn cancel(agent: &Agent, task: Option<&str>, job: &Job) {
    let Some(task) = task else { return };
    if let Err(reason) = cancelled(agent, task).await {
        not_cancelled(job, &reason);
    }
}

/// Agents repeat in their errors what they were sent.
fn not_cancelled(job: &Job, reason: &str) {
    let reason = job.secrets.scrubber().text(reason);
    tracing::warn!(task.id = %job.task_id, %reason, "a task of an agent could not be cancelled");
}

/// # Errors
/// Why the agent's task may go on.
async fn cancelled(agent: &Agent, task: &str) -> Result<(), String> {
    match timeout(CANCEL_WITHIN, agent.cancel(task)).await {
        Ok(Ok(_)) => Ok(()),
        // It has ended by itself.
        Ok(Err(error)) if is_over(&error) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", CANCEL_WITHIN.as_secs())),
    }
}

fn is_over(error: &Error) -> bool {
    matches!(
        error.kind(),
        Some(ErrorKind::TaskNotCancelable | ErrorKind::TaskNotFound)
    )
}

/// Carries the conversation on from where earlier attempts have left it.
async fn turn(
    agent: &Agent,
    asked: &Asked,
    job: &Job,
    watching: &mut Watching,
) -> Result<Turn, ExecutorError> {
    if let Some(answered) = &job.past.answered
        && let Some(remote) = Remote::of(answered)
    {
        let noted = |note: &String| note.starts_with(ANSWERING_NOTE);
        let may_be_sent = job.past.is_cut_off || job.past.notes.iter().any(noted);
        let answering = Answering {
            answered,
            remote: &remote,
            may_be_sent,
        };
        return answer(agent, asked, answering, watching).await;
    }
    if let Some(task) = watching.task.clone() {
        return agent.follow(&task, None, watching).await.map_err(failed);
    }
    let noted = |note: &String| note.starts_with(SENDING_NOTE);
    let was_sending = job.past.is_cut_off || job.past.notes.iter().any(noted);
    if !agent.takes_keys() {
        if was_sending {
            let text = "the server was interrupted while it sent the message, and the agent takes no idempotency \
                        keys: whether it has begun is unknown";
            return Err(ExecutorError::new(text));
        }
        let name = agent.card().name.as_str();
        watching.note(format!("{SENDING_NOTE}{name}")).await;
    }
    let key = format!("{}-{}-{}", job.run_id, job.task_id, job.past.since);
    let message = asked.message(key.clone());
    let request = request(asked, message);
    let turn = agent.converse(&request, Some(&key), None, watching).await;
    turn.map_err(failed)
}

/// An answer to an agent's question.
struct Answering<'a> {
    answered: &'a Answered,
    remote: &'a Remote,
    /// Whether an earlier attempt may have sent it.
    may_be_sent: bool,
}

/// Gives the agent's task what was answered. A task that does not wait for it any more is followed: it has the answer,
/// or has ended.
async fn answer(
    agent: &Agent,
    asked: &Asked,
    answering: Answering<'_>,
    watching: &mut Watching,
) -> Result<Turn, ExecutorError> {
    let Answering {
        answered, remote, ..
    } = answering;
    watching.task = Some(remote.task_id.clone());
    if !agent.takes_keys() {
        if answering.may_be_sent {
            let turn = agent.follow(&remote.task_id, None, watching).await;
            let turn = turn.map_err(failed)?;
            // What it asks still, it was not told.
            let is_unheard =
                matches!(&turn, Turn::Task(task) if asks(task, remote.asked_in.as_deref()));
            if !is_unheard {
                return Ok(turn);
            }
        }
        let name = agent.card().name.as_str();
        watching.note(format!("{ANSWERING_NOTE}{name}")).await;
    }
    let request = request(asked, remote.message(answered));
    let key = answered.suspension.to_string();
    let asked_in = remote.asked_in.as_deref();
    let refused = match agent
        .converse(&request, Some(&key), asked_in, watching)
        .await
    {
        Err(error) if was_heard(&error) => error,
        turn => return turn.map_err(failed),
    };
    match agent.follow(&remote.task_id, None, watching).await {
        // It asks what it has asked before, and takes no answer.
        Ok(Turn::Task(task)) if asks(&task, asked_in) => Err(failed(refused)),
        turn => turn.map_err(failed),
    }
}

fn asks(task: &Task, message: Option<&str>) -> bool {
    task.status.state == TaskState::InputRequired
        && message.is_some()
        && message == question_id(&task.status).as_deref()
}

/// Whether an answer may have been refused because the task does not wait for it any more.
fn was_heard(error: &Error) -> bool {
    match error {
        Error::Unanswered { .. } => error.is_transient(),
        Error::Agent(_) => matches!(
            error.kind(),
            Some(
                ErrorKind::UnsupportedOperation
                    | ErrorKind::TaskNotCancelable
                    | ErrorKind::InvalidParams
            )
        ),
        Error::GivenUp { last, .. } => was_heard(last),
        Error::TooLarge { .. } | Error::Invalid(_) | Error::Unusable(_) => false,
    }
}

fn request(asked: &Asked, message: Message) -> SendMessageRequest {
    SendMessageRequest {
        tenant: None,
        message,
        configuration: SendMessageConfiguration {
            accepted_output_modes: asked.output_modes.clone(),
            ..SendMessageConfiguration::default()
        },
        metadata: None,
    }
}

fn failed(error: Error) -> ExecutorError {
    ExecutorError::new(error.to_string()).retry_after(error.retry_after())
}

/// Notes the agent's task, and passes on how far it is.
struct Watching {
    /// The agent's task.
    task: Option<String>,
    /// The task whose progress counts, at taskledger servers.
    root: Option<String>,
    notes: Notes,
    progress: ProgressReporter,
    scrubber: Scrubber,
    said: usize,
    said_at: Option<Instant>,
    pieces: Pieces,
}

impl Watching {
    fn of(job: &Job) -> Self {
        let notes = job.past.notes.iter();
        let noted = notes.filter_map(|note| note.strip_prefix(TASK_NOTE)).next();
        Self {
            task: noted.map(str::to_owned),
            root: None,
            notes: job.notes.clone(),
            progress: job.progress.clone(),
            scrubber: job.secrets.scrubber().clone(),
            said: 0,
            said_at: None,
            pieces: Pieces::of(job),
        }
    }

    async fn note(&self, note: String) {
        self.notes
            .keep(self.scrubber.text(&note).into_owned())
            .await;
    }

    /// Whether an id holds a secret, so that it cannot be recorded.
    fn is_secret(&self, id: &str) -> bool {
        *self.scrubber.text(id) != *id
    }

    async fn began(&mut self, task: &Task) {
        let metadata = task.metadata.as_ref();
        let root = metadata.and_then(|it| it.get("rootTaskId")?.as_str());
        self.root = root.map(str::to_owned);
        if self.task.as_ref() != Some(&task.id) {
            self.task = Some(task.id.clone());
            // An id that cannot be kept whole would be another one, and one that holds a secret is not kept: then an
            // attempt that is interrupted goes on as if it had not heard of the agent's task.
            let is_whole = task.id.chars().count() <= TASK_ID_CHARS_MAX;
            if is_whole && !self.is_secret(&task.id) {
                self.notes.keep(format!("{TASK_NOTE}{}", task.id)).await;
            }
        }
    }

    async fn updated(&mut self, update: &TaskStatusUpdateEvent) {
        let metadata = update.metadata.as_ref();
        let node = metadata.and_then(|it| it.get(NODES));
        let is_root =
            |node: &&Value| node.get("nodeId").and_then(Value::as_str) == self.root.as_deref();
        let of_root = node.filter(is_root).and_then(|it| it.get("progress"));
        let of_task = metadata.and_then(|it| it.get("progress"));
        if let Some(progress) = of_root.or(of_task).and_then(Value::as_f64) {
            self.progress.report(progress);
        }
        if update.status.state != TaskState::Working {
            return;
        }
        let text = update
            .status
            .message
            .as_ref()
            .and_then(|it| Part::texts_of(&it.parts));
        let is_due = self.said_at.is_none_or(|at| at.elapsed() >= SAID_INTERVAL);
        if let Some(text) = text.filter(|_| is_due && self.said < SAID_MAX) {
            (self.said, self.said_at) = (self.said + 1, Some(Instant::now()));
            self.note(format!("{SAID_NOTE}{text}")).await;
        }
    }
}

#[async_trait]
impl Watcher for Watching {
    async fn told(&mut self, item: &StreamResponse) {
        match item {
            StreamResponse::Task(task) => {
                self.began(task).await;
                self.pieces.stands(task);
            }
            StreamResponse::StatusUpdate(update) => self.updated(update).await,
            StreamResponse::ArtifactUpdate(update) => self.pieces.updated(update),
            StreamResponse::Message(_) => {}
        }
    }

    /// Notes the failures whose number is a power of two: a user sees that the agent is down, and an attempt that
    /// waits for minutes adds only some entries to the history.
    async fn retries(&mut self, retry: Retry<'_>) {
        if retry.failures.is_power_of_two() && self.said < SAID_MAX {
            self.said += 1;
            self.note(format!("{RETRY_NOTE}{retry}")).await;
        }
    }
}

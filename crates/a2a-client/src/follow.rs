//! Sends a message and follows the task that it begins to its end, or until the task asks something, over as many
//! connections as that takes.

use crate::Error;
use crate::agent::{Agent, AgentOptions};
use crate::http::Http;
use crate::seen::Seen;
use crate::stream::Events;
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use taskledger_a2a::request::SendMessageRequest;
use taskledger_a2a::{ErrorKind, Message, SendMessageResponse, StreamResponse, Task, TaskStatus};
use tokio::time::sleep;

/// Failures, one after the other, after which an agent is given up: some four minutes.
const FAILURES_MAX: u32 = 20;
/// The first pause after a failure, and the longest.
const FAILURE_PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(15));
/// The longest pause that an agent may ask for.
const ASKED_PAUSE_MAX: Duration = Duration::from_secs(3600);
/// The first pause before a task is read again, and the longest.
const POLL_PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// The outcome of a message.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // one of them, at the end
pub enum Turn {
    /// With an answer, and no task.
    Message(Message),
    /// With a task that has ended, or that waits.
    Task(Task),
}

/// Whoever wants to know what happens meanwhile.
#[async_trait]
pub trait Watcher: Send {
    /// Something was told, the task as it is first; a stream that begins with an update is given the task that the
    /// update names, without content. What comes next is read when this has returned.
    async fn told(&mut self, item: &StreamResponse);

    /// A call has failed and is tried again after a pause.
    async fn retries(&mut self, retry: Retry<'_>);
}

/// Names the question for which a task waits: by its message, else by the time since when it waits; `None` if the agent
/// gives neither, so that it cannot be told from another question.
#[must_use]
pub fn question_id(status: &TaskStatus) -> Option<String> {
    let message = status.message.as_ref().map(|it| it.message_id.clone());
    let since = || status.timestamp.map(|it| it.to_rfc3339());
    message.filter(|it| !it.is_empty()).or_else(since)
}

/// A failed call that is tried again.
#[derive(Debug, Clone, Copy)]
pub struct Retry<'e> {
    /// Why the last try has failed.
    pub error: &'e Error,
    /// The number of tries that have failed, one after the other, from 1.
    pub failures: u32,
    /// How long nothing is tried.
    pub pause: Duration,
}

impl Retry<'_> {
    /// The tries after which an agent is given up.
    pub const TRIES_MAX: u32 = FAILURES_MAX + 1;
}

impl fmt::Display for Retry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (next, max) = (self.failures + 1, Self::TRIES_MAX);
        let (error, pause) = (self.error, self.pause.as_secs_f64());
        write!(f, "{error}; try {next} of {max} follows in {pause} s")
    }
}

/// Watches nothing.
#[derive(Debug)]
pub struct Unwatched;

#[async_trait]
impl Watcher for Unwatched {
    async fn told(&mut self, _: &StreamResponse) {}

    async fn retries(&mut self, _: Retry<'_>) {}
}

/// The result of one look at a task.
#[allow(clippy::large_enum_variant)] // one of them, on its way out
enum Looked {
    Settled(Turn),
    /// The task goes on.
    Going,
    /// The agent has no stream of it.
    NoStream,
}

/// A task that is followed.
struct Followed<'w> {
    seen: Seen,
    last_event: Option<String>,
    /// The question that was answered: a task that still asks it does not have the answer yet.
    answered: Option<String>,
    watcher: &'w mut dyn Watcher,
}

impl<'w> Followed<'w> {
    /// `expected`: the task that the first message continues.
    fn new(expected: Option<&str>, answered: Option<&str>, watcher: &'w mut dyn Watcher) -> Self {
        Self {
            seen: Seen::expecting(expected),
            last_event: None,
            answered: answered.map(str::to_owned),
            watcher,
        }
    }

    async fn take(&mut self, item: StreamResponse) -> Result<Option<Turn>, Error> {
        if let Some(task) = self.seen.begun_by(&item) {
            self.watcher.told(&StreamResponse::Task(task)).await;
        }
        self.watcher.told(&item).await;
        if let Some(message) = self.seen.take(item)? {
            return Ok(Some(Turn::Message(message)));
        }
        let Some(task) = self.seen.task() else {
            return Ok(None);
        };
        let state = task.status.state;
        if !state.is_interrupted() {
            // What it asks from here on is another question.
            self.answered = None;
            return Ok(state.is_terminal().then(|| Turn::Task(task.clone())));
        }
        let asks_again = self.answered.is_some() && self.answered == question_id(&task.status);
        Ok((!asks_again).then(|| Turn::Task(task.clone())))
    }

    fn id(&self) -> String {
        self.seen.task().map(|it| it.id.clone()).unwrap_or_default()
    }
}

impl Agent {
    /// As [`Agent::at`], with further tries where one may do.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn found(
        http: Arc<dyn Http>,
        url: &str,
        options: AgentOptions,
        watcher: &mut dyn Watcher,
    ) -> Result<Self, Error> {
        let mut pace = Pace::default();
        loop {
            match Self::at(http.clone(), url, options.clone()).await {
                Err(error) if error.is_transient() => pace.failed(error, watcher).await?,
                found => return found,
            }
        }
    }

    /// Says something, and follows what comes of it until it ends or waits. `answered` is the [`question_id`] of the
    /// question that is answered. With a `key` that the agent takes, or when nothing has arrived there, a failure
    /// is followed by another try; once there is a task, it is followed.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn converse(
        &self,
        request: &SendMessageRequest,
        key: Option<&str>,
        answered: Option<&str>,
        watcher: &mut dyn Watcher,
    ) -> Result<Turn, Error> {
        let mut pace = Pace::default();
        let continued = request.message.task_id.as_deref();
        let mut followed = Followed::new(continued, answered, watcher);
        loop {
            match self.said(request, key, &mut followed).await {
                Ok(Some(turn)) => return Ok(self.whole(turn, &mut followed).await),
                Ok(None) => return self.to_the_end(followed).await,
                Err(error) if followed.seen.task().is_some() && error.is_transient() => {
                    return self.to_the_end(followed).await;
                }
                Err(error) => {
                    let repeatable = error.is_undone() || (key.is_some() && self.takes_keys());
                    if !(error.is_transient() && repeatable) {
                        return Err(error);
                    }
                    pace.failed(error, followed.watcher).await?;
                }
            }
        }
    }

    /// Follows a task until it ends or waits.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn follow(
        &self,
        id: &str,
        answered: Option<&str>,
        watcher: &mut dyn Watcher,
    ) -> Result<Turn, Error> {
        let mut pace = Pace::default();
        let mut followed = Followed::new(Some(id), answered, watcher);
        loop {
            match self.get(id, None).await {
                Ok(task) if task.id != id => {
                    let text = "the agent answers with another task than the one asked for";
                    return Err(Error::Invalid(text.to_owned()));
                }
                Ok(task) => match followed.take(StreamResponse::Task(task)).await? {
                    Some(turn) => return Ok(turn),
                    None => return self.to_the_end(followed).await,
                },
                Err(error) if error.is_transient() => pace.failed(error, followed.watcher).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a message; `None`: there is a task, which goes on.
    async fn said(
        &self,
        request: &SendMessageRequest,
        key: Option<&str>,
        followed: &mut Followed<'_>,
    ) -> Result<Option<Turn>, Error> {
        if self.card().capabilities.streaming {
            let mut events = self.stream(request, key).await?;
            let turn = drained(&mut events, followed).await?;
            if turn.is_none() && followed.seen.task().is_none() {
                let text = "the stream of the agent ended before it said anything";
                return Err(Error::Invalid(text.to_owned()));
            }
            return Ok(turn);
        }
        let mut request = request.clone();
        request.configuration.return_immediately = true;
        let item = match self.send_patiently(&request, key).await? {
            SendMessageResponse::Task(task) => StreamResponse::Task(task),
            SendMessageResponse::Message(message) => StreamResponse::Message(message),
        };
        followed.take(item).await
    }

    async fn to_the_end(&self, mut followed: Followed<'_>) -> Result<Turn, Error> {
        let (mut pace, mut streams) = (Pace::default(), self.card().capabilities.streaming);
        let id = followed.id();
        loop {
            let looked = match streams {
                true => self.look_on(&id, &mut followed).await,
                false => self.look(&id, &mut followed).await,
            };
            match looked {
                Ok(Looked::Settled(turn)) => return Ok(self.whole(turn, &mut followed).await),
                Ok(Looked::Going) => pace.came().await,
                Ok(Looked::NoStream) => streams = false,
                Err(error) if error.is_transient() => pace.failed(error, followed.watcher).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// A turn whose task the agent has sent itself: one that updates alone have described is read, because they tell
    /// nothing of what earlier messages led to. An agent that cannot be asked has told all that there is.
    async fn whole(&self, turn: Turn, followed: &mut Followed<'_>) -> Turn {
        let told = match turn {
            Turn::Task(task) if !followed.seen.is_whole() => task,
            whole @ (Turn::Task(_) | Turn::Message(_)) => return whole,
        };
        let mut pace = Pace::default();
        loop {
            match self.get(&told.id, None).await {
                Ok(read) if read.id == told.id => return Turn::Task(joined(read, told)),
                Err(error) if error.is_transient() => {
                    if pace.failed(error, followed.watcher).await.is_err() {
                        return Turn::Task(told);
                    }
                }
                Ok(_) | Err(_) => return Turn::Task(told),
            }
        }
    }

    async fn look(&self, id: &str, followed: &mut Followed<'_>) -> Result<Looked, Error> {
        let task = self.get(id, None).await?;
        let turn = followed.take(StreamResponse::Task(task)).await?;
        Ok(turn.map_or(Looked::Going, Looked::Settled))
    }

    async fn look_on(&self, id: &str, followed: &mut Followed<'_>) -> Result<Looked, Error> {
        let last_event = followed.last_event.take();
        let mut events = match self.subscribe(id, last_event.as_deref()).await {
            Ok(events) => events,
            // It has ended meanwhile, or the agent has no such stream: reading it tells which. Agents name either in
            // several ways; those of the official SDKs say that there is no such task, or that its id is not valid.
            Err(error)
                if matches!(
                    error.kind(),
                    Some(
                        ErrorKind::UnsupportedOperation
                            | ErrorKind::MethodNotFound
                            | ErrorKind::TaskNotFound
                            | ErrorKind::InvalidParams
                            | ErrorKind::Internal
                    )
                ) =>
            {
                return match self.look(id, followed).await? {
                    Looked::Going => Ok(Looked::NoStream),
                    looked @ (Looked::Settled(_) | Looked::NoStream) => Ok(looked),
                };
            }
            Err(error) => {
                followed.last_event = last_event;
                return Err(error);
            }
        };
        let turn = drained(&mut events, followed).await?;
        Ok(turn.map_or(Looked::Going, Looked::Settled))
    }
}

/// Reads a stream up to where the message is answered, or to its end.
async fn drained(events: &mut Events, followed: &mut Followed<'_>) -> Result<Option<Turn>, Error> {
    while let Some(event) = events.next().await? {
        if let Some(turn) = followed.take(event.item).await? {
            return Ok(Some(turn));
        }
        if event.id.is_some() {
            followed.last_event = event.id;
        }
    }
    Ok(None)
}

/// A task as it was read after a stream has described its end. What the stream told counts where the agent has not
/// stored it yet.
fn joined(mut read: Task, told: Task) -> Task {
    let is_behind = !read.status.state.is_terminal() && read.status.state != told.status.state;
    if is_behind {
        read.status = told.status;
    }
    for artifact in told.artifacts {
        let mut known = read.artifacts.iter();
        if known.all(|it| it.artifact_id != artifact.artifact_id) {
            read.artifacts.push(artifact);
        }
    }
    read
}

/// Pauses between tries.
#[derive(Debug, Default)]
struct Pace {
    failures: u32,
    polls: u32,
}

impl Pace {
    async fn came(&mut self) {
        self.failures = 0;
        let pause = grown(POLL_PAUSE, self.polls);
        self.polls = self.polls.saturating_add(1);
        sleep(pause).await;
    }

    /// # Errors
    /// The last failure, after too many.
    async fn failed(&mut self, error: Error, watcher: &mut dyn Watcher) -> Result<(), Error> {
        if self.failures >= FAILURES_MAX {
            return Err(Error::GivenUp {
                tries: Retry::TRIES_MAX,
                last: Box::new(error),
            });
        }
        let own = grown(FAILURE_PAUSE, self.failures);
        let asked = error.retry_after().unwrap_or_default();
        let pause = own.max(asked.min(ASKED_PAUSE_MAX));
        self.failures += 1;
        let retry = Retry {
            error: &error,
            failures: self.failures,
            pause,
        };
        watcher.retries(retry).await;
        sleep(pause).await;
        Ok(())
    }
}

fn grown((first, most): (Duration, Duration), times: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(times)).min(most)
}

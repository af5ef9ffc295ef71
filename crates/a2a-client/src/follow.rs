//! Sends a message and follows the task that it begins to its end, or until the task asks something, over as many
//! connections as that takes.

use crate::Error;
use crate::agent::{Agent, AgentOptions};
use crate::http::Http;
use crate::seen::Seen;
use crate::stream::Events;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use taskledger_a2a::request::SendMessageRequest;
use taskledger_a2a::{ErrorKind, Message, SendMessageResponse, StreamResponse, Task};
use tokio::time::sleep;

/// Failures, one after the other, after which an agent is given up: some four minutes.
const FAILURES_MAX: u32 = 20;
/// The first pause after a failure, and the longest.
const FAILURE_PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(15));
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
    /// Something was told, the task as it is first. What comes next is read when this has returned.
    async fn told(&mut self, item: &StreamResponse);
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
    /// The message with the question that was answered: a task that still asks it has not heard the answer yet.
    answered: Option<String>,
    watcher: &'w mut dyn Watcher,
}

impl<'w> Followed<'w> {
    fn new(answered: Option<&str>, watcher: &'w mut dyn Watcher) -> Self {
        Self {
            seen: Seen::default(),
            last_event: None,
            answered: answered.map(str::to_owned),
            watcher,
        }
    }

    async fn take(&mut self, item: StreamResponse) -> Result<Option<Turn>, Error> {
        self.watcher.told(&item).await;
        if let Some(message) = self.seen.take(item)? {
            return Ok(Some(Turn::Message(message)));
        }
        let Some(task) = self.seen.task() else {
            return Ok(None);
        };
        let (state, said) = (task.status.state, task.status.message.as_ref());
        let asks_again =
            self.answered.is_some() && said.map(|it| &it.message_id) == self.answered.as_ref();
        let is_settled = state.is_terminal() || (state.is_interrupted() && !asks_again);
        Ok(is_settled.then(|| Turn::Task(task.clone())))
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
    ) -> Result<Self, Error> {
        let mut pace = Pace::default();
        loop {
            match Self::at(http.clone(), url, options.clone()).await {
                Err(error) if error.is_transient() => pace.failed(error).await?,
                found => return found,
            }
        }
    }

    /// Says something, and follows what comes of it until it ends or waits. `answered` is the id of the message with
    /// the question that is answered. With a `key` that the agent takes, or when nothing has arrived there, a failure
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
        let mut followed = Followed::new(answered, watcher);
        loop {
            match self.said(request, key, &mut followed).await {
                Ok(Some(turn)) => return Ok(turn),
                Ok(None) => return self.to_the_end(followed).await,
                Err(error) if followed.seen.task().is_some() && error.is_transient() => {
                    return self.to_the_end(followed).await;
                }
                Err(error) => {
                    let repeatable = error.is_undone() || (key.is_some() && self.takes_keys());
                    if !(error.is_transient() && repeatable) {
                        return Err(error);
                    }
                    pace.failed(error).await?;
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
        let mut followed = Followed::new(answered, watcher);
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
                Err(error) if error.is_transient() => pace.failed(error).await?,
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
                Ok(Looked::Settled(turn)) => return Ok(turn),
                Ok(Looked::Going) => pace.came().await,
                Ok(Looked::NoStream) => streams = false,
                Err(error) if error.is_transient() => pace.failed(error).await?,
                Err(error) => return Err(error),
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
            // It has ended meanwhile, or the agent has no such stream: reading it tells which.
            Err(error)
                if matches!(
                    error.kind(),
                    Some(ErrorKind::UnsupportedOperation | ErrorKind::MethodNotFound)
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
    async fn failed(&mut self, error: Error) -> Result<(), Error> {
        if self.failures >= FAILURES_MAX {
            return Err(error);
        }
        let pause = grown(FAILURE_PAUSE, self.failures);
        self.failures += 1;
        sleep(pause).await;
        Ok(())
    }
}

fn grown((first, most): (Duration, Duration), times: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(times)).min(most)
}

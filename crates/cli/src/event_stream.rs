//! A client of server-sent events that resumes after any break of the connection.
//!
//! Owns: one task that reads a stream, and when it connects again. Whoever reads takes what was read
//! from a bounded queue; a reader that is slow slows the server's sending down, and nothing is lost.

mod connection;
mod pace;

pub(super) use connection::is_event_stream;
pub(super) use taskledger_event_stream::{Event, Piece};

use super::api::ApiError;
use super::target::Target;
use connection::{Client, Connection, Failure};
use pace::Pace;
use serde_json::Value;
use std::time::Duration;
use taskledger_clock::SharedClock;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// What was read and not yet taken, in reads of a connection.
const WAITING_MAX: usize = 16;

/// The event that says that what was between is not told: the place was not one of this log.
pub(super) const RESET: &str = "reset";

/// The endpoint that a stream comes from.
#[derive(Debug, Clone)]
pub(super) enum Door {
    /// `GET /events` with these parameters.
    Events(Vec<(&'static str, String)>),
    /// The answer of a call that has begun a run, which is told as an event; then [`Self::Task`] of its flow.
    Begun,
    /// `tasks.subscribe`, then `tasks.resubscribe`: it ends when nothing of the task's tree runs.
    Task(String),
}

/// A stream that is wanted.
#[derive(Debug)]
pub(super) struct Wanted {
    /// The server to read from.
    pub(super) target: Target,
    /// The path and parameters of the stream.
    pub(super) door: Door,
    /// The id of the last event that was received; the stream continues after it.
    pub(super) after: Option<String>,
}

/// An item of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StreamItem {
    /// There is a connection.
    Opened {
        /// Not the first one.
        again: bool,
        /// The place that it begins at, if the server has named it.
        place: Option<String>,
    },
    /// What has come, in order.
    Pieces(Vec<Piece>),
    /// The connection is lost, or there is none yet; the next attempt is made after a pause.
    Lost {
        /// What happened.
        reason: String,
        /// How long the pause is.
        pause: Duration,
    },
}

/// A stream that is being read. Dropping it ends the reading.
#[derive(Debug)]
pub(super) struct EventStream {
    told: mpsc::Receiver<Result<StreamItem, ApiError>>,
    reading: JoinHandle<()>,
}

impl EventStream {
    /// Begins to read.
    ///
    /// # Errors
    /// [`ApiError::Connection`]: there is no TLS on this machine.
    pub(super) fn open(wanted: Wanted, clock: SharedClock) -> Result<Self, ApiError> {
        Ok(Self::of(Client::new(wanted)?, None, clock))
    }

    /// Reads what follows the answer to a call that has begun a run.
    pub(super) fn begun(
        target: Target,
        http: reqwest::Client,
        answer: reqwest::Response,
        clock: SharedClock,
    ) -> Self {
        let (client, connection) = Client::begun(target, http, answer);
        Self::of(client, Some(connection), clock)
    }

    fn of(client: Client, first: Option<Connection>, clock: SharedClock) -> Self {
        let (sender, told) = mpsc::channel(WAITING_MAX);
        let reading = tokio::spawn(async move {
            let ended = Reading {
                client,
                pace: Pace::new(clock),
                opened: false,
                told: sender.clone(),
            }
            .read(first)
            .await;
            if let Err(Stopped::Failed(error)) = ended {
                // When nobody listens any more, there is nobody to tell.
                let _ = sender.send(Err(error)).await;
            }
        });
        Self { told, reading }
    }

    /// What comes next; `None`: the stream has ended. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`ApiError`]: the server refuses the stream, or cannot be reached at the beginning.
    pub(super) async fn next(&mut self) -> Result<Option<StreamItem>, ApiError> {
        self.told.recv().await.transpose()
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

struct Reading {
    client: Client,
    pace: Pace,
    opened: bool,
    told: mpsc::Sender<Result<StreamItem, ApiError>>,
}

/// Why reading has stopped before the end of the stream.
enum Stopped {
    /// Another attempt would end in the same way.
    Failed(ApiError),
    /// Nobody listens.
    Alone,
}

impl Reading {
    /// Connects and reads until the stream ends.
    async fn read(mut self, mut first: Option<Connection>) -> Result<(), Stopped> {
        loop {
            let (reason, pause) = match self.connection(first.take()).await? {
                None => return Ok(()),
                Some(Failure::Final(error)) => return Err(Stopped::Failed(error)),
                Some(Failure::Unreachable(reason)) if !self.opened => {
                    let text = format!("{reason}{}", self.client.advice());
                    return Err(Stopped::Failed(ApiError::Connection(text)));
                }
                Some(Failure::Unreachable(reason)) => (reason, self.pace.pause(None)),
                Some(Failure::Passing { reason, wait }) => (reason, self.pace.pause(wait)),
            };
            self.tell(StreamItem::Lost { reason, pause }).await?;
            tokio::time::sleep(pause).await;
        }
    }

    /// One connection, this or a new one, from its beginning to its end; `None`: the end of the stream.
    async fn connection(&mut self, open: Option<Connection>) -> Result<Option<Failure>, Stopped> {
        let connected = match open {
            Some(connection) => Ok(Some(connection)),
            None => self.client.connect().await,
        };
        let mut connection = match connected {
            Ok(Some(connection)) => connection,
            Ok(None) => return Ok(None),
            Err(failure) => return Ok(Some(failure)),
        };
        let again = std::mem::replace(&mut self.opened, true);
        let place = self.client.place().map(str::to_owned);
        self.tell(StreamItem::Opened { again, place }).await?;
        loop {
            match self.client.read(&mut connection).await {
                Ok(Some(pieces)) => {
                    self.pace.arrived(connection.retry());
                    if !pieces.is_empty() {
                        self.tell(StreamItem::Pieces(pieces)).await?;
                    }
                }
                Ok(None) => return Ok(None),
                Err(failure) => return Ok(Some(failure)),
            }
        }
    }

    async fn tell(&self, told: StreamItem) -> Result<(), Stopped> {
        self.told.send(Ok(told)).await.map_err(|_| Stopped::Alone)
    }
}

/// An event of this server, whose data are JSON.
pub(super) trait JsonEvent {
    /// The event as one line of JSON: its data as they came, behind its name and the place after it.
    fn json_line(&self) -> String;

    /// The data, if they are JSON.
    fn json(&self) -> Value;
}

impl JsonEvent for Event {
    fn json_line(&self) -> String {
        let place = (!self.id.is_empty()).then_some(&self.id);
        let head = serde_json::json!({"event": self.name, "cursor": place}).to_string();
        match serde_json::from_str(&self.data) {
            Ok(Value::Object(mut data))
                if data.contains_key("event") || data.contains_key("cursor") =>
            {
                data.insert("event".to_owned(), self.name.as_str().into());
                data.insert("cursor".to_owned(), place.cloned().into());
                Value::Object(data).to_string()
            }
            Ok(Value::Object(data)) if data.is_empty() => head,
            // Members stay in their order; a line break can only be one between them.
            Ok(Value::Object(_)) => format!(
                "{},{}",
                head.trim_end_matches('}'),
                self.data
                    .trim_start()
                    .trim_start_matches('{')
                    .replace('\n', " ")
            ),
            Ok(data) => {
                serde_json::json!({"event": self.name, "cursor": place, "data": data}).to_string()
            }
            Err(_) => serde_json::json!({"event": self.name, "cursor": place, "data": self.data})
                .to_string(),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or(Value::Null)
    }
}

#[cfg(test)]
mod tests;

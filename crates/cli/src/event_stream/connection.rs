//! The connections of a stream: their requests, the answers that are accepted, and where the next one begins.

use super::{Door, JsonEvent, RESET, Wanted};
use crate::api::{ApiError, TOO_BUSY, request, result};
use crate::output::member;
use crate::target::Target;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use taskledger_event_stream::{Event, Limits, Parser, Piece};

/// How much of a stream is held.
const LIMITS: Limits = Limits {
    // A result of 1 MiB of which each byte is written as `\u00xx`, and what is around it.
    line_bytes_max: 8 << 20,
    event_bytes_max: 16 << 20,
};
/// How long to wait for the head of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection may say nothing: four heartbeats of the server.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Names the place before the first event.
const PLACE_HEADER: &str = "x-taskledger-cursor";

/// Why there is no connection, or no longer.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nobody answers, or the connection broke.
    Unreachable(String),
    /// The server cannot now.
    Passing {
        /// What it says.
        reason: String,
        /// How long it wants to be left alone.
        wait: Option<Duration>,
    },
    /// Asking again would change nothing.
    Final(ApiError),
}

/// Makes connections.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    target: Target,
    door: Door,
    place: Option<String>,
    /// The last event says that nothing follows: the end of the connection is that of the stream.
    final_seen: bool,
    /// What may help against the last failure.
    advice: String,
}

/// A stream that is open.
#[derive(Debug)]
pub(super) struct Connection {
    response: Response,
    parser: Parser,
}

impl Connection {
    /// The pause before a new connection that the stream asks for.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.parser.retry()
    }
}

impl Client {
    pub(super) fn new(wanted: Wanted) -> Result<Self, ApiError> {
        Ok(Self {
            http: wanted.target.client(None)?,
            target: wanted.target,
            door: wanted.door,
            place: wanted.after,
            final_seen: false,
            advice: String::new(),
        })
    }

    /// One that goes on behind this answer, and the connection on which it comes.
    pub(super) fn begun(
        target: Target,
        http: reqwest::Client,
        answer: Response,
    ) -> (Self, Connection) {
        let mut client = Self {
            http,
            target,
            door: Door::Begun,
            place: None,
            final_seen: false,
            advice: String::new(),
        };
        let connection = client.opened(answer);
        (client, connection)
    }

    /// What may help against the last failure, on a line of its own; may be empty.
    pub(super) fn advice(&self) -> &str {
        &self.advice
    }

    /// Where the next connection begins.
    pub(super) fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// A connection that begins where the one before has ended; `None`: the server says that this was all.
    pub(super) async fn connect(&mut self) -> Result<Option<Connection>, Failure> {
        let sent = tokio::time::timeout(ANSWER_TIMEOUT, self.request()?.send());
        let response = match sent.await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                self.advice = self.target.advice(&error);
                return Err(self.broken(&error));
            }
            Err(_) => return Err(self.unreachable("no answer in time")),
        };
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        if response.status() != StatusCode::OK || !is_event_stream(response.headers()) {
            return Err(self.refused(response).await);
        }
        Ok(Some(self.opened(response)))
    }

    fn opened(&mut self, response: Response) -> Connection {
        let header = response.headers().get(PLACE_HEADER);
        if let (None, Some(Ok(place))) = (&self.place, header.map(HeaderValue::to_str)) {
            self.place = Some(place.to_owned());
        }
        self.final_seen = false;
        Connection {
            response,
            parser: Parser::new(LIMITS),
        }
    }

    /// What comes next; `None`: the end of the stream.
    pub(super) async fn read(
        &mut self,
        connection: &mut Connection,
    ) -> Result<Option<Vec<Piece>>, Failure> {
        let read = tokio::time::timeout(SILENCE_MAX, connection.response.chunk());
        let bytes = match read.await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None)) if self.final_seen => return Ok(None),
            Ok(Ok(None)) => return Err(self.unreachable("the server has ended the stream")),
            Ok(Err(error)) => return Err(self.broken(&error)),
            Err(_) => {
                let seconds = SILENCE_MAX.as_secs();
                return Err(self.unreachable(&format!("the server sent nothing for {seconds} s")));
            }
        };
        let mut pieces = Vec::new();
        let fed = connection.parser.feed(&bytes, &mut pieces);
        let pieces = self.look(pieces)?;
        match fed {
            Ok(()) => Ok(Some(pieces)),
            Err(error) => Err(Failure::Final(ApiError::Protocol(format!(
                "{}: {error}",
                self.target.url()
            )))),
        }
    }

    /// Remembers the place; the answer of a call is taken out, and what it says of the place is left.
    fn look(&mut self, read: Vec<Piece>) -> Result<Vec<Piece>, Failure> {
        let mut pieces = Vec::with_capacity(read.len());
        for piece in read {
            match piece {
                Piece::Event(event) if event.name == "message" && is_call(&self.door) => {
                    let answer = result(event.data.as_bytes()).map_err(no_stream)?;
                    if matches!(self.door, Door::Begun) {
                        self.door = Door::Task(member(&answer, "root_task_id"));
                        pieces.push(Piece::Event(Event {
                            data: answer.to_string(),
                            ..event
                        }));
                        continue;
                    }
                    self.final_seen = is_final(&answer);
                    pieces.extend(beginning(&answer));
                }
                Piece::Event(event) => {
                    self.final_seen = is_call(&self.door) && is_final(&event.json());
                    pieces.push(Piece::Event(event));
                }
                Piece::Place(place) => pieces.push(Piece::Place(place)),
            }
        }
        let place = pieces
            .iter()
            .rev()
            .map(Piece::place)
            .find(|id| !id.is_empty());
        if let Some(place) = place {
            self.place = Some(place.to_owned());
        }
        Ok(pieces)
    }

    fn request(&self) -> Result<RequestBuilder, Failure> {
        match &self.door {
            Door::Events(parameters) => {
                let no_url = |e: url::ParseError| ApiError::Connection(format!("no URL: {e}"));
                let url = self.target.url().join("events").map_err(no_url);
                let mut request = self.http.get(url.map_err(Failure::Final)?);
                request = request.header(ACCEPT, "text/event-stream");
                // Where to begin is said once: by the place, as soon as there is one.
                let parameters: Vec<_> = parameters
                    .iter()
                    .filter(|(name, _)| *name != "from" || self.place.is_none())
                    .collect();
                if let Some(place) = &self.place {
                    let header = HeaderValue::from_str(place).map_err(|_| {
                        let text = format!("`{place}` is not a cursor");
                        Failure::Final(ApiError::Protocol(text))
                    })?;
                    request = request.header("last-event-id", header);
                }
                Ok(request.query(&parameters))
            }
            Door::Begun => Err(Failure::Final(ApiError::Connection(
                self.target
                    .unreachable("the connection was lost before the answer came"),
            ))),
            Door::Task(id) => {
                let body = match &self.place {
                    None => request("tasks.subscribe", json!({"task_id": id})),
                    Some(place) => request(
                        "tasks.resubscribe",
                        json!({"task_id": id, "last_event_id": place}),
                    ),
                };
                let request = self.http.post(self.target.url().clone()).body(body);
                Ok(request
                    .header(ACCEPT, "text/event-stream, application/json")
                    .header(CONTENT_TYPE, "application/json"))
            }
        }
    }

    /// An answer that is no stream.
    async fn refused(&self, response: Response) -> Failure {
        let status = response.status();
        let headers = response.headers().clone();
        let wait = headers.get(RETRY_AFTER);
        let wait = wait.and_then(|value| value.to_str().ok()?.parse().ok());
        let wait = wait.map(Duration::from_secs);
        let body = match tokio::time::timeout(ANSWER_TIMEOUT, response.bytes()).await {
            Ok(Ok(body)) => body,
            Ok(Err(error)) => return self.broken(&error),
            Err(_) => return self.unreachable("no answer in time"),
        };
        let said = match result(&body) {
            Ok(_) => {
                let text = format!("{} answered {status}, no stream", self.target.url());
                ApiError::Protocol(text)
            }
            Err(error) => self.target.no_result(status, &headers, error),
        };
        if is_passing(status) {
            let reason = said.to_string();
            return Failure::Passing { reason, wait };
        }
        no_stream(said)
    }

    fn unreachable(&self, reason: &str) -> Failure {
        Failure::Unreachable(self.target.unreachable(reason))
    }

    fn broken(&self, error: &reqwest::Error) -> Failure {
        Failure::Unreachable(self.target.broken(error))
    }
}

/// Whether this says that nothing follows it.
fn is_final(said: &Value) -> bool {
    said.get("final").and_then(Value::as_bool) == Some(true)
}

/// What the answer of a call says about where its events begin.
fn beginning(answer: &Value) -> Option<Piece> {
    let place = answer.get("cursor").and_then(Value::as_str)?.to_owned();
    if answer.get("resumed").and_then(Value::as_bool) != Some(false) {
        return Some(Piece::Place(place));
    }
    // In the words of a stream of its own.
    let data = json!({"reason": answer.get("reason"), "cursor": place});
    Some(Piece::Event(Event {
        name: RESET.to_owned(),
        data: data.to_string(),
        id: place,
    }))
}

fn is_call(door: &Door) -> bool {
    matches!(door, Door::Begun | Door::Task(_))
}

/// A refusal that may be another answer a moment later, or not.
fn no_stream(error: ApiError) -> Failure {
    match error {
        ApiError::Refused { code: TOO_BUSY, .. } => Failure::Passing {
            reason: error.to_string(),
            wait: None,
        },
        error @ (ApiError::Denied { .. }
        | ApiError::Refused { .. }
        | ApiError::Connection(_)
        | ApiError::Protocol(_)) => Failure::Final(error),
    }
}

/// Too many, or a server that is starting or stopping, or a proxy before it that has none.
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

pub(in super::super) fn is_event_stream(headers: &HeaderMap) -> bool {
    let text = headers.get(CONTENT_TYPE).map(HeaderValue::to_str);
    let essence = match text {
        Some(Ok(text)) => text.split(';').next().unwrap_or_default().trim(),
        Some(Err(_)) | None => return false,
    };
    essence.eq_ignore_ascii_case("text/event-stream")
}

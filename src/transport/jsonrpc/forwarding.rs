//! Calls whose flow belongs to another node: the same call is sent there, and its answer is passed
//! on as it is.
//!
//! A node that gets such a call and does not own the flow either says so and does nothing; it never
//! sends it on. The sender then looks anew, with pauses, until the flow has an owner: longer than a
//! node that died keeps its leases. A change that may have taken effect is not sent twice unless it
//! carries an idempotency key.

use super::dispatch::{Call, Method, Origin};
use super::encode::Outcome;
use super::envelope::{self, Element, Envelope, INLINE_PARSE_BYTES_MAX, Request};
use super::error::{Elsewhere, ErrorKind, RpcError};
use super::text::Text;
use crate::application::caller::valid_traceparent;
use crate::application::ownership::Node;
use axum::body::Bytes;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Where nodes take each other's calls.
pub const PATH: &str = "/internal/v1/call";
/// How long a call looks for the owner of its flow: a node that died keeps its leases for 5 s, its
/// successors look for them each second.
pub const SEARCH_MAX: Duration = Duration::from_secs(10);
/// How long an answer is waited for when the caller sets no bound.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// The first pause before an owner is looked for again; each is twice the one before.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// No pause is longer.
const PAUSE_MAX: Duration = Duration::from_millis(250);
/// What a caller is told to wait when no owner was found, in milliseconds.
const RETRY_AFTER_MS: u64 = 1000;

/// What became of a call that was sent to another node.
#[derive(Debug)]
pub enum Sent {
    /// Its answer: a JSON-RPC answer.
    Answered(Vec<u8>),
    /// It was not carried out and will not be.
    NotTaken,
    /// The connection broke, or the node has died: nobody knows.
    Broken,
}

/// The way to other nodes.
pub trait Forward: Send + Sync + fmt::Debug + 'static {
    /// Sends a call to a node, and waits for its answer no longer than this.
    fn send<'a>(&'a self, to: &'a Node, body: Bytes, wait: Duration) -> BoxFuture<'a, Sent>;

    /// Whether this is the `Authorization` of a node of the same cluster. Takes the same time for
    /// all that are not.
    fn admits(&self, authorization: &[u8]) -> bool;
}

/// Goes before the call.
#[derive(Serialize, Deserialize)]
struct Cover<'a> {
    #[serde(borrow)]
    principal: Cow<'a, str>,
    #[serde(borrow)]
    correlation: Cow<'a, str>,
    #[serde(borrow)]
    traceparent: Option<Cow<'a, str>>,
    /// How long the sender waits.
    wait_ms: u64,
}

#[derive(Serialize)]
struct Sending<'a> {
    jsonrpc: &'static str,
    id: u8,
    method: &'static str,
    params: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<&'a Value>,
}

/// A call that may have to be sent on.
pub(super) struct Journey<'a> {
    forward: &'a dyn Forward,
    method: &'static str,
    changes_state: bool,
    /// Sending it again when it may have taken effect does harm.
    once: bool,
    /// It was sent, and nobody knows what became of it there.
    in_doubt: bool,
    /// The call as it is sent, but for its cover; written when it is first needed.
    written: Option<Bytes>,
    deadline: Option<Instant>,
    give_up: Instant,
    pause: Duration,
}

/// What to do next.
pub(super) enum Next {
    /// This is the answer.
    Answer(Outcome),
    /// The flow may be here now.
    LookAgain,
}

impl<'a> Journey<'a> {
    pub(super) fn new<C>(
        forward: &'a dyn Forward,
        method: &Method<C>,
        call: &Call,
        deadline: Option<Instant>,
    ) -> Self {
        Self {
            forward,
            method: method.name,
            changes_state: method.changes_state(),
            once: method.changes_state() && call.caller.idempotency.is_none(),
            in_doubt: false,
            written: None,
            deadline,
            give_up: Instant::now() + SEARCH_MAX,
            pause: PAUSE_FIRST,
        }
    }

    /// Takes the call to who is said to own its flow.
    pub(super) async fn go_on(&mut self, call: &Call, whose: &Elsewhere) -> Next {
        if let Some(node) = &whose.0 {
            let wait = self.deadline.map_or(ANSWER_WAIT, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            let body = covered(call, wait, &self.written(call).await);
            match self.forward.send(node, body, wait).await {
                Sent::Answered(answer) => return Next::Answer(self.judged(read(answer).await)),
                Sent::NotTaken => {}
                Sent::Broken if self.once => return Next::Answer(Err(unknown())),
                Sent::Broken => self.in_doubt = self.changes_state,
            }
        }
        let now = Instant::now();
        let resume = now + self.pause;
        if resume >= self.give_up || self.deadline.is_some_and(|at| resume >= at) {
            let busy = RpcError::busy(
                "the flow has no server at the moment; nothing was changed",
                RETRY_AFTER_MS,
            );
            return Next::Answer(self.judged(Err(busy)));
        }
        tokio::time::sleep_until(resume).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Next::LookAgain
    }

    /// What the caller is told. That nothing was done holds for the last try only: it is not said of a
    /// call that an earlier one may have carried out.
    pub(super) fn judged(&self, outcome: Outcome) -> Outcome {
        let (busy, _) = ErrorKind::Busy.row();
        let (failed, _) = ErrorKind::Internal.row();
        match outcome {
            Err(error) if self.in_doubt && (error.code == busy || error.code == failed) => {
                Err(unknown())
            }
            outcome => outcome,
        }
    }

    /// The call without its cover. Written on a thread that may be kept busy, because nobody knows
    /// its size before.
    async fn written(&mut self, call: &Call) -> Bytes {
        if let Some(written) = &self.written {
            return written.clone();
        }
        let (method, call) = (self.method, call.clone());
        let written = tokio::task::spawn_blocking(move || written(method, &call)).await;
        let written = written.expect("a value with string keys can be written");
        self.written.insert(written).clone()
    }
}

fn unknown() -> RpcError {
    RpcError::internal_answer("outcome unknown; retry with the same idempotency key")
        .with("retry_after_ms", RETRY_AFTER_MS)
}

/// A written call as it is sent: two lines of JSON.
fn covered(call: &Call, wait: Duration, written: &[u8]) -> Bytes {
    let cover = Cover {
        principal: Cow::from(&*call.caller.principal),
        correlation: Cow::from(&*call.caller.correlation),
        traceparent: call.caller.traceparent.as_deref().map(Cow::from),
        wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
    };
    let mut body = serde_json::to_vec(&cover).expect("a value with string keys can be written");
    body.push(b'\n');
    body.extend_from_slice(written);
    body.into()
}

/// The second line.
fn written(method: &'static str, call: &Call) -> Bytes {
    let sending = Sending {
        jsonrpc: "2.0",
        id: 0,
        method,
        params: &call.params,
        metadata: call.metadata.as_deref(),
        configuration: call.configuration.as_deref(),
    };
    let written = serde_json::to_vec(&sending);
    written
        .expect("a value with string keys can be written")
        .into()
}

/// A call as it arrives; `None` for what no node sends.
pub(super) async fn received(body: Bytes) -> Option<(Request, Origin, Duration)> {
    if body.len() <= INLINE_PARSE_BYTES_MAX {
        return arrived(&body);
    }
    let parsed = tokio::task::spawn_blocking(move || arrived(&body));
    parsed.await.ok().flatten()
}

fn arrived(body: &[u8]) -> Option<(Request, Origin, Duration)> {
    let end = body.iter().position(|byte| *byte == b'\n')?;
    let cover: Cover<'_> = serde_json::from_slice(&body[..end]).ok()?;
    let origin = Origin {
        principal: Arc::from(&*cover.principal),
        correlation: Arc::from(&*cover.correlation),
        traceparent: cover
            .traceparent
            .as_deref()
            .and_then(valid_traceparent)
            .map(Arc::from),
    };
    match envelope::parse(&body[end + 1..]) {
        Envelope::Single(Element::Request(request)) => {
            Some((*request, origin, Duration::from_millis(cover.wait_ms)))
        }
        Envelope::Single(Element::Invalid { .. }) | Envelope::Batch(_) | Envelope::Refused(_) => {
            None
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    result: Option<Box<RawValue>>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    code: i64,
    data: Value,
}

/// The answer of another node, as if it were ours.
async fn read(answer: Vec<u8>) -> Outcome {
    if answer.len() <= INLINE_PARSE_BYTES_MAX {
        return understood(&answer);
    }
    let parsed = tokio::task::spawn_blocking(move || understood(&answer));
    parsed
        .await
        .unwrap_or_else(|_| Err(RpcError::busy("the server is stopping", RETRY_AFTER_MS)))
}

fn understood(answer: &[u8]) -> Outcome {
    let odd = || RpcError::internal_answer("another server gave an answer that cannot be read");
    let answer: Answer = serde_json::from_slice(answer).map_err(|_| odd())?;
    match (answer.result, answer.error) {
        (Some(result), None) => Ok(Text::Whole(result).into()),
        (None, Some(refusal)) => {
            let row = ErrorKind::ALL.iter().find(|k| k.row().0 == refusal.code);
            let (code, message) = row.ok_or_else(odd)?.row();
            Err(RpcError {
                code,
                message,
                data: refusal.data,
                elsewhere: None,
            })
        }
        (Some(_), Some(_)) | (None, None) => Err(odd()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::caller::Caller;
    use crate::transport::jsonrpc::dispatch::Reply;
    use serde_json::json;

    fn call() -> Call {
        let object = |v: Value| v.as_object().cloned().expect("an object");
        Call {
            params: Arc::new(object(json!({"name": "line\nbreak", "n": 1.5}))),
            metadata: Some(Arc::new(object(json!({"idempotency_key": "k"})))),
            configuration: Some(Arc::new(json!({"c": [1]}))),
            caller: Caller {
                principal: Arc::from("ann \"x\"\né"),
                ..Caller::anonymous(Arc::from("req-1"))
            },
        }
    }

    #[test]
    fn a_call_arrives_as_it_was_sent() {
        let sent = call();
        let written = written("tasks.create", &sent);
        let body = covered(&sent, Duration::from_millis(1500), &written);
        let (request, origin, wait) = arrived(&body).expect("it can be read");
        assert_eq!((&*request.method, wait.as_millis()), ("tasks.create", 1500));
        assert_eq!(
            request.params,
            envelope::Params::Named((*sent.params).clone())
        );
        assert_eq!(request.metadata.as_ref(), sent.metadata.as_deref());
        assert_eq!(
            request.configuration.as_ref(),
            sent.configuration.as_deref()
        );
        assert_eq!(origin.principal, sent.caller.principal);
        assert_eq!(origin.correlation, sent.caller.correlation);
    }

    #[test]
    fn what_no_node_sends_is_no_call() {
        let bodies: [&[u8]; 4] = [b"", b"{}\n{}", b"no\nno", br#"{"jsonrpc":"2.0"}"#];
        for body in bodies {
            assert!(arrived(body).is_none(), "{body:?}");
        }
    }

    #[test]
    fn answers_are_passed_on_unchanged() {
        let text = br#"{"jsonrpc":"2.0","result":{"b":1, "a":1.50},"id":0}"#;
        let Ok(Reply::Text(Text::Whole(result))) = understood(text) else {
            panic!("a result");
        };
        assert_eq!(result.get(), r#"{"b":1, "a":1.50}"#);
        let refusal = RpcError::busy("full", 7);
        let text = json!({"jsonrpc": "2.0", "error": refusal, "id": 0}).to_string();
        assert_eq!(understood(text.as_bytes()).err(), Some(refusal));
    }
}

//! Answers as bytes. The id's text and the result's text are copied into the buffer as they are.

use super::error::{ErrorKind, RETRY_AFTER_TIMEOUT_MS, RpcError};
use super::text::{NotWhole, Text};
use crate::application::api::work::Release;
use crate::application::api::{Pieces, Run};
use crate::subscription::stream::Notices;
use crate::transport::budget::Share;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

/// Bytes of one answer that is made in memory, a batch's together, unless set otherwise: about four
/// times a tree of 100,000 tasks. Long answers to single calls are never in memory as a whole.
pub const WHOLE_ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Bytes of an answer that no budget is asked for: most answers, and every refusal.
const FREE_BYTES: usize = 64 * 1024;
/// What a caller is told to wait when too many answers wait for their readers, in milliseconds.
const RETRY_AFTER_ANSWERS_MS: u64 = 1000;

/// The room that an answer may take.
pub(super) struct Room<'a> {
    /// Bytes of the whole body.
    pub(super) bytes_max: usize,
    /// Its part of the bytes of all answers.
    pub(super) share: &'a mut Share,
    /// The call has changed something: its result is told even when there is no room.
    pub(super) must_be_told: bool,
}

impl Room<'_> {
    /// Asks for room for a body of so many bytes.
    fn holds(&mut self, bytes: usize) -> Result<(), RpcError> {
        if bytes > self.bytes_max {
            tracing::warn!(answer.bytes = bytes, "an answer is larger than the limit");
            return Err(too_large(self.bytes_max));
        }
        let counted = if bytes > FREE_BYTES { bytes } else { 0 };
        if self.must_be_told {
            self.share.cover_always(counted);
            return Ok(());
        }
        self.share
            .cover(counted)
            .map_err(|full| RpcError::busy(full.reason_for_answers(), RETRY_AFTER_ANSWERS_MS))
    }
}

/// The outcome of one element of a body.
pub type Outcome = Result<Reply, RpcError>;

/// The reply to a call that was carried out.
#[derive(Debug)]
pub enum Reply {
    /// A result.
    Text(Text),
    /// The result of a call that has begun a run, which may be followed.
    Begun(Box<RawValue>, Run),
    /// The result of a call by which a worker got tasks, and how to release them if it does not reach the worker.
    Claimed(Box<RawValue>, Vec<Release>),
    /// A result, and a stream behind it.
    Stream(Box<Streamed>),
}

/// What the call has claimed, taken out of its outcome.
pub(super) fn claimed(outcome: &mut Outcome) -> Vec<Release> {
    match outcome {
        Ok(Reply::Claimed(_, claimed)) => std::mem::take(claimed),
        Ok(Reply::Text(_) | Reply::Begun(..) | Reply::Stream(_)) | Err(_) => Vec::new(),
    }
}

/// A stream that a call is answered with, behind its result.
#[derive(Debug)]
pub struct Streamed {
    /// The result of the call.
    pub result: Box<RawValue>,
    /// What follows.
    pub stream: Notices,
}

impl From<Streamed> for Reply {
    fn from(streamed: Streamed) -> Self {
        Self::Stream(Box::new(streamed))
    }
}

impl From<Text> for Reply {
    fn from(text: Text) -> Self {
        Self::Text(text)
    }
}

impl From<Box<RawValue>> for Reply {
    fn from(text: Box<RawValue>) -> Self {
        Self::Text(text.into())
    }
}

/// What a request is answered, and what its caller has claimed and does not know of yet.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) body: Body,
    pub(crate) claimed: Vec<Release>,
    /// Why a call that stands alone was refused.
    pub(crate) refused: Option<ErrorKind>,
}

impl From<Body> for Answer {
    fn from(body: Body) -> Self {
        Self {
            body,
            claimed: Vec::new(),
            refused: None,
        }
    }
}

/// What the answers that were appended to a body tell of.
#[derive(Default)]
pub(super) struct Appended {
    /// The milliseconds to wait, if all calls were refused for the rate of their caller.
    pub(super) wait_ms: Option<u64>,
    pub(super) claimed: Vec<Release>,
}

/// The body of an answer.
#[derive(Debug)]
pub enum Body {
    /// All of it.
    Whole(Vec<u8>),
    /// All of it, which says of each call that its caller calls too fast; and the milliseconds to wait.
    Limited(Vec<u8>, u64),
    /// A result that is made while it is sent, between the beginning and the end of its answer.
    Long {
        /// Before the result.
        head: Vec<u8>,
        /// The pieces of the result, in order.
        result: Pieces,
        /// Behind the result.
        tail: Vec<u8>,
    },
    /// An answer with a stream behind it.
    Stream {
        /// The id of the call.
        id: Box<RawValue>,
        /// Its result and the stream.
        streamed: Box<Streamed>,
    },
}

/// The answer to one call, which may be long.
pub(super) fn body(room: Room<'_>, id: Box<RawValue>, outcome: Outcome) -> Body {
    let mut head = Vec::new();
    let outcome = match outcome {
        Ok(Reply::Text(Text::Pieces(result))) => {
            head.extend_from_slice(OPENING);
            let mut tail = Vec::new();
            close(&mut tail, id.get());
            return Body::Long { head, result, tail };
        }
        Ok(Reply::Stream(streamed)) => return Body::Stream { id, streamed },
        Ok(Reply::Text(Text::Whole(text)) | Reply::Begun(text, _) | Reply::Claimed(text, _)) => {
            Ok(text)
        }
        Err(error) => Err(error),
    };
    answer(&mut head, room, Some(&id), &outcome);
    match outcome.err().and_then(|error| error.rate_limited_ms()) {
        Some(wait_ms) => Body::Limited(head, wait_ms),
        None => Body::Whole(head),
    }
}

/// The answer that goes before a stream.
pub(crate) fn first(id: &RawValue, result: &RawValue) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(result.get().len() + id.get().len() + 48);
    buffer.extend_from_slice(OPENING);
    buffer.extend_from_slice(result.get().as_bytes());
    close(&mut buffer, id.get());
    buffer
}

/// The answer among others, for which a long result must be whole.
async fn whole(bytes_max: usize, outcome: Outcome) -> Result<Box<RawValue>, RpcError> {
    let text = match outcome? {
        Reply::Text(text) => text,
        Reply::Begun(result, _) | Reply::Claimed(result, _) => return Ok(result),
        Reply::Stream(streamed) => return Ok(streamed.result),
    };
    text.whole(bytes_max).await.map_err(|error| match error {
        NotWhole::TooLong => too_large(bytes_max),
        NotWhole::Cut => RpcError::internal_answer("the answer was cut off"),
    })
}

/// The same, if it can be read by then.
pub(super) async fn whole_by(
    bytes_max: usize,
    outcome: Outcome,
    deadline: Option<Instant>,
) -> Result<Box<RawValue>, RpcError> {
    let whole = whole(bytes_max, outcome);
    match deadline {
        Some(deadline) => timeout_at(deadline, whole).await.unwrap_or_else(|_| {
            let reason = "the answer was not read in time; ask for it alone";
            Err(RpcError::busy(reason, RETRY_AFTER_TIMEOUT_MS))
        }),
        None => whole.await,
    }
}

fn too_large(bytes_max: usize) -> RpcError {
    RpcError::internal_answer("the answer is too large, ask for less")
        .with("limit_bytes", bytes_max)
}

const OPENING: &[u8] = br#"{"jsonrpc":"2.0","result":"#;

/// Appends the answer to `id` (`None` = null). A result for which there is no room becomes an error.
/// Cost: O(size), one copy.
pub(super) fn answer(
    buffer: &mut Vec<u8>,
    mut room: Room<'_>,
    id: Option<&RawValue>,
    outcome: &Result<Box<RawValue>, RpcError>,
) {
    let id = id.map_or("null", RawValue::get);
    let result = match outcome {
        Ok(result) => result.get(),
        Err(error) => return failure(buffer, id, error),
    };
    if let Err(error) = room.holds(buffer.len() + result.len() + id.len()) {
        return failure(buffer, id, &error);
    }
    // 40 bytes of punctuation and member names, and the bracket of a batch.
    buffer.reserve(result.len() + id.len() + 48);
    buffer.extend_from_slice(OPENING);
    buffer.extend_from_slice(result.as_bytes());
    close(buffer, id);
}

fn failure(buffer: &mut Vec<u8>, id: &str, error: &RpcError) {
    buffer.extend_from_slice(br#"{"jsonrpc":"2.0","error":"#);
    serde_json::to_writer(&mut *buffer, error).expect("a value with string keys can be written");
    close(buffer, id);
}

fn close(buffer: &mut Vec<u8>, id: &str) {
    buffer.extend_from_slice(br#","id":"#);
    buffer.extend_from_slice(id.as_bytes());
    buffer.push(b'}');
}

/// The answer to a call that was refused.
pub(crate) fn failed(id: &RawValue, error: &RpcError) -> Vec<u8> {
    let mut buffer = Vec::new();
    failure(&mut buffer, id.get(), error);
    buffer
}

/// The answer to something that has no readable id.
pub(crate) fn refusal(error: &RpcError) -> Vec<u8> {
    let mut buffer = Vec::new();
    failure(&mut buffer, "null", error);
    buffer
}

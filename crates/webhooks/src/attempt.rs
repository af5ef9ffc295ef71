//! One attempt: the request that is sent, and the meaning of its answer.
//!
//! Owns: which headers are sent, and what of an answer is kept. May not touch: when something is tried,
//! the store. Requests go out through [`Sender`], which is the guarded client, or a test.

use super::delivery::{Attempt, Due, Leased};
use super::signature::{UnusableKey, sign};
use async_trait::async_trait;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use taskledger_clock::retry_after;
use taskledger_domain::Timestamp;
use taskledger_net::egress::{self, Class, Egress, Incoming, Outgoing, Target};
use taskledger_sealing::Scrubber;
use tokio::time::Instant;

/// The same for each attempt to deliver a message.
pub const ID: HeaderName = HeaderName::from_static("webhook-id");
/// When the attempt began, in seconds.
pub const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
/// What proves that it is ours.
pub const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Bytes of an answer that are read: what comes after tells nothing new.
pub const RESPONSE_BYTES_MAX: usize = 16 * 1024;
/// Bytes of an answer that are kept, for each attempt of a log that is kept for weeks.
pub const KEPT_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a header, or of a word in one, from which on it is removed from answers. Shorter ones are hardly secret,
/// and are found in what says something else.
const HIDDEN_BYTES_MIN: usize = 8;
/// Bytes of an explanation that are kept.
const DETAIL_BYTES_MAX: usize = 512;
/// An attempt whose client does not end it in time is ended this much later.
const OVERTIME: Duration = Duration::from_secs(2);

/// Names that belong to us or to the connection. Refused when an endpoint is made; left out here as well,
/// because rows may be older than the rule.
const RESERVED: [&str; 17] = [
    "baggage",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Sends a request once, and follows nothing.
#[async_trait]
pub trait Sender: Send + Sync + std::fmt::Debug + 'static {
    /// The answer, whatever its status.
    ///
    /// # Errors
    /// [`egress::Error`]: none came within `timeout`.
    async fn send(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Incoming, egress::Error>;
}

#[async_trait]
impl Sender for Egress {
    async fn send(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Incoming, egress::Error> {
        // What was allowed when the endpoint was made may be forbidden now.
        let target = Target::parse(url, self.policy()).map_err(|error| egress::Error {
            class: Class::BlockedAddress,
            detail: error.to_string(),
            remote: None,
            duration: Duration::ZERO,
        })?;
        let request = Outgoing {
            target,
            method: Method::POST,
            headers,
            body,
            timeout,
            response_bytes_max: RESPONSE_BYTES_MAX,
        };
        Self::send(self, request).await
    }
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// 2xx, whatever became of the body.
    Arrived,
    /// Anything else; with the pause that the receiver asks for.
    Failed {
        /// `Retry-After`, if it made sense.
        retry_after: Option<Duration>,
    },
    /// 410.
    Gone,
}

/// The time at which an attempt begins, on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begins {
    /// By the clock that gave all stored times.
    pub now: Timestamp,
    /// By the machine's own, which receivers compare with theirs.
    pub wall: Timestamp,
}

/// Makes one attempt, and tells how it ended. Takes `timeout` at most, and a little.
pub async fn attempt(
    sender: &dyn Sender,
    endpoint: &Leased,
    due: &Due,
    begins: Begins,
    timeout: Duration,
) -> (Attempt, Outcome) {
    let begun = Instant::now();
    let blank = |duration: Duration| Attempt {
        at: begins.now,
        duration_ms: u32::try_from(duration.as_millis()).unwrap_or(u32::MAX),
        status: None,
        error: None,
        detail: None,
        remote: None,
        response: None,
        cause: due.cause,
    };
    let failed = Outcome::Failed { retry_after: None };
    let headers = match headers(endpoint, due, begins) {
        Ok(headers) => headers,
        Err(error) => {
            let attempt = Attempt {
                error: Some("key"),
                detail: kept_text(error.to_string().as_bytes(), DETAIL_BYTES_MAX),
                ..blank(Duration::ZERO)
            };
            return (attempt, failed);
        }
    };
    let sending = sender.send(&endpoint.url, headers, due.body.clone(), timeout);
    match tokio::time::timeout(timeout + OVERTIME, sending).await {
        Ok(Ok(answer)) => {
            let (error, outcome) = meaning(&answer, begins.wall);
            let attempt = Attempt {
                status: Some(answer.status.as_u16()),
                error: error.map(|(class, _)| class),
                detail: error.map(|(_, detail)| Arc::from(detail)),
                remote: answer.remote.map(|at| Arc::from(at.to_string())),
                response: kept_answer(&answer.body, endpoint),
                ..blank(answer.duration)
            };
            (attempt, outcome)
        }
        Ok(Err(error)) => {
            let attempt = Attempt {
                error: Some(error.class.as_str()),
                detail: kept_text(error.detail.as_bytes(), DETAIL_BYTES_MAX),
                remote: error.remote.map(|at| Arc::from(at.to_string())),
                ..blank(error.duration)
            };
            (attempt, failed)
        }
        Err(_) => {
            let attempt = Attempt {
                error: Some(Class::Timeout.as_str()),
                ..blank(begun.elapsed())
            };
            (attempt, failed)
        }
    }
}

/// The class and the explanation of an answer that does not accept the message, and what follows.
fn meaning(answer: &Incoming, wall: Timestamp) -> (Option<(&'static str, &'static str)>, Outcome) {
    let asked = answer.headers.get(RETRY_AFTER);
    let failed = Outcome::Failed {
        retry_after: asked.and_then(|v| retry_after(v.to_str().ok()?, wall)),
    };
    if answer.status.is_success() {
        (None, Outcome::Arrived)
    } else if answer.status == StatusCode::GONE {
        let detail = "the receiver wants nothing more";
        (Some(("status", detail)), Outcome::Gone)
    } else if answer.status.is_redirection() {
        let detail = "redirects are not followed";
        (Some((Class::Redirect.as_str(), detail)), failed)
    } else {
        let detail = "the receiver did not accept the message";
        (Some(("status", detail)), failed)
    }
}

/// The endpoint's own headers first, so that ours replace what has their names.
fn headers(endpoint: &Leased, due: &Due, begins: Begins) -> Result<HeaderMap, UnusableKey> {
    let mut headers = HeaderMap::new();
    for (name, value) in &endpoint.headers {
        let named = HeaderName::from_bytes(name.as_bytes());
        let (Ok(name), Ok(mut value)) = (named, HeaderValue::from_str(&value.0)) else {
            continue;
        };
        if RESERVED.contains(&name.as_str()) || name.as_str().starts_with("webhook-") {
            continue;
        }
        value.set_sensitive(true);
        headers.append(name, value);
    }
    let seconds = begins.wall.0.div_euclid(1_000_000);
    let signature = sign(
        &endpoint.keys,
        begins.now,
        &due.message_id,
        seconds,
        &due.body,
    )?;
    let agent = concat!("taskledger/", env!("CARGO_PKG_VERSION"));
    let content_type = endpoint.content_type.as_deref();
    let content_type = content_type.and_then(|it| HeaderValue::from_str(it).ok());
    let json = HeaderValue::from_static("application/json");
    headers.insert(CONTENT_TYPE, content_type.unwrap_or(json));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    headers.insert(TIMESTAMP, HeaderValue::from(seconds));
    let texts = [
        (ID, Some(&*due.message_id)),
        (SIGNATURE, Some(&*signature).filter(|s| !s.is_empty())),
        (TRACEPARENT, due.traceparent.as_deref()),
    ];
    for (name, text) in texts {
        if let Some(Ok(value)) = text.map(HeaderValue::from_str) {
            headers.insert(name, value);
        }
    }
    Ok(headers)
}

/// The beginning of an answer without the headers that the receiver was sent and may repeat: whoever sees
/// deliveries must not see those.
fn kept_answer(body: &[u8], endpoint: &Leased) -> Option<Arc<str>> {
    let kept = 0..body.len().min(KEPT_BYTES_MAX);
    let sent = endpoint.headers.iter().flat_map(|(name, value)| {
        // Of `Bearer x` the token alone, too.
        let words = value.0.split_ascii_whitespace();
        let texts = std::iter::once(&*value.0).chain(words);
        let texts = texts.filter(|text| text.len() >= HIDDEN_BYTES_MIN);
        texts.map(move |text| (name, text))
    });
    let shown = Scrubber::new(sent).part(body, kept).into_owned();
    kept_text(&shown, KEPT_BYTES_MAX)
}

/// The beginning of a text, as a database takes it: UTF-8 without NUL. Nothing of nothing.
fn kept_text(bytes: &[u8], bytes_max: usize) -> Option<Arc<str>> {
    // Replacing what is not UTF-8 makes it longer, so it is cut twice.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(bytes_max)]).replace('\0', "");
    let kept = &text[..text.floor_char_boundary(bytes_max)];
    (!kept.is_empty()).then(|| Arc::from(kept))
}

#[cfg(test)]
mod tests;

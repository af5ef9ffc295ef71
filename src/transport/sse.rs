//! Server-sent events: the parameters of the query, and how notices are written as a body.
//!
//! Owns: the parameters of `GET /events`, the headers of a stream, heartbeats, the message that says
//! that a stream begins elsewhere, the encoding of notices. May not touch: the log.
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html>

mod body;
mod encoding;
mod query;

pub(crate) use body::{Opening, Telling, retry_ms};
pub(crate) use encoding::JsonLine;
pub(crate) use query::Query;

use crate::subscription::cursor::Cursor;
use crate::subscription::stream::Reset;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

/// The header that names the place before the first event.
const CURSOR: HeaderName = HeaderName::from_static("x-taskledger-cursor");
/// The header that says why a stream does not begin where it was asked to.
const RESET: HeaderName = HeaderName::from_static("x-taskledger-reset");
/// For proxies of the nginx family: nothing is to be gathered.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Adds the headers of a stream that begins behind `place`.
pub(crate) fn headers(headers: &mut HeaderMap, place: Cursor, reset: Option<Reset>) {
    let fixed = [
        (CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (CACHE_CONTROL, "no-cache, no-transform"),
        (ACCEL_BUFFERING, "no"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let place = HeaderValue::from_str(&place.to_string());
    headers.insert(CURSOR, place.expect("a cursor is ASCII"));
    if let Some(reset) = reset {
        headers.insert(RESET, HeaderValue::from_static(reset.as_str()));
    }
}

/// Whether a client that sends this `Accept` takes a stream.
pub(crate) fn is_accepted(accept: &str) -> bool {
    accept.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
        let refused = |part: &str| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.is_some_and(|q| q.trim().parse() == Ok(0.0))
        };
        ["text/event-stream", "text/*", "*/*"].contains(&essence.as_str()) && !parts.any(refused)
    })
}

#[cfg(test)]
mod tests {
    use super::is_accepted;

    #[test]
    fn a_client_takes_streams_unless_it_says_otherwise() {
        for yes in [
            "text/event-stream",
            "*/*",
            "text/*;q=0.1",
            "application/json, Text/Event-Stream; q=0.5",
        ] {
            assert!(is_accepted(yes), "{yes}");
        }
        for no in [
            "application/json",
            "text/event-stream;q=0",
            "text/html, image/*",
            "",
        ] {
            assert!(!is_accepted(no), "{no}");
        }
    }
}

//! Turns an HTTP answer into a result, or into a failure that says what came instead.

use super::request::Request;
use crate::egress::Incoming;
use crate::engine::executor::ExecutorError;
use crate::engine::secrets::Scrubber;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, LOCATION, SET_COOKIE};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use taskledger_domain::json::{self, Unread};
use taskledger_domain::limits::PAYLOAD_BYTES_MAX;

/// Characters of an unexpected answer's body that an error shows.
const SHOWN_CHARS_MAX: usize = 500;

/// `scrubber` is for the body, which is cut and may be encoded; the rest of the result follows later.
pub(super) fn result(
    request: &Request,
    incoming: Incoming,
    scrubber: &Scrubber,
) -> Result<Value, ExecutorError> {
    let name = request.name();
    let truncated = incoming.truncated || incoming.body.len() > request.response_bytes_max;
    let kept = 0..incoming.body.len().min(request.response_bytes_max);
    let status = incoming.status.as_u16();
    if !request.expected.holds(incoming.status) {
        if let Some(host) = redirected_to(request, &incoming) {
            return Err(ExecutorError::new(format!(
                "{name} answered {status} and points to `{host}`; redirects are not followed"
            )));
        }
        let shown = scrubber.part(&incoming.body, kept);
        let shown = String::from_utf8_lossy(&shown);
        let shown: String = shown.chars().take(SHOWN_CHARS_MAX).collect();
        let expected = request.expected.text();
        let colon = if shown.is_empty() { "" } else { ": " };
        return Err(ExecutorError::new(format!(
            "{name} answered {status}, expected {expected}{colon}{shown}"
        )));
    }
    if truncated && !request.truncate {
        return Err(ExecutorError::new(format!(
            "{name} answered {status} with more than {} bytes, the limit of `response_bytes_max`",
            request.response_bytes_max
        )));
    }
    if incoming.cut && !truncated {
        return Err(ExecutorError::new(format!(
            "{name} answered {status}, and the answer broke off after {} bytes",
            incoming.body.len()
        )));
    }
    let mut result = Map::new();
    result.insert("status".to_owned(), status.into());
    result.insert("headers".to_owned(), headers(&incoming.headers));
    let whole_json = (scrubber.is_idle() || !truncated) && is_json(&incoming.headers);
    let parsed = whole_json.then(|| json::read(&incoming.body[kept.clone()]));
    let (field, body) = match parsed {
        Some(Ok(value)) => ("json", value),
        Some(Err(lossy @ (Unread::Large(_) | Unread::Reserved))) => {
            let fault = format!("{name} answered {status} with JSON that cannot be kept: {lossy}");
            return Err(ExecutorError::new(fault).not_retryable());
        }
        Some(Err(Unread::Json(_))) | None => body(&scrubber.part(&incoming.body, kept), truncated),
    };
    result.insert(field.to_owned(), body);
    result.insert("truncated".to_owned(), truncated.into());
    let ms = u64::try_from(incoming.duration.as_millis()).unwrap_or(u64::MAX);
    result.insert("duration_ms".to_owned(), ms.into());
    let result = Value::Object(result);
    let result_bytes = result.to_string().len();
    if result_bytes > PAYLOAD_BYTES_MAX {
        // Bytes that are no text grow, and so do characters that JSON must escape.
        return Err(ExecutorError::new(format!(
            "{name} answered {status} with {} bytes, which are {result_bytes} in a result; at most \
             {PAYLOAD_BYTES_MAX} fit",
            incoming.body.len()
        )));
    }
    Ok(result)
}

/// The host that a redirect names; the rest of it may be a secret.
fn redirected_to(request: &Request, incoming: &Incoming) -> Option<String> {
    let location = incoming
        .status
        .is_redirection()
        .then(|| incoming.headers.get(LOCATION))
        .flatten()?;
    let url = location
        .to_str()
        .ok()
        .and_then(|text| request.target.url().join(text).ok());
    let host = url.as_ref().and_then(|url| url.host_str());
    Some(host.unwrap_or("an address that is none").to_owned())
}

/// Names in lower case, repeated ones joined. Without cookies: they are credentials, and a result is
/// kept.
fn headers(headers: &HeaderMap) -> Value {
    let kept = headers.keys().filter(|name| **name != SET_COOKIE);
    let joined = |name| {
        let values: Vec<_> = headers
            .get_all(name)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        values.join(", ")
    };
    kept.map(|name| (name.to_string(), json!(joined(name))))
        .collect::<Map<_, _>>()
        .into()
}

/// What is no JSON: text if it is, else bytes.
fn body(body: &[u8], truncated: bool) -> (&'static str, Value) {
    let text_end = match std::str::from_utf8(body) {
        Ok(text) => text.len(),
        // A cut may go through a character.
        Err(error) if truncated && error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return ("body_base64", STANDARD.encode(body).into()),
    };
    let text = String::from_utf8_lossy(&body[..text_end]);
    ("body", text.into())
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .and_then(|kind| kind.split(';').next())
        .map(|kind| kind.trim().to_ascii_lowercase());
    kind.is_some_and(|kind| kind == "application/json" || kind.ends_with("+json"))
}

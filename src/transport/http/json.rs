//! Bodies of JSON: requests that are parsed, and responses.

use crate::runtime::{REQUEST_BYTES_INLINE_MAX, maybe_block_in_place};
use crate::transport::json_size;
use crate::transport::jsonrpc::envelope::{self, Envelope, INLINE_PARSE_BYTES_MAX};
use crate::transport::jsonrpc::{RpcError, error_body};
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use axum::response::Response;
use serde_json::Value;
use taskledger_domain::Violation;

/// What a caller is told to wait when the server has as many requests as it takes, in milliseconds.
const RETRY_AFTER_FULL_MS: u64 = 100;

/// The calls in a body.
pub(super) async fn parse(bytes: Bytes) -> Envelope {
    if bytes.len() <= INLINE_PARSE_BYTES_MAX {
        return envelope::parse(&bytes);
    }
    let reading = move || match json_size::is_too_large(&bytes) {
        true => Envelope::Refused(RpcError::invalid_request(vec![too_many_values()])),
        false => envelope::parse(&bytes),
    };
    tokio::task::spawn_blocking(reading)
        .await
        .unwrap_or_else(|_| {
            Envelope::Refused(RpcError::busy(
                "the server is stopping",
                RETRY_AFTER_FULL_MS,
            ))
        })
}

/// Why a body is refused that is not too large, but whose values would take too much memory.
fn too_many_values() -> Violation {
    let expected = format!(
        "values that take at most {} MiB of memory: each object takes 640 bytes, each further value 96",
        json_size::VALUES_BYTES_MAX / (1024 * 1024)
    );
    Violation::of("body", "too many values", expected, &Value::Null)
}

/// The refusal of a body of another protocol whose values would take too much memory.
pub(super) fn unless_too_many_values(bytes: &[u8]) -> Result<(), Box<Response>> {
    let tasks = match bytes.len() {
        0..=REQUEST_BYTES_INLINE_MAX => 0,
        _ => usize::MAX,
    };
    match maybe_block_in_place(tasks, || json_size::is_too_large(bytes)) {
        false => Ok(()),
        true => {
            let error = RpcError::invalid_request(vec![too_many_values()]);
            Err(Box::new(json(
                StatusCode::PAYLOAD_TOO_LARGE,
                error_body(&error),
            )))
        }
    }
}

/// A response with a JSON body.
pub(super) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

//! Bodies of JSON: requests that are parsed, and responses.

use crate::transport::jsonrpc::RpcError;
use crate::transport::jsonrpc::envelope::{self, Envelope, INLINE_PARSE_BYTES_MAX};
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use axum::response::Response;

/// What a caller is told to wait when the server has as many requests as it takes, in milliseconds.
const RETRY_AFTER_FULL_MS: u64 = 100;

/// The calls in a body.
pub(super) async fn parse(bytes: Bytes) -> Envelope {
    if bytes.len() <= INLINE_PARSE_BYTES_MAX {
        return envelope::parse(&bytes);
    }
    tokio::task::spawn_blocking(move || envelope::parse(&bytes))
        .await
        .unwrap_or_else(|_| {
            Envelope::Refused(RpcError::busy(
                "the server is stopping",
                RETRY_AFTER_FULL_MS,
            ))
        })
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

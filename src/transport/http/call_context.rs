//! Makes the context of a call from an HTTP request.

use super::connection::Peer;
use crate::application::Context;
use crate::application::api::Caller;
use crate::application::context::valid_traceparent;
use axum::http::header::HeaderName;
use axum::http::request::Parts;
use std::sync::Arc;

/// The header that carries the correlation id, in and out.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// What a use case knows of a request and its caller.
pub(super) fn context(head: &Parts, caller: Arc<Caller>, correlation: Arc<str>) -> Context {
    let trace = head.headers.get(TRACEPARENT);
    let mut context = Context::of(caller, correlation);
    context.address = head.extensions.get::<Peer>().map(|peer| peer.0);
    context.trace = trace
        .and_then(|value| value.to_str().ok())
        .and_then(valid_traceparent)
        .map(Arc::from);
    context
}

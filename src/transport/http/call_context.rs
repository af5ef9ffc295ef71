//! Makes the context of a call from an HTTP request.

use super::connection::Peer;
use crate::application::Context;
use crate::application::api::Caller;
use crate::application::context::valid_traceparent;
use crate::transport::budget::Holder;
use axum::http::header::HeaderName;
use axum::http::request::Parts;
use std::net::IpAddr;
use std::sync::Arc;

/// The header that carries the correlation id, in and out.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The id of a request.
#[derive(Debug, Clone)]
pub(super) struct RequestId {
    correlation: Arc<str>,
    /// The server's own, where the caller has chosen the correlation.
    own: Option<Arc<str>>,
}

impl RequestId {
    /// One that the caller has chosen, and that of the server.
    pub(super) fn chosen(correlation: &str, own: Arc<str>) -> Self {
        Self {
            correlation: Arc::from(correlation),
            own: Some(own),
        }
    }

    /// One that the server has made.
    pub(super) const fn made(correlation: Arc<str>) -> Self {
        Self {
            correlation,
            own: None,
        }
    }
}

/// The address of the client, if it is known.
pub(super) fn address(head: &Parts) -> Option<IpAddr> {
    head.extensions.get::<Peer>().map(|peer| peer.0)
}

/// The caller for whom the bytes of a request and of its answer are counted.
pub(super) fn holder(head: &Parts, caller: &Caller) -> Holder {
    Holder::of(caller, address(head))
}

/// What a use case knows of a request and its caller.
pub(super) fn context(head: &Parts, caller: Arc<Caller>, id: RequestId) -> Context {
    let trace = head.headers.get(TRACEPARENT);
    let mut context = Context::of(caller, id.correlation);
    context.own_id = id.own;
    context.address = address(head);
    context.trace = trace
        .and_then(|value| value.to_str().ok())
        .and_then(valid_traceparent)
        .map(Arc::from);
    context
}

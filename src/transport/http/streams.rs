//! Streams over HTTP: their limits, and their conversion to responses.

use super::call_context::context;
use super::connection::KeptAlive;
use super::door::Door;
use super::refusal;
use super::stream_place::Opens;
pub(super) use super::stream_place::place;
use crate::application::api::{Session, Watching};
use crate::subscription::stream::{Notices, Reset};
use crate::transport::jsonrpc::{RpcError, Streamed, answer_body};
use crate::transport::sse::{self, Opening, Query, Telling};
use axum::body::Body;
use axum::http::header::{ACCEPT, HeaderMap, HeaderName};
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Where an `EventSource` says which event was its last.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

impl<C: Send + Sync + 'static> Door<C> {
    /// Answers `GET /events`.
    pub(super) async fn events(self: Arc<Self>, request: Request<Body>) -> Response {
        let (head, _) = request.into_parts();
        self.told(&head)
            .await
            .unwrap_or_else(|refusal| self.counted(*refusal))
    }

    async fn told(&self, head: &Parts) -> Result<Response, Box<Response>> {
        let Some(streams) = self.dispatcher.streams() else {
            return Err(Box::new(refusal::not_found(head.uri.path())));
        };
        unless_taken(&head.headers)?;
        let query = head.uri.query().unwrap_or_default();
        let last = head.headers.get(LAST_EVENT_ID);
        let query = Query::read(query, last.map(|value| value.as_bytes()));
        let query = query.map_err(|faults| {
            let error = RpcError::invalid_params(faults);
            Box::new(refusal::with(StatusCode::BAD_REQUEST, &error))
        })?;
        let caller = self.admitted(head).await?;
        let place = place(&self.streams)?;
        let (correlation, _) = self.correlation(&head.headers);
        let context = context(head, caller, correlation);
        let begun = streams.watch(&context, query.watch, query.from).await;
        let Watching { stream, reset } =
            begun.map_err(|error| Box::new(refusal::of_call(&error)))?;
        let reset = query.reset.or(reset);
        let retry = sse::retry_ms(self.clock.uuid().as_u128());
        let opening = Opening::Greeting { reset, retry };
        Ok(self.stream(stream, reset, opening, (place, self.session(head))))
    }

    /// An answer to a call with a stream behind it.
    pub(super) fn streamed(&self, id: &RawValue, streamed: Streamed, opens: Opens) -> Response {
        let opening = Opening::Answer(answer_body(id, &streamed.result));
        self.stream(streamed.stream, None, opening, opens)
    }

    fn stream(
        &self,
        stream: Notices,
        reset: Option<Reset>,
        opening: Opening,
        (place, session): Opens,
    ) -> Response {
        let begins = stream.place();
        let alive = KeptAlive::default();
        let (ending, watched) = match session {
            None => (self.draining.clone(), None),
            Some(session) => {
                let ending = self.draining.child_token();
                (ending.clone(), Some(watched(session, ending)))
            }
        };
        let figures = self.dispatcher.figures().clone();
        let kept = (place, alive.clone(), watched);
        let body = Telling::body(stream, opening, &ending, (figures, &self.draining), kept);
        let mut response = Response::new(body);
        sse::headers(response.headers_mut(), begins, reset);
        response.extensions_mut().insert(alive);
        response
    }
}

/// Ends a stream whose credentials do not hold any more. Dropping what it gives stops watching.
pub(super) fn watched(session: Session, ending: CancellationToken) -> DropGuard {
    let over = CancellationToken::new();
    let guard = over.clone().drop_guard();
    tokio::spawn(async move {
        tokio::select! {
            () = over.cancelled() => {}
            _ = session.ended() => ending.cancel(),
        }
    });
    guard
}

/// 406 for a client that takes no streams.
fn unless_taken(headers: &HeaderMap) -> Result<(), Box<Response>> {
    let mut accept = headers.get_all(ACCEPT).iter().peekable();
    if accept.peek().is_none() || accept.any(|value| value.to_str().is_ok_and(sse::is_accepted)) {
        return Ok(());
    }
    Err(Box::new(refusal::not_acceptable(headers)))
}

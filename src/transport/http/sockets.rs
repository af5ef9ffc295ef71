//! Upgrades a request to a WebSocket.

use super::call_context::address;
use super::connection::Place;
use super::door::Door;
use super::{refusal, streams};
use crate::transport::overhead::Overhead;
use crate::transport::ws::{MESSAGE_BYTES_MAX, Sockets};
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::Request;
use axum::response::Response;
use std::sync::Arc;

/// Read at once: some eight calls of a worker. Kept for each socket from when it opens, so that it is a large part of
/// what an idle one costs; for a longer message it grows.
const READ_BUFFER_BYTES: usize = 2 * 1024;

impl<C: Send + Sync + 'static> Door<C> {
    /// Answers `GET /ws`: 101, or the refusal.
    pub(super) async fn socket(self: Arc<Self>, request: Request<Body>) -> Response {
        let (mut head, _) = request.into_parts();
        if self.dispatcher.streams().is_none() {
            return refusal::not_found(head.uri.path());
        }
        if !self.hosts.admits_origin(&head.headers) {
            return refusal::foreign_origin(&head.headers);
        }
        let caller = match self.admitted(&head).await {
            Ok(caller) => caller,
            Err(refusal) => return *refusal,
        };
        let upgrade = match WebSocketUpgrade::from_request_parts(&mut head, &()).await {
            Ok(upgrade) => upgrade,
            Err(_) => return refusal::no_upgrade(),
        };
        let place = match streams::place(&self.streams) {
            Ok(place) => place,
            Err(refusal) => return self.counted(*refusal),
        };
        let sockets = Arc::new(Sockets {
            dispatcher: self.dispatcher.clone(),
            service: self.service.clone(),
            clock: self.clock.clone(),
            caller,
            address: address(&head),
            session: self.session(&head),
            heard: Arc::new(crate::transport::ws::Heard::new()),
            requests: self.requests.clone(),
            answers: self.answers.clone(),
            overhead: head
                .extensions
                .remove::<Arc<Overhead>>()
                .unwrap_or_default(),
            request_timeout: self.request_timeout,
            draining: self.draining.clone(),
            cut: self.cut.clone(),
            tracker: self.detached.clone(),
        });
        // Held until the socket is closed: the stream's place, that of the connection, and the drain.
        let kept = (
            place,
            head.extensions.remove::<Place>(),
            self.detached.token(),
        );
        upgrade
            .read_buffer_size(READ_BUFFER_BYTES)
            .max_message_size(MESSAGE_BYTES_MAX)
            .max_frame_size(MESSAGE_BYTES_MAX)
            .on_upgrade(move |socket| async move {
                sockets.serve(socket).await;
                drop(kept);
            })
    }
}

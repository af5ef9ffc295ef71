//! A stream's place among the limited number of streams.

use super::refusal;
use crate::application::api::Session;
use axum::response::Response;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a stream is opened with: its place among all, and by which it lives; the latter is none while
/// authentication is off.
pub(super) type Opens = (OwnedSemaphorePermit, Option<Session>);

/// A place among the streams.
///
/// # Errors
/// 429: there are as many as there may be.
pub(super) fn place(streams: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Box<Response>> {
    let place = Arc::clone(streams).try_acquire_owned();
    place.map_err(|_| Box::new(refusal::too_many_streams()))
}

//! Turns for reading the large bodies of one caller.

use super::door::Door;
use super::refusal;
use crate::application::api::{Caller, Error, Turn};
use axum::response::Response;
use tokio::time::Instant;

impl<C: Send + Sync + 'static> Door<C> {
    /// Waits until a message of so many bytes may be read.
    ///
    /// # Errors
    /// `Busy`: the time of the call ended before its turn came.
    pub(super) async fn turn(
        &self,
        caller: &Caller,
        bytes: usize,
        deadline: Instant,
    ) -> Result<Option<Turn>, Error> {
        match &self.service {
            Some(service) => service.turn_to_read(caller, bytes, deadline).await,
            None => Ok(None),
        }
    }

    /// The same for a body, with the refusal as a response.
    pub(super) async fn turn_to_read(
        &self,
        caller: &Caller,
        bytes: usize,
        deadline: Instant,
    ) -> Result<Option<Turn>, Box<Response>> {
        let turn = self.turn(caller, bytes, deadline).await;
        turn.map_err(|error| Box::new(refusal::too_busy(&error.to_string())))
    }
}

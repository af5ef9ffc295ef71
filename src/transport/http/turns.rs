//! The turns in which large bodies of one caller are read.

use super::door::Door;
use super::refusal;
use crate::application::api::{Caller, EarlyTurn, Error, Turn};
use crate::transport::jsonrpc::envelope::Envelope;
use axum::response::Response;
use tokio::time::Instant;

/// Methods whose calls keep their turn until they are carried out. Others have been read then.
const MAKE_TASKS: [&str; 2] = ["tasks.create", "tasks.execute"];

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

/// What is kept of the turn of a body that was read.
pub(super) fn kept(turn: Option<Turn>, envelope: &Envelope) -> EarlyTurn {
    let makes_tasks = || envelope.methods().any(|it| MAKE_TASKS.contains(&it));
    let turn = turn.filter(|_| makes_tasks());
    turn.map(EarlyTurn::of).unwrap_or_default()
}

//! Decides which calls keep the turn in which they were read.

use crate::application::api::{EarlyTurn, Turn};
use crate::transport::jsonrpc::envelope::Envelope;

/// Methods whose calls keep their turn until they are carried out. Others have been read then.
const MAKE_TASKS: [&str; 2] = ["tasks.create", "tasks.execute"];

/// What is kept of the turn of a body that was read.
pub(super) fn kept(turn: Option<Turn>, envelope: &Envelope) -> EarlyTurn {
    let makes_tasks = || envelope.methods().any(|it| MAKE_TASKS.contains(&it));
    let turn = turn.filter(|_| makes_tasks());
    turn.map(EarlyTurn::of).unwrap_or_default()
}

//! Chooses whose declarations of methods a turn uses: those of the flow's owner.

use crate::application::flows::Flows;
use crate::application::slots::Turn;
use taskledger_domain::FlowId;
use taskledger_domain::flow::{Command, Flow};

/// The number of a snapshot of the directory of executors that there never is.
const ASKED_FOR_ANOTHER: u64 = u64::MAX;

/// The turn of a command on a flow, and for whom it asks; `None` also where that makes no difference.
pub(super) fn turn<'a>(
    flows: &'a Flows,
    id: FlowId,
    flow: &Flow,
    command: &Command,
) -> (Turn<'a>, Option<Box<str>>) {
    let owner = flow.owner().or_else(|| first_owner(command));
    let turn = flows.slots.turn(id, owner);
    let owner = owner.filter(|_| turn.has_owners()).map(Box::from);
    (turn, owner)
}

/// The snapshot that a turn has asked; none that there is when the flow has another owner now, whose declarations were
/// not asked.
pub(super) fn asked(turn: &Turn<'_>, flow: &Flow, owner: Option<&str>) -> u64 {
    let is_given_away = turn.has_owners() && flow.owner() != owner;
    if is_given_away {
        ASKED_FOR_ANOTHER
    } else {
        turn.number()
    }
}

/// The future owner of the flow that a command begins.
fn first_owner(command: &Command) -> Option<&str> {
    let tasks = if let Command::Create(tasks) = command {
        tasks
    } else if let Command::Execute(execute) = command {
        &execute.create
    } else {
        return None;
    };
    let root = tasks.iter().find(|task| task.parent.is_none())?;
    root.user_id.as_deref()
}

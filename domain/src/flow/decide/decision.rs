//! The type of a decision, and the lookup of the task that a command is about.

use crate::TaskId;
use crate::flow::command::Done;
use crate::flow::event::Event;
use crate::flow::refusal::{Argument, Refusal, Rejection};
use crate::flow::state::Flow;

/// The events of an accepted command.
pub(crate) type Decision = Result<(Vec<Event>, Done), Rejection>;

/// The live task with this id, which the command is about.
pub(super) fn find(flow: &Flow, id: TaskId) -> Result<u32, Refusal> {
    flow.live(id).ok_or_else(|| match flow.archived() {
        Some(archived) => Refusal::archived(Argument::Task, id, archived),
        None => Refusal::not_found(Argument::Task, id),
    })
}

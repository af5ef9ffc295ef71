//! The end of a flow in the log: it was copied, and everything before may go. Cost: O(tasks).

use super::Decision;
use crate::Violation;
use crate::flow::command::{Archive, Done, Rest};
use crate::flow::event::Event;
use crate::flow::rejection::{Kind, Rejection};
use crate::flow::state::Flow;
use crate::task::Status;
use serde_json::Value;

pub(super) fn archive(flow: &Flow, order: &Archive) -> Decision {
    let refused = |reason: &str, expected: &str, actual: Value| {
        let fault = Violation::of("flow", reason, expected, &actual);
        Err(Rejection::one(Kind::InvalidTransition, fault))
    };
    if flow.archived().is_some() {
        let actual = Value::from(flow.version());
        return refused("Flow was archived already", "a flow in the log", actual);
    }
    if flow.version() == 0 || flow.version() != order.version {
        let expected = format!("version {}, which was copied", order.version);
        let actual = Value::from(flow.version());
        return refused("Flow has changed since it was copied", &expected, actual);
    }
    if flow.has_active_run() {
        return refused("Flow is running", "a flow at rest", Value::Null);
    }
    let live = flow.tasks.iter().filter(|task| !task.deleted);
    let moving = live.map(|task| task.status).find(|status| match status {
        Status::Pending => order.rest == Rest::Finished,
        Status::InProgress => true,
        Status::Completed | Status::Failed | Status::Cancelled => false,
    });
    if let Some(status) = moving {
        let expected = "a flow whose tasks have all ended";
        return refused(
            "Not all tasks have ended",
            expected,
            Value::from(status.as_str()),
        );
    }
    Ok((vec![Event::FlowArchived(order.copy.clone())], Done::Ok))
}

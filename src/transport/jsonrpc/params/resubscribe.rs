//! `tasks.resubscribe`: a subscription goes on where it broke off.

use super::super::reader::{Parameters, Reader, TASK_ID, text};
use super::subscribe;
use crate::application::api::Scope;
use taskledger_domain::{TaskId, Violation};

/// Characters of what may be meant as a cursor. Longer than any cursor: what is none is answered with
/// a new beginning, and not refused.
const LAST_EVENT_ID_CHARS_MAX: usize = 1024;

/// Whom to watch, and from where on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// A stored task; its flow is watched.
    pub task_id: TaskId,
    /// The id of the last event that arrived, or the `cursor` of an answer.
    pub last_event_id: String,
    /// As in `tasks.subscribe`.
    pub scope: Scope,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task_id = reader.required("task_id", TASK_ID, "The task to watch.");
        let last_event_id = reader.required(
            "last_event_id",
            text(LAST_EVENT_ID_CHARS_MAX),
            "The `id` of the last event that arrived, or the `cursor` of an answer.",
        );
        let scope = subscribe::scope(&mut reader);
        reader.finish(|| {
            Some(Self {
                task_id: task_id?,
                last_event_id: last_event_id?,
                scope,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ID, faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_place_to_go_on_from_must_be_named() {
        assert_eq!(
            faults(Params::read(&map(json!({"task_id": ID})))),
            [("last_event_id".into(), "missing".into())]
        );
        assert!(Params::read(&map(json!({"task_id": ID, "last_event_id": "x"}))).is_ok());
    }
}

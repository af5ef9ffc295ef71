//! `tasks.cancel`. spec: interface / tasks.cancel

use super::super::reader::{BOOLEAN, Parameters, Reader, TASK_ID, text};
use taskledger_domain::{TaskId, Violation};

/// Unicode scalar values of a reason: it becomes the task's `error`, for people.
pub const REASON_CHARS_MAX: usize = 4096;

/// Which task to cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// A stored task that is pending or in progress.
    pub task_id: TaskId,
    /// Whether the descendants of a task with a method are cancelled too; those of a group always are.
    pub cascade: bool,
    /// Becomes the task's `error` instead of the default text.
    pub reason: Option<String>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task_id = reader.required("task_id", TASK_ID, "The task to cancel.");
        let cascade = reader.with_default(
            "cascade",
            BOOLEAN,
            false,
            "Whether the descendants of a task with a method are cancelled too; those of a group always are.",
        );
        let reason = reader.optional(
            "reason",
            text(REASON_CHARS_MAX),
            "Becomes the `error` of the task, instead of a default text.",
        );
        reader.finish(|| {
            Some(Self {
                task_id: task_id?,
                cascade,
                reason,
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
    fn a_cancel_does_not_cascade_unless_asked() {
        let read = Params::read(&map(json!({"task_id": ID, "reason": "too late"}))).unwrap();
        assert!(!read.cascade);
        assert_eq!(read.reason.as_deref(), Some("too late"));
    }

    #[test]
    fn a_reason_has_a_limit() {
        let long = "x".repeat(REASON_CHARS_MAX + 1);
        assert_eq!(
            faults(Params::read(&map(
                json!({"task_id": ID, "cascade": "yes", "reason": long})
            ))),
            [
                ("cascade".into(), "not a boolean".into()),
                ("reason".into(), "too long".into())
            ]
        );
    }
}

//! `tasks.cancel`. spec: interface / tasks.cancel

use crate::application::Service;
use crate::application::api::{Cancel, Request};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::methods::calling::{boxed, called};
use crate::transport::jsonrpc::reader::{BOOLEAN, Parameters, Reader, TASK_ID, text};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::tasks::constant;
use crate::transport::openrpc::about::{About, Example, GROUP};
use crate::transport::openrpc::schema_parts::{at, object};
use serde_json::json;
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

pub(super) fn method() -> Method<Service> {
    Method {
        name: "tasks.cancel",
        title: "Cancel Task",
        summary: "Cancel a pending or running task",
        tags: &["task", "cancel"],
        params: Params::declared(),
        changes: Changes::Flows,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                let cancel = Cancel {
                    task: p.task_id,
                    cascade: p.cascade,
                    reason: p.reason,
                    remarks: None,
                };
                called(&service, &call.context, Request::Cancel(cancel)).await
            })
        },
    }
}

fn about() -> About {
    About {
        description: "Cancels a task that is pending or in progress; its executor is stopped, a late outcome ignored. A group takes what is below it along, a task with a method does so with `cascade`.",
        result: "cancelled",
        schema: object(json!({"task_id": at("TaskId"), "status": constant("cancelled")})),
        errors: &[ErrorKind::TaskNotFound, ErrorKind::InvalidTransition],
        examples: vec![Example {
            name: "a group",
            description: "With everything in it, and a reason for people.",
            params: json!({"task_id": GROUP, "reason": "no longer needed"}),
            result: json!({"task_id": GROUP, "status": "cancelled"}),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{ID, faults, map};
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

//! `tasks.copy`. spec: interface / tasks.copy

use crate::application::Service;
use crate::application::api::{Copy, Request};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::methods::calling::{boxed, called};
use crate::transport::jsonrpc::reader::{BOOLEAN, Parameters, Reader, TASK_ID};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::tasks::constant;
use crate::transport::openrpc::about::{About, COUNT, Example, FETCH, MINTED};
use crate::transport::openrpc::schema_parts::{at, object};
use serde_json::json;
use taskledger_domain::{TaskId, Violation};

/// What to copy, and where to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The original.
    pub task_id: TaskId,
    /// Whether everything that a run of the task would cover is copied too.
    pub copy_children: bool,
    /// The copy becomes a subtree below this task; without it, a new flow.
    pub parent_id: Option<TaskId>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let original = reader.required("task_id", TASK_ID, "The task to copy.");
        let copy_children = reader.with_default(
            "copy_children",
            BOOLEAN,
            false,
            "Whether everything that a run of the task would cover is copied too.",
        );
        let parent_id = reader.optional(
            "parent_id",
            TASK_ID,
            "The copy becomes a subtree below this task; without it, a new flow.",
        );
        reader.finish(|| {
            Some(Self {
                task_id: original?,
                copy_children,
                parent_id,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "tasks.copy",
        title: "Copy Task",
        summary: "Copy a task or a task tree for re-execution",
        tags: &["task", "copy"],
        params: Params::declared(),
        changes: Changes::Flows,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                let copy = Copy {
                    task: p.task_id,
                    copy_children: p.copy_children,
                    parent: p.parent_id,
                };
                called(&service, &call.context, Request::Copy(copy)).await
            })
        },
    }
}

fn about() -> About {
    let dropped = object(json!({
        "task_id": at("TaskId"),
        "id": at("TaskId"),
        "required": {"type": "boolean"},
    }));
    About {
        description: "Copies a task, pending and with a new id; with `copy_children` also all tasks that a run of it would cover. The copy starts a flow, or joins that of `parent_id`. Dependencies that leave the copy are kept within the same flow and otherwise listed as dropped.",
        result: "copied",
        schema: object(json!({
            "original_task_id": at("TaskId"),
            "copied_task_id": at("TaskId"),
            "status": constant("pending"),
            "task_ids": {
                "type": "object",
                "additionalProperties": at("TaskId"),
                "description": "The copy of each original.",
            },
            "dropped_dependencies": {"type": "array", "items": dropped},
        })),
        errors: &[
            ErrorKind::TaskNotFound,
            ErrorKind::InvalidTree,
            ErrorKind::InvalidParent,
            ErrorKind::InvalidDependency,
            ErrorKind::QuotaExceeded,
        ],
        examples: vec![Example {
            name: "a task alone",
            description: "Its dependency is not copied, because it is in the other flow.",
            params: json!({"task_id": COUNT}),
            result: json!({
                "original_task_id": COUNT, "copied_task_id": MINTED, "status": "pending",
                "task_ids": {COUNT: MINTED},
                "dropped_dependencies": [{"task_id": MINTED, "id": FETCH, "required": true}],
            }),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{ID, faults, map};
    use serde_json::json;

    #[test]
    fn a_copy_is_one_task_and_a_new_flow_unless_asked() {
        let read = Params::read(&map(json!({"task_id": ID}))).unwrap();
        assert!(!read.copy_children);
        assert_eq!(read.parent_id, None);
        assert_eq!(
            faults(Params::read(&map(json!({"task_id": ID, "parent_id": "p"})))),
            [("parent_id".into(), "Invalid UUID format".into())]
        );
    }
}

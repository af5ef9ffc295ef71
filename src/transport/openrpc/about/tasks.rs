//! The methods that change tasks.

use super::super::schemas::{at, object, with_optional};
use super::{About, COUNT, Example, FAILING, FETCH, GROUP, MINTED, MINTED_TOO, RUN};
use crate::transport::jsonrpc::ErrorKind;
use serde_json::{Value, json};

fn constant(word: &str) -> Value {
    json!({"type": "string", "enum": [word]})
}

/// `tasks.create`.
#[must_use]
pub fn create() -> About {
    let created = object(json!({"id": at("TaskId"), "status": constant("pending")}));
    About {
        description: "Stores tasks, and starts none. Takes one task; a task with `children`; a node of `task` and `children`; or `tasks`, a list whose members refer to each other by id or name. Without `parent_id` the tasks start a new flow, otherwise they join the parent's flow. All are stored or none.",
        result: "created",
        schema: with_optional(created, json!({"task_ids": at("TaskIds")})),
        errors: &[
            ErrorKind::InvalidTree,
            ErrorKind::InvalidParent,
            ErrorKind::InvalidDependency,
            ErrorKind::CircularDependency,
            ErrorKind::QuotaExceeded,
        ],
        examples: vec![
            Example {
                name: "a task",
                description: "A single task, which starts a flow.",
                params: json!({
                    "name": "Echo", "user_id": "user-123", "priority": 1,
                    "inputs": {"text": "hello"}, "schemas": {"method": "echo_executor"},
                }),
                result: json!({"id": MINTED, "status": "pending"}),
            },
            Example {
                name: "a tree",
                description: "A group with two tasks in it.",
                params: json!({
                    "name": "both",
                    "children": [
                        {"name": "one", "schemas": {"method": "echo_executor"}},
                        {"name": "two", "schemas": {"method": "echo_executor"}, "dependencies": [{"id": "one"}]},
                    ],
                }),
                result: json!({
                    "id": MINTED, "status": "pending",
                    "task_ids": {"both": MINTED, "one": MINTED_TOO, "two": RUN},
                }),
            },
            Example {
                name: "a list",
                description: "A list of tasks that joins a stored flow.",
                params: json!({"tasks": [
                    {"id": "a", "name": "first", "parent_id": GROUP, "schemas": {"method": "echo_executor"}},
                    {"id": "b", "name": "then", "parent_id": GROUP, "schemas": {"method": "echo_executor"}, "dependencies": [{"id": "a"}, {"id": FETCH, "required": false}]},
                ]}),
                result: json!({
                    "id": MINTED, "status": "pending",
                    "task_ids": {"a": MINTED, "b": MINTED_TOO},
                }),
            },
        ],
    }
}

/// `tasks.update`.
#[must_use]
pub fn update() -> About {
    About {
        description: "Changes members of a task. Name and priority can always be changed; inputs, schemas, params and dependencies while it is pending or failed; user and parent while it is pending.",
        result: "updated",
        schema: object(json!({"id": at("TaskId"), "status": at("Status")})),
        errors: &[
            ErrorKind::TaskNotFound,
            ErrorKind::InvalidTree,
            ErrorKind::InvalidParent,
            ErrorKind::InvalidDependency,
            ErrorKind::CircularDependency,
            ErrorKind::AlreadyExecuting,
            ErrorKind::InvalidTransition,
        ],
        examples: vec![Example {
            name: "new name and priority",
            description: "The task keeps everything else.",
            params: json!({"task_id": COUNT, "updates": {"name": "count words", "priority": 1}}),
            result: json!({"id": COUNT, "status": "pending"}),
        }],
    }
}

/// `tasks.delete`.
#[must_use]
pub fn delete() -> About {
    About {
        description: "Removes a pending task that has no children and that nothing depends on; with `cascade`, everything below it too. Reads do not show it any more; the history keeps it.",
        result: "deleted",
        schema: object(json!({"success": {"type": "boolean", "enum": [true]}})),
        errors: &[ErrorKind::TaskNotFound, ErrorKind::NotDeletable],
        examples: vec![
            Example {
                name: "a leaf",
                description: "A task without children and dependents.",
                params: json!({"task_id": COUNT}),
                result: json!({"success": true}),
            },
            Example {
                name: "a subtree",
                description: "A group with what is in it.",
                params: json!({"task_id": GROUP, "cascade": true}),
                result: json!({"success": true}),
            },
        ],
    }
}

/// What is answered when a run has begun.
fn started() -> Value {
    let always = object(json!({
        "root_task_id": at("TaskId"),
        "status": constant("started"),
        "run_id": at("TaskId"),
    }));
    with_optional(
        always,
        json!({"task_id": at("TaskId"), "task_ids": at("TaskIds")}),
    )
}

/// `tasks.execute`.
#[must_use]
pub fn execute() -> About {
    About {
        description: "Starts a run: of `tasks`, which are created first, or of the stored task `task_id` with everything below it and all dependencies of these. The answer comes at once; `run` in `tasks.get` of the root shows the status. Every run ends.",
        result: "started",
        schema: started(),
        errors: &[
            ErrorKind::TaskNotFound,
            ErrorKind::InvalidTree,
            ErrorKind::InvalidParent,
            ErrorKind::InvalidDependency,
            ErrorKind::CircularDependency,
            ErrorKind::ExecutorNotFound,
            ErrorKind::AlreadyExecuting,
            ErrorKind::InvalidTransition,
            ErrorKind::QuotaExceeded,
        ],
        examples: vec![
            Example {
                name: "new tasks",
                description: "Two tasks, one after the other, in a group.",
                params: json!({"tasks": [
                    {"id": "all", "name": "all"},
                    {"id": "a", "name": "first", "parent_id": "all", "schemas": {"method": "echo_executor"}, "inputs": {"x": 1}},
                    {"id": "b", "name": "then", "parent_id": "all", "schemas": {"method": "aggregate_results_executor"}, "dependencies": [{"id": "a"}]},
                ]}),
                result: json!({
                    "root_task_id": MINTED, "status": "started", "run_id": RUN,
                    "task_ids": {"all": MINTED, "a": MINTED_TOO, "b": FETCH},
                }),
            },
            Example {
                name: "a stored task",
                description: "A group that was created before.",
                params: json!({"task_id": GROUP}),
                result: json!({
                    "root_task_id": GROUP, "task_id": GROUP, "status": "started", "run_id": RUN,
                }),
            },
        ],
    }
}

/// `tasks.cancel`.
#[must_use]
pub fn cancel() -> About {
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

/// `tasks.copy`.
#[must_use]
pub fn copy() -> About {
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

/// `tasks.retry`.
#[must_use]
pub fn retry() -> About {
    About {
        description: "Retries a failed task, with the pending tasks that depend on it and the failed groups above them.",
        result: "started",
        schema: started(),
        errors: &[
            ErrorKind::TaskNotFound,
            ErrorKind::ExecutorNotFound,
            ErrorKind::AlreadyExecuting,
            ErrorKind::InvalidTransition,
        ],
        examples: vec![Example {
            name: "a failed task",
            description: "Its attempts are counted on.",
            params: json!({"task_id": FAILING}),
            result: json!({
                "root_task_id": FAILING, "task_id": FAILING, "status": "started", "run_id": RUN,
            }),
        }],
    }
}

//! The methods that show tasks.

use super::super::schemas::{at, object, with_optional};
use super::past::lineage;
use super::{About, COUNT, Example, FETCH, GROUP, count, fetch, group};
use crate::transport::jsonrpc::ErrorKind;
use serde_json::{Value, json};
use taskledger_domain::limits::LIST_LIMIT_MAX;

/// The answer with the moment that it was asked for with.
fn as_of(mut answer: Value) -> Value {
    answer["as_of"] = json!({"position": 3, "time": "2026-01-15T10:30:00.000000Z"});
    answer
}

/// `tasks.get`.
#[must_use]
pub fn get() -> About {
    About {
        description: "Shows a task with all its members; for the root of a run, `run` shows the status of the run. With `as_of`, the answer is rebuilt from the flow's events up to then, which takes time in proportion to their number.",
        result: "task",
        schema: json!({"allOf": [at("Task"), {"type": "object", "properties": {
            "attempt_input": {"type": "object", "description": "With `include_input`: what the latest attempt worked on; absent when all of it is literal, or a result has been replaced since."},
            "lineage": lineage("With `include_input`: where values of it came from; absent when all of them are literal."),
        }}]}),
        errors: &[ErrorKind::TaskNotFound],
        examples: vec![
            Example {
                name: "a group",
                description: "A task that has not run.",
                params: json!({"task_id": GROUP}),
                result: group(),
            },
            Example {
                name: "as it was",
                description: "After the third event of the log.",
                params: json!({"task_id": FETCH, "as_of": 3}),
                result: as_of(fetch()),
            },
        ],
    }
}

/// `tasks.list`.
#[must_use]
pub fn list() -> About {
    let page = object(json!({
        "tasks": {"type": "array", "maxItems": LIST_LIMIT_MAX, "items": at("Task")},
        "total": {"type": "integer", "minimum": 0, "description": "Tasks in the list, all pages."},
        "limit": {"type": "integer", "minimum": 1, "maximum": LIST_LIMIT_MAX},
        "offset": {"type": "integer", "minimum": 0},
    }));
    let more = json!({
        "next_cursor": {"type": "string", "minLength": 1, "description": "For the next page, when there is one."},
    });
    About {
        description: "Lists tasks by filters, a page at a time, newest first unless asked otherwise. Pages follow by `offset`, or by `cursor`, which stays fast at any depth.",
        result: "page",
        schema: with_optional(page, more),
        errors: &[],
        examples: vec![
            Example {
                name: "pending roots of a user",
                description: "The first ten.",
                params: json!({"limit": 10, "offset": 0, "status": "pending", "user_id": "user-123", "root_only": true}),
                result: json!({"tasks": [group()], "total": 1, "limit": 10, "offset": 0}),
            },
            Example {
                name: "children by priority, oldest first",
                description: "Filters are all to be met.",
                params: json!({"parent_id": GROUP, "priority": 2, "order": "asc", "created_after": "2026-01-01T00:00:00Z"}),
                result: json!({"tasks": [fetch(), count()], "total": 2, "limit": 100, "offset": 0}),
            },
            Example {
                name: "by labels",
                description: "A key with null matches any value; no task has these labels.",
                params: json!({"labels": {"team": "data", "stage": null}}),
                result: json!({"tasks": [], "total": 0, "limit": 100, "offset": 0}),
            },
        ],
    }
}

/// `tasks.tree`.
#[must_use]
pub fn tree() -> About {
    About {
        description: "Shows a task with everything below it, nested. With `as_of`, what would have been answered then.",
        result: "tree",
        schema: at("TaskTreeNode"),
        errors: &[ErrorKind::TaskNotFound],
        examples: vec![
            Example {
                name: "a group",
                description: "With its two tasks.",
                params: json!({"task_id": GROUP, "consistency": "strong"}),
                result: json!({"task": group(), "children": [
                    {"task": fetch(), "children": []},
                    {"task": count(), "children": []},
                ]}),
            },
            Example {
                name: "as it was",
                description: "After the third event of the log.",
                params: json!({"task_id": COUNT, "as_of": 3}),
                result: as_of(json!({"task": count(), "children": []})),
            },
        ],
    }
}

/// `tasks.children`.
#[must_use]
pub fn children() -> About {
    About {
        description: "Shows the tasks directly below a task, in the order of their creation.",
        result: "children",
        schema: object(json!({"children": {"type": "array", "items": at("Task")}})),
        errors: &[ErrorKind::TaskNotFound],
        examples: vec![Example {
            name: "of a group",
            description: "Not those below them.",
            params: json!({"parent_id": GROUP}),
            result: json!({"children": [fetch(), count()]}),
        }],
    }
}

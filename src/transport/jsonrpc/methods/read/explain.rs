//! `tasks.explain`.

use super::super::calling::{boxed, called};
use crate::application::Service;
use crate::application::api::{ATTEMPTS_MAX, Request};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::params::consistency;
use crate::transport::jsonrpc::reader::{Parameters, Reader, TASK_ID};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::past::{attempt, lineage, reason};
use crate::transport::openrpc::about::{About, Example, FETCH, GROUP};
use crate::transport::openrpc::schema_parts::{at, count, object, text, with_optional};
use serde_json::json;
use taskledger_domain::{TaskId, Violation};

/// Which task to explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// A stored task, in any status.
    pub task_id: TaskId,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task_id = reader.required("task_id", TASK_ID, "The task to explain.");
        // The state itself is read, which is as strong as it gets.
        consistency(&mut reader);
        reader.finish(|| Some(Self { task_id: task_id? }))
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "tasks.explain",
        title: "Explain Task",
        summary: "Say why a task is not running, or why it ended as it did",
        tags: &["task", "read"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                called(&service, &call.context, Request::Explain(p.task_id)).await
            })
        },
    }
}

fn about() -> About {
    let explanation = object(json!({
        "task_id": at("TaskId"),
        "root_task_id": at("TaskId"),
        "name": text("The task's name."),
        "status": at("Status"),
        "summary": text("The first reason as a sentence."),
        "reasons": {"type": "array", "minItems": 1, "items": reason()},
        "attempt": count("Attempts so far."),
    }));
    let optional = json!({
        "executor": text("Absent for a group."),
        "attempts": {"type": "array", "maxItems": ATTEMPTS_MAX, "items": attempt(), "description": "The latest attempts, oldest first."},
        "more_attempts": count("Earlier ones that are not shown."),
        "skipped": {"type": "boolean", "description": "True if it is pending and its run has ended without it; else absent."},
        "input": {"type": "object", "description": "What the latest attempt worked on; absent when all of it is literal, or a result has been replaced since."},
        "lineage": lineage("Where inputs of the latest attempt came from; absent when all of them are literal."),
    });
    let message = "was never executed: no run includes it";
    About {
        description: "Says why a task is not running, or why it ended as it did: what it waits for and whether that can still come, the way to the root cause when it cannot, who holds the slots, which attempts failed how, who cancelled it, and what can be done. The weightiest reason comes first; every list is bounded and says how much it leaves out.",
        result: "explanation",
        schema: with_optional(explanation, optional),
        errors: &[ErrorKind::TaskNotFound],
        examples: vec![Example {
            name: "a task that was not executed",
            description: "Creating tasks runs nothing.",
            params: json!({"task_id": FETCH}),
            result: json!({
                "task_id": FETCH, "root_task_id": GROUP, "name": "fetch", "status": "pending",
                "executor": "echo_executor", "attempt": 0, "summary": format!("`fetch` {message}"),
                "reasons": [{
                    "code": "not_covered", "message": message, "executed": false,
                    "next_steps": [{"method": "tasks.execute", "params": {"task_id": FETCH}, "why": "run it", "when": "now"}],
                }],
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
    fn a_task_is_asked_for_and_as_all_reads_a_consistency() {
        assert!(Params::read(&map(json!({"task_id": ID}))).is_ok());
        let eventual = json!({"task_id": ID, "consistency": "eventual"});
        assert!(Params::read(&map(eventual)).is_ok());
        assert_eq!(
            faults(Params::read(&map(
                json!({"task_id": ID, "consistency": "weak"})
            ))),
            [("consistency".into(), "not a consistency".into())]
        );
        assert_eq!(
            faults(Params::read(&map(json!({"as_of": 3})))),
            [
                ("task_id".into(), "missing".into()),
                ("as_of".into(), "unknown parameter".into())
            ]
        );
    }
}

//! `workflows.progress`.

use super::answers::Answer;
use crate::application::Service;
use crate::application::api::Request;
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::methods::{boxed, called};
use crate::transport::jsonrpc::reader::{Parameters, Reader, TASK_ID};
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::openrpc::about::workflows::described;
use crate::transport::openrpc::about::{About, GROUP};
use crate::transport::openrpc::schema_parts::{
    at, count, merged, names, object, text, time, with_optional,
};
use serde_json::json;
use taskledger_domain::{TaskId, Violation};

/// Names a run by a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The run as a task, or any other task.
    pub root_task_id: TaskId,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let about = "The run: `root_task_id` of the answer that created it. Any other task will do: all below it is counted.";
        let root_task_id = reader.required("root_task_id", TASK_ID, about);
        reader.finish(|| {
            Some(Self {
                root_task_id: root_task_id?,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "workflows.progress",
        title: "Workflow Progress",
        summary: "Show the progress of a run",
        tags: &["workflow"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    called(service, &call.context, Request::Overview(p.root_task_id)).await
}

fn about() -> About {
    let counts = object(json!({
        "total": count("All of them."),
        "pending": count("Not started."),
        "ready": count("Of these: only a worker or a slot is missing."),
        "in_progress": count("Begun."),
        "suspended": count("Of these: they wait for a person."),
        "completed": count("Done."),
        "failed": count("Failed."),
        "cancelled": count("Cancelled."),
    }));
    let named = || {
        json!({
            "phase_name": {"type": ["string", "null"], "description": "Name of the task; null when more than 1000 names would have to be looked up."},
            "task_id": at("TaskId"),
        })
    };
    let suspended = object(merged(
        named(),
        json!({
            "suspension_id": {"type": "string", "format": "uuid", "description": "What `tasks.respond` names."},
            "suspended_since": time("When the question was asked."),
            "expires_at": {"type": ["string", "null"], "format": "date-time", "description": "When the wait ends; null for never."},
        }),
    ));
    let lacking = object(merged(
        named(),
        json!({
            "error": {"type": "string", "const": "UnresolvableInputError"},
            "unresolvable_refs": names("References without a value, with names of phases."),
            "message": text("The same, for people."),
        }),
    ));
    let workflow = object(json!({
        "name": text("Its name."),
        "version": text("Its version, as the document says it."),
        "hash": text("SHA-256 of the document as JSON with sorted keys."),
        "saved_version": {"type": ["integer", "null"], "minimum": 1, "description": "The number of the version that was run; null for a document that is not kept."},
    }));
    let of_document = json!({
        "skipped": count("Once the latest run has ended: tasks that it has left pending, groups left out."),
        "workflow": merged(workflow, json!({"description": "The document, if the task is a run of one."})),
        "skipped_phases": names("Phases of it that were left out; at most 100."),
        "more_skipped": count("Those left out of the list."),
    });
    described(
        "Says how far everything below a task has come: counts by status, phases that wait for a person, and phases whose turn it is but whose inputs no result has values for.",
        (
            "progress",
            with_optional(
                object(json!({
                    "root_task_id": at("TaskId"),
                    "status": at("Status"),
                    "progress": {"type": "number", "minimum": 0, "maximum": 1, "description": "How far it is."},
                    "counts": counts,
                    "suspended_phases": {"type": "array", "items": suspended, "description": "At most 100."},
                    "more_suspended": count("Those left out."),
                    "unresolvable_phases": {"type": "array", "items": lacking, "description": "At most 100."},
                    "more_unresolvable": count("Those left out."),
                })),
                of_document,
            ),
        ),
        &[ErrorKind::TaskNotFound],
        (
            "a run that has not started",
            json!({"root_task_id": GROUP}),
            json!({
                "root_task_id": GROUP, "status": "pending", "progress": 0.0,
                "counts": {
                    "total": 2, "pending": 2, "ready": 0, "in_progress": 0, "suspended": 0,
                    "completed": 0, "failed": 0, "cancelled": 0,
                },
                "suspended_phases": [], "more_suspended": 0,
                "unresolvable_phases": [], "more_unresolvable": 0,
            }),
        ),
    )
}

//! `workflows.create`.

use super::answers::{Answer, fit};
use super::kinds::{document, labels, strict, trigger, user_id};
use crate::application::Service;
use crate::application::api::workflows::CreateWorkflow;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{BOOLEAN, Parameters, Reader};
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::jsonrpc::{ErrorKind, replies};
use crate::transport::openrpc::about::workflows::{DOCUMENT, faults};
use crate::transport::openrpc::about::{About, Example, MINTED, MINTED_TOO, RUN};
use crate::transport::openrpc::schema_parts::{at, names, object, warning, with_optional};
use serde_json::json;
use taskledger_domain::Violation;

/// What to create.
#[derive(Debug, Clone, PartialEq)]
pub struct Params(pub CreateWorkflow);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let document = document(&mut reader);
        let strict = strict(&mut reader);
        let trigger = trigger(&mut reader);
        let user_id = user_id(&mut reader);
        let execute = reader.with_default(
            "execute",
            BOOLEAN,
            false,
            "Whether the run starts at once; otherwise start it with `tasks.execute` and `root_task_id`.",
        );
        let labels = labels(&mut reader);
        reader.finish(|| {
            Some(Self(CreateWorkflow {
                document: document?,
                strict,
                trigger,
                user_id,
                execute,
                labels,
            }))
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "workflows.create",
        title: "Create Workflow",
        summary: "Create the tasks of one run of a workflow document",
        tags: &["workflow"],
        params: Params::declared(),
        changes: Changes::Flows,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let created = service.create_workflow(&call.context, p.0).await;
    Ok(replies::workflow(&fit(service, created)?, None))
}

pub(super) fn about() -> About {
    let phase = object(json!({
        "phase_name": {"type": "string", "description": "Its name in the document."},
        "task_id": {"anyOf": [at("TaskId"), {"type": "null"}], "description": "Its task; null for a phase that is skipped."},
        "status": {"type": "string", "enum": ["pending", "in_progress", "completed", "failed", "cancelled", "skipped", "deleted"], "description": "Status of the phase; with `execute` an executor of the server may have started or ended it already. `skipped`: `skip_when` is true, and there is no task. `deleted`: the task was deleted before the call was repeated with its key."},
    }));
    let mut warnings =
        faults("What is probably a mistake, in the document, in the trigger or in the run.");
    warnings["items"] = json!({"anyOf": [warnings["items"].take(), warning()]});
    let created = object(json!({
        "root_task_id": at("TaskId"),
        "phases": {"type": "array", "items": phase, "description": "The tasks, in the order of the document."},
        "warnings": warnings,
        "not_acted_on": names("Paths of keys of the document that have no effect here."),
    }));
    let run = json!({"run_id": {"type": "string", "format": "uuid", "description": "The run, with `execute`."}});
    About {
        description: "Creates the tasks of one run of a workflow document: a group that is the run, with one task for workers for each phase, whose method is `assign`. Inputs that name `$trigger` or `$initial_state` are resolved now; a trigger that lacks a value which a phase needs is refused, and `missing_keys` of the error names it. Needs the scope of `tasks.create`, with `execute` that of `tasks.execute`.",
        result: "created",
        schema: with_optional(created, run),
        errors: &[ErrorKind::InputWiring],
        examples: vec![Example {
            name: "a run that starts at once",
            description: "Workers of `data-agent` may claim the first phase.",
            params: json!({"document": DOCUMENT, "trigger": {"quarter": "2026-Q1"}, "execute": true}),
            result: json!({
                "root_task_id": MINTED,
                "phases": [
                    {"phase_name": "fetch", "task_id": MINTED_TOO, "status": "pending"},
                    {"phase_name": "report", "task_id": MINTED_TOO, "status": "pending"},
                ],
                "warnings": [], "not_acted_on": [],
                "run_id": RUN,
            }),
        }],
    }
}

//! The methods of workflow documents: reading, keeping and running them.

mod kept;

pub use kept::{delete, diff, get, list, save, versions};

use super::super::schemas::{at, object, with_optional};
use super::{About, Example, GROUP, MINTED, MINTED_TOO, RUN};
use crate::transport::jsonrpc::ErrorKind;
use serde_json::{Value, json};

/// Two phases, of which the second takes a result of the first.
pub(super) const DOCUMENT: &str = "openintent: \"1.0\"\ninfo: {name: Quarterly report}\nworkflow:\n  fetch:\n    assign: data-agent\n    inputs: {quarter: $trigger.quarter}\n    outputs: {revenue: number}\n  report:\n    assign: reporting-agent\n    depends_on: [fetch]\n    inputs: {revenue: fetch.revenue}\n";

fn faults(description: &str) -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let place = |description: &str| json!({"type": ["integer", "null"], "minimum": 1, "description": description});
    let fault = object(json!({
        "error": {"type": "string", "enum": ["WorkflowValidationError", "InputWiringError"]},
        "path": text("Where in the document, such as `workflow.report.inputs`."),
        "line": place("The line, from 1; null for a document given as an object."),
        "column": place("The column, from 1."),
        "reason": text("What is wrong."),
        "suggestion": {"type": ["string", "null"], "description": "How to mend it, if that can be guessed."},
    }));
    let of_wiring = json!({
        "phase_name": text("The phase."),
        "invalid_refs": {"type": "array", "items": {"type": "string"}, "description": "References that are wrong, as written."},
    });
    json!({"type": "array", "items": with_optional(fault, of_wiring), "description": description})
}

fn names(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

/// `workflows.validate`.
#[must_use]
pub fn validate() -> About {
    let report = object(json!({
        "valid": {"type": "boolean", "description": "Whether there are no errors."},
        "errors": faults("Why the document cannot be used, in its order; at most 1000."),
        "warnings": faults("What is probably a mistake."),
    }));
    let workflow = object(json!({
        "name": {"type": "string"},
        "version": {"type": "string"},
        "hash": {"type": "string", "description": "SHA-256 of the document as JSON with sorted keys."},
        "phases": names("The phases, in the order of the document."),
        "not_acted_on": names("Paths of keys that have no effect here."),
    }));
    About {
        description: "Reads a workflow document of RFC-0024 and reports all faults with their positions. Stores nothing.",
        result: "report",
        schema: with_optional(report, json!({"workflow": workflow})),
        errors: &[],
        examples: vec![Example {
            name: "two phases",
            description: "The document has no faults.",
            params: json!({"document": DOCUMENT}),
            result: json!({
                "valid": true, "errors": [], "warnings": [],
                "workflow": {
                    "name": "Quarterly report", "version": "1.0.0",
                    "hash": HASH,
                    "phases": ["fetch", "report"], "not_acted_on": [],
                },
            }),
        }],
    }
}

/// `workflows.create`.
#[must_use]
pub fn create() -> About {
    let phase = object(json!({
        "phase_name": {"type": "string", "description": "Its name in the document."},
        "task_id": {"anyOf": [at("TaskId"), {"type": "null"}], "description": "Its task; null for a phase that is skipped."},
        "status": {"type": "string", "enum": ["pending", "in_progress", "completed", "failed", "cancelled", "skipped", "deleted"], "description": "Status of the phase; with `execute` an executor of the server may have started or ended it already. `skipped`: `skip_when` is true, and there is no task. `deleted`: the task was deleted before the call was repeated with its key."},
    }));
    let created = object(json!({
        "root_task_id": at("TaskId"),
        "phases": {"type": "array", "items": phase, "description": "The tasks, in the order of the document."},
        "warnings": faults("What is probably a mistake."),
        "not_acted_on": names("Paths of keys of the document that have no effect here."),
    }));
    let run = json!({"run_id": {"type": "string", "format": "uuid", "description": "The run, with `execute`."}});
    About {
        description: "Creates the tasks of one run of a workflow document: a group that is the run, with one task for workers for each phase, whose method is `assign`. Inputs that name `$trigger` or `$initial_state` are resolved now. Needs the scope of `tasks.create`, with `execute` that of `tasks.execute`.",
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

/// What [`super::set_up`] keeps [`DOCUMENT`] by.
const NAME: &str = "Quarterly report";
const HASH: &str = "3d9cbd1b8f3d4f8a4a7d7d2b5d6c6a8de8c2d0c6dbb0e3d1ad8e4a1f0c9b7e55";
const TIME: &str = "2026-01-15T10:30:00.000000Z";

/// Errors of those that name a workflow that is kept.
const ABSENT: &[ErrorKind] = &[ErrorKind::WorkflowNotFound];

pub(super) fn count(description: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": description})
}

pub(super) fn number(description: &str) -> Value {
    json!({"type": "integer", "minimum": 1, "description": description})
}

pub(super) fn time(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

pub(super) fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

pub(super) fn merged(mut one: Value, other: Value) -> Value {
    if let (Some(members), Value::Object(more)) = (one.as_object_mut(), other) {
        members.extend(more);
    }
    one
}

/// What is said of a method with one example.
fn about(
    description: &'static str,
    result: (&'static str, Value),
    errors: &'static [ErrorKind],
    example: (&'static str, Value, Value),
) -> About {
    About::with_example(result, description, errors, example)
}

/// `workflows.dry_run`.
#[must_use]
pub fn dry_run() -> About {
    let step = with_optional(
        object(json!({
            "phase": text("Name of the phase."),
            "step": {"type": "string", "enum": ["claim", "complete", "reject", "fail"]},
        })),
        json!({
            "input": {"type": "object", "description": "What the worker gets."},
            "output": {"type": "object", "description": "What it gives."},
            "error": {"description": "Why it is refused, or fails."},
        }),
    );
    let phase = with_optional(
        object(json!({
            "phase": text("Name of the phase."),
            "status": {"type": "string", "enum": ["pending", "in_progress", "completed", "failed", "skipped"]},
        })),
        json!({"reason": text("What it waits for.")}),
    );
    about(
        "Simulates a run of a workflow document with given outputs, by the rules of tasks: in each step the first ready phase is claimed and completed with its output. Stores nothing.",
        (
            "played",
            object(json!({
                "steps": {"type": "array", "items": step, "description": "What happened, in order."},
                "phases": {"type": "array", "items": phase, "description": "How each phase ended, in the order of the document."},
            })),
        ),
        &[ErrorKind::InputWiring],
        (
            "one phase of two",
            json!({"document": DOCUMENT, "trigger": {"quarter": "2026-Q1"}, "outputs": {"fetch": {"revenue": 7}}}),
            json!({
                "steps": [
                    {"phase": "fetch", "step": "claim", "input": {"quarter": "2026-Q1"}},
                    {"phase": "fetch", "step": "complete", "output": {"revenue": 7}},
                    {"phase": "report", "step": "claim", "input": {"revenue": 7}},
                ],
                "phases": [
                    {"phase": "fetch", "status": "completed"},
                    {"phase": "report", "status": "in_progress", "reason": "no further output is given"},
                ],
            }),
        ),
    )
}

/// `workflows.run`.
#[must_use]
pub fn run() -> About {
    let mut about = create();
    about.description = "Creates the tasks of one run of a saved workflow document, and starts it, as `workflows.create` does with a document. A call that is repeated under its idempotency key gets the first answer, for the version that the first call ran.";
    about.errors = ABSENT;
    about.schema = with_optional(
        about.schema,
        json!({"version": number("The version that was run.")}),
    );
    for example in &mut about.examples {
        example.description = "The newest version.";
        example.params = json!({"name": NAME, "trigger": {"quarter": "2026-Q1"}});
        example.result["version"] = json!(1);
    }
    about
}

/// `workflows.schemas`.
#[must_use]
pub fn schemas() -> About {
    let schema = |description: &str| json!({"type": "object", "description": description});
    let phase = object(json!({
        "phase_name": text("Its name in the document."),
        "input_schema": schema("What a worker gets: exactly the declared keys. Inputs without a type have that of the output that they name."),
        "output_schema": schema("What it has to give; other keys are accepted."),
    }));
    about(
        "Says what phases of a workflow document take and give, as JSON Schemas (draft-07), for those who write their workers. Named types are under `definitions`.",
        (
            "schemas",
            object(
                json!({"phases": {"type": "array", "items": phase, "description": "In the order of the document; at most 8 MiB of schemas."}}),
            ),
        ),
        &[ErrorKind::WorkflowNotFound, ErrorKind::InputWiring],
        (
            "one phase",
            json!({"document": DOCUMENT, "phase": "fetch"}),
            json!({"phases": [{
                "phase_name": "fetch",
                "input_schema": {"type": "object", "properties": {"quarter": {}}, "required": ["quarter"], "additionalProperties": false},
                "output_schema": {"type": "object", "properties": {"revenue": {"type": "number"}}, "required": ["revenue"]},
            }]}),
        ),
    )
}

/// `workflows.progress`.
#[must_use]
pub fn progress() -> About {
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
    about(
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

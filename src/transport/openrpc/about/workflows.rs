//! The methods that read workflow documents.

use super::super::schemas::{at, object, with_optional};
use super::{About, Example, MINTED, MINTED_TOO, RUN};
use crate::transport::jsonrpc::ErrorKind;
use serde_json::{Value, json};

/// Two phases, of which the second takes a result of the first.
const DOCUMENT: &str = "openintent: \"1.0\"\ninfo: {name: Quarterly report}\nworkflow:\n  fetch:\n    assign: data-agent\n    inputs: {quarter: $trigger.quarter}\n    outputs: {revenue: number}\n  report:\n    assign: reporting-agent\n    depends_on: [fetch]\n    inputs: {revenue: fetch.revenue}\n";

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
        description: "Reads a workflow document of RFC-0024 and says everything that is wrong with it, each fault with its place. Stores nothing.",
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
                    "hash": "HASH",
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
        "task_id": at("TaskId"),
        "status": {"type": "string", "const": "pending", "description": "How it was created."},
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
            name: "a run that begins at once",
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

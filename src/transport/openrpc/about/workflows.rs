//! The methods of workflow documents: reading, keeping and running them.

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
        "status": {"type": "string", "enum": ["pending", "skipped"], "description": "`skipped`: `skip_when` holds, and there is no task."},
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

/// What [`super::set_up`] keeps [`DOCUMENT`] by.
const NAME: &str = "Quarterly report";
const HASH: &str = "3d9cbd1b8f3d4f8a4a7d7d2b5d6c6a8de8c2d0c6dbb0e3d1ad8e4a1f0c9b7e55";
const TIME: &str = "2026-01-15T10:30:00.000000Z";

/// Errors of those that name a workflow that is kept.
const ABSENT: &[ErrorKind] = &[ErrorKind::WorkflowNotFound];

fn count(description: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": description})
}

fn number(description: &str) -> Value {
    json!({"type": "integer", "minimum": 1, "description": description})
}

fn time(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// A saved version, and what more of it is told.
fn version(more: Value) -> Value {
    let mut members = json!({
        "name": text("`info.name` of the document."),
        "version": number("Counts what happened to the name, from 1; deletions count."),
        "info_version": text("`info.version` of the document."),
        "hash": text("SHA-256 of the document as JSON with sorted keys."),
        "bytes": count("Bytes of its text."),
        "saved_at": time("When it was saved."),
        "saved_by": text("The principal."),
    });
    if let (Some(members), Value::Object(more)) = (members.as_object_mut(), more) {
        members.extend(more);
    }
    object(members)
}

fn shown_version() -> Value {
    json!({
        "name": NAME, "version": 1, "info_version": "1.0.0", "hash": HASH, "bytes": DOCUMENT.len(),
        "saved_at": TIME, "saved_by": "anonymous",
    })
}

/// Members that tell a difference.
fn differences() -> Value {
    let change = object(json!({
        "path": text("Where in the document."),
        "change": {"type": "string", "enum": ["added", "removed", "changed"]},
        "before": {"type": ["string", "null"], "description": "What was there, shortened; null for nothing."},
        "after": {"type": ["string", "null"], "description": "What is there, shortened; null for nothing."},
        "breaking": {"type": "boolean", "description": "Whether callers, workers or readers of results may break."},
        "reason": {"type": ["string", "null"], "description": "Whom it breaks and how."},
    }));
    json!({
        "changes": {"type": "array", "items": change, "description": "Those that break somebody first; at most 1000."},
        "count": count("How many there are in all."),
        "breaking": count("How many of them break somebody."),
    })
}

/// The same members, each null where nothing was compared.
fn or_null(members: Value) -> Value {
    let members = members.as_object().into_iter().flatten();
    let nullable = members.map(|(name, schema)| {
        let schema = json!({"anyOf": [schema, {"type": "null"}], "description": "Null when there is no version before to compare with."});
        (name.clone(), schema)
    });
    Value::Object(nullable.collect())
}

fn merged(mut one: Value, other: Value) -> Value {
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
        "Plays a run of a workflow document with outputs that were made up, by the rules of tasks: in each turn the first phase that is ready is claimed and gives its outputs. Stores nothing.",
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

/// `workflows.save`.
#[must_use]
pub fn save() -> About {
    let more = merged(
        json!({
            "created": {"type": "boolean", "description": "Whether it is a new version; a document that is equal to the newest is kept already."},
            "warnings": faults("What is probably a mistake."),
            "not_acted_on": names("Paths of keys that have no effect here."),
        }),
        or_null(differences()),
    );
    let shown = json!({
        "created": false, "changes": null, "count": null, "breaking": null,
        "warnings": [], "not_acted_on": [],
    });
    about(
        "Keeps a workflow document as the newest version of its name, and says what is different from the version before, if there is one. At most 1,000 names, 10,000 versions of a name and 64 MiB for each owner.",
        ("saved", version(more)),
        &[ErrorKind::InputWiring, ErrorKind::WorkflowChanged],
        (
            "the same again",
            json!({"document": DOCUMENT}),
            merged(shown_version(), shown),
        ),
    )
}

/// `workflows.get`.
#[must_use]
pub fn get() -> About {
    let document =
        json!({"document": {"type": ["string", "object"], "description": "As it was given."}});
    about(
        "Reads a version of a workflow document that is kept.",
        ("workflow", version(document)),
        ABSENT,
        (
            "the newest",
            json!({"name": NAME}),
            merged(shown_version(), json!({"document": DOCUMENT})),
        ),
    )
}

/// `workflows.list`.
#[must_use]
pub fn list() -> About {
    about(
        "Lists the newest versions of the workflow documents of one user, by name.",
        (
            "workflows",
            object(json!({
                "workflows": {"type": "array", "items": version(json!({}))},
                "next_after": {"type": ["string", "null"], "description": "`after` of the next page; null on the last."},
            })),
        ),
        &[],
        (
            "all",
            json!({}),
            json!({"workflows": [shown_version()], "next_after": null}),
        ),
    )
}

/// `workflows.versions`.
#[must_use]
pub fn versions() -> About {
    let event = with_optional(
        object(json!({
            "version": number("Its number."),
            "event": {"type": "string", "enum": ["saved", "deleted"]},
            "at": time("When."),
            "by": text("The principal."),
            "kept": {"type": "boolean", "description": "Whether the document is still there."},
        })),
        json!({
            "info_version": text("`info.version` of the document."),
            "hash": text("SHA-256 of the document as JSON with sorted keys."),
            "bytes": count("Bytes of its text."),
        }),
    );
    about(
        "Lists what happened to a workflow document, newest first. Deletions stay listed, without the documents that they removed.",
        (
            "versions",
            object(json!({
                "versions": {"type": "array", "items": event},
                "next_before": {"type": ["integer", "null"], "description": "`before` of the next page; null on the last."},
            })),
        ),
        &[],
        (
            "of one workflow",
            json!({"name": NAME}),
            json!({
                "versions": [{
                    "version": 1, "event": "saved", "at": TIME, "by": "anonymous", "kept": true,
                    "info_version": "1.0.0", "hash": HASH, "bytes": DOCUMENT.len(),
                }],
                "next_before": null,
            }),
        ),
    )
}

/// `workflows.diff`.
#[must_use]
pub fn diff() -> About {
    let compared = merged(
        json!({
            "from": number("The version before."),
            "to": {"type": ["integer", "null"], "description": "The version after; null for a document of the call."},
        }),
        differences(),
    );
    about(
        "Says what is different between two versions of a workflow document, or between a version and a document that is not kept, and what of it breaks callers, workers or readers of results.",
        ("difference", object(compared)),
        &[ErrorKind::WorkflowNotFound, ErrorKind::InputWiring],
        (
            "a document that is not kept",
            json!({"name": NAME, "document": DOCUMENT}),
            json!({"from": 1, "to": null, "changes": [], "count": 0, "breaking": 0}),
        ),
    )
}

/// `workflows.delete`.
#[must_use]
pub fn delete() -> About {
    about(
        "Deletes all versions of a workflow document. Runs go on: their tasks hold all that they need. What happened to the name stays listed.",
        (
            "deleted",
            object(json!({
                "deleted": {"type": "boolean", "description": "Whether there were any."},
            })),
        ),
        &[ErrorKind::WorkflowChanged],
        ("one", json!({"name": "Draft"}), json!({"deleted": false})),
    )
}

/// `workflows.run`.
#[must_use]
pub fn run() -> About {
    let mut about = create();
    about.description = "Creates the tasks of one run of a workflow document that is kept, and begins it, as `workflows.create` does with a document. Repeated under an idempotency key it runs the version that the first call ran, and gets its answer.";
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

/// `workflows.progress`.
#[must_use]
pub fn progress() -> About {
    let counts = object(json!({
        "total": count("All of them."),
        "pending": count("Not begun."),
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
            "expires_at": {"type": ["string", "null"], "format": "date-time", "description": "When nobody is waited for any more; null for never."},
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
            "a run that has not begun",
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

//! Schemas and examples of the methods for workers.

use super::super::schemas::{at, object, with_optional};
use super::past::lineage;
use super::{About, Example};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::openrpc::schema_parts::{count, time, time_or_null};
use serde_json::{Value, json};

/// The method of the examples, which workers carry out.
pub(super) const METHOD: &str = "print_pdf";
/// A task of that method.
pub(super) const PRINTED: &str = "440e8400-e29b-41d4-a716-446655440000";
/// A task that workers carry out, and one beside it that has ended.
const BOUND: &str = "450e8400-e29b-41d4-a716-446655440000";
const COVER: &str = "450e8400-e29b-41d4-a716-446655440001";
/// What a lease looks like. Every claim has another one.
pub(super) const LEASE: &str = "aa0e8400-e29b-41d4-a716-446655440000";
const WORKER: &str = "printer-1";
const RUN: &str = super::RUN;
const BEGUN: &str = "2026-01-15T10:30:01.000000Z";
const EXPIRES: &str = "2026-01-15T10:31:01.000000Z";

/// The calls after which the examples here can be sent.
pub(super) fn set_up() -> [Value; 3] {
    [
        json!({"method": "workers.declare", "params": {
            "method": METHOD, "description": "Prints a page.", "defaults": {"timeout_seconds": 600}, "limit": 10,
        }}),
        json!({"method": "tasks.execute", "params": {
            "tasks": [{
                "id": PRINTED, "name": "print", "schemas": {"type": "remote", "method": METHOD}, "inputs": {"page": 1},
            }],
        }}),
        json!({"method": "tasks.execute", "params": {
            "tasks": [
                {"id": "book", "name": "book"},
                {"id": COVER, "name": "cover", "parent_id": "book", "schemas": {"method": "echo_executor"},
                 "inputs": {"pages": 2}},
                {"id": BOUND, "name": "bind", "parent_id": "book", "dependencies": [{"id": COVER}],
                 "schemas": {"type": "remote", "method": "bind_book"}},
            ],
        }}),
    ]
}

fn name(description: &str) -> Value {
    json!({"type": "string", "minLength": 1, "description": description})
}

/// The component `Claim`.
pub(in crate::transport::openrpc) fn claim_schema() -> Value {
    let context = object(json!({
        "root_task_id": at("TaskId"),
        "run_id": {"anyOf": [at("TaskId"), {"type": "null"}]},
        "user_id": {"type": ["string", "null"], "description": "To whom the flow belongs."},
        "deadline": time_or_null("When the task must have ended; deadlines of tasks above it count too."),
        "timeout_seconds": {"type": ["number", "null"], "minimum": 0, "description": "How long the attempt may take, even if its lease is renewed."},
    }));
    let optional = json!({"answers": {"type": "array", "items": {"type": "object"}, "description": "What the task has asked people in earlier attempts of the run: `suspension_id`, `question`, `value`, `resolution` (`responded` or `expired`), `responded_by`, `answered_at`."},
        "message": {"type": "object", "description": "The message that started the run, of runs that started with one (A2A): `context_id`, and if it has them `message_id`, `metadata` and `reference_task_ids`."},
        "traceparent": {"type": "string", "description": "The W3C trace context of the call that started the run."}});
    let lease = object(json!({
        "token": name("Names the lease in everything that the worker says of the task."),
        "attempt": {"type": "integer", "minimum": 1},
        "expires_at": time("The lease ends then unless it is renewed."),
        "lease_seconds": {"type": "integer", "minimum": 1, "description": "How long each renewal holds unless it says otherwise."},
    }));
    let claim = object(json!({
        "task": {"allOf": [at("Task")], "description": "As `tasks.get` shows it, without `run` and `blocked_by`."},
        "input": {"type": "object", "description": "What the attempt works on."},
        "context": with_optional(context, optional),
        "lease": lease,
    }));
    let lineage =
        lineage("Where values of the input came from; absent when all of them are literal.");
    with_optional(claim, json!({"lineage": lineage}))
}

fn one(
    name: &'static str,
    description: &'static str,
    params: Value,
    result: Value,
) -> Vec<Example> {
    vec![Example {
        name,
        description,
        params,
        result,
    }]
}

/// What a claimed task looks like.
fn claimed() -> Value {
    json!({
        "task": {
            "id": PRINTED, "parent_id": null, "user_id": null, "name": "print", "status": "in_progress",
            "priority": 2, "inputs": {"page": 1}, "schemas": {"type": "remote", "method": METHOD},
            "params": {"timeout_seconds": 600}, "result": null, "error": null, "dependencies": [],
            "progress": 0.0, "created_at": BEGUN, "started_at": BEGUN, "updated_at": BEGUN,
            "completed_at": null, "root_task_id": PRINTED, "attempt": 1,
        },
        "input": {"page": 1},
        "context": {"root_task_id": PRINTED, "run_id": RUN, "user_id": null, "deadline": null, "timeout_seconds": 600},
        "lease": {"token": LEASE, "attempt": 1, "expires_at": EXPIRES, "lease_seconds": 60},
    })
}

/// `tasks.claim`.
#[must_use]
pub fn claim() -> About {
    let claims = object(
        json!({"claims": {"type": "array", "items": at("Claim"), "description": "Empty if there was no task in time, or if the worker lost a lease while it waited: it asks again."}}),
    );
    let draining = json!({"draining": {"type": "boolean", "enum": [true], "description": "An operator drains this worker: it gets no more work, and should end what it has and then itself."}});
    About {
        description: "Gives a worker ready tasks: of some methods, by priority and then by age, or one task by its id. A call without an id claims nothing. Each claim starts an attempt, for one worker only, under a lease: the worker renews it before it ends, and ends the attempt with `tasks.complete`, `tasks.fail` or `tasks.release`. A lease that ends loses its attempt to another worker. With `wait_seconds` the call waits for work of `methods`, and is answered as soon as there is some, on any node. On a socket, `work` gives claims without asking again.",
        result: "claims",
        schema: with_optional(claims, draining),
        errors: &[
            ErrorKind::TaskNotFound,
            ErrorKind::InvalidTransition,
            ErrorKind::UnresolvableInput,
            ErrorKind::UpstreamSuspended,
        ],
        examples: vec![
            Example {
                name: "a method",
                description: "The next task of a method; the answer waits up to 20 seconds for one.",
                params: json!({"worker": WORKER, "methods": [METHOD], "wait_seconds": 20}),
                result: json!({"claims": [claimed()]}),
            },
            Example {
                name: "a task",
                description: "One task, for five minutes.",
                params: json!({"worker": WORKER, "task_id": PRINTED, "lease_seconds": 300}),
                result: json!({"claims": [claimed()]}),
            },
        ],
    }
}

/// `tasks.renew`.
#[must_use]
pub fn renew() -> About {
    let renewed = object(json!({
        "expires_at": time("The lease ends then unless it is renewed again."),
        "cancel_requested": {"type": "boolean", "description": "The attempt was cancelled or lost: the worker must stop within `params.cancel_grace_seconds`, and further calls about it have no effect."},
    }));
    let reason = json!({"reason": {"type": "string", "enum": ["cancelled", "timed_out", "deadline"], "description": "Why the worker is to stop."}});
    About {
        description: "Extends the lease of a claimed task, reports progress, and returns whether to stop. `tasks.release` ends a lease. Renewals are no history; each part of the output is, and progress at most once a second. A lease is good only together with the principal that claimed the task.",
        result: "renewed",
        schema: with_optional(renewed, reason),
        errors: &[ErrorKind::LeaseNotHeld],
        examples: [
            one(
                "half done",
                "With progress and a text for people.",
                json!({"task_id": PRINTED, "lease": LEASE, "progress": 0.5, "message": "page 1 of 2"}),
                json!({"expires_at": EXPIRES, "cancel_requested": false}),
            ),
            one(
                "a first part",
                "With what the attempt has made so far.",
                json!({"task_id": PRINTED, "lease": LEASE, "output_part": "page 1", "output_number": 1}),
                json!({"expires_at": EXPIRES, "cancel_requested": false}),
            ),
        ]
        .concat(),
    }
}

/// What a call that ends an attempt is answered.
fn ended(statuses: &[&str]) -> Value {
    object(json!({
        "task_id": at("TaskId"),
        "status": {"type": "string", "enum": statuses},
    }))
}

/// `tasks.complete`.
#[must_use]
pub fn complete() -> About {
    About {
        description: "Ends a claimed task with its result. The first outcome of an attempt counts: repeating it gets the same answer, another outcome under its lease is refused and changes nothing. On a socket a message has at most 64 KiB; send larger outputs over POST.",
        result: "completed",
        schema: ended(&["completed"]),
        errors: &[
            ErrorKind::LeaseNotHeld,
            ErrorKind::MissingOutput,
            ErrorKind::OutputTypeMismatch,
        ],
        examples: one(
            "printed",
            "The output becomes the `result` of the task.",
            json!({"task_id": PRINTED, "lease": LEASE, "output": {"pages": 1}}),
            json!({"task_id": PRINTED, "status": "completed"}),
        ),
    }
}

/// `tasks.fail`.
#[must_use]
pub fn fail() -> About {
    let next = json!({"next_attempt_at": time("Not before this time is the next attempt.")});
    About {
        description: "Ends the attempt of a claimed task with an error. Another attempt follows when the task's retries allow it, unless `retryable` is false or `rejected` is true. Repetitions are as those of `tasks.complete`.",
        result: "failed",
        schema: with_optional(ended(&["pending", "failed"]), next),
        errors: &[ErrorKind::LeaseNotHeld],
        examples: one(
            "no paper",
            "A task without retries has failed then.",
            json!({"task_id": PRINTED, "lease": LEASE, "error": "no paper"}),
            json!({"task_id": PRINTED, "status": "failed"}),
        ),
    }
}

/// `tasks.release`.
#[must_use]
pub fn release() -> About {
    About {
        description: "Gives a claimed task back, for another worker. It uses up none of the task's retries. Repetitions are as those of `tasks.complete`.",
        result: "released",
        schema: ended(&["pending"]),
        errors: &[ErrorKind::LeaseNotHeld],
        examples: one(
            "a worker that ends",
            "Another worker continues.",
            json!({"task_id": PRINTED, "lease": LEASE}),
            json!({"task_id": PRINTED, "status": "pending"}),
        ),
    }
}

/// `tasks.sibling_output`.
#[must_use]
pub fn sibling_output() -> About {
    About {
        description: "Reads the result of another task below the same parent as a task that the worker holds, by name or id. It is null until that task has completed. Results that a task is known to need belong into `schemas.wiring`, which waits for them.",
        result: "sibling",
        schema: object(json!({
            "task_id": at("TaskId"),
            "name": name("Its name."),
            "status": at("Status"),
            "output": {"type": ["object", "null"], "description": "Its `result`."},
        })),
        errors: &[ErrorKind::LeaseNotHeld],
        examples: one(
            "the task before",
            "What the cover of the book came to.",
            json!({"task_id": BOUND, "lease": LEASE, "name": "cover"}),
            json!({"task_id": COVER, "name": "cover", "status": "completed", "output": {"pages": 2}}),
        ),
    }
}

/// A method of workers.
fn method() -> Value {
    let always = object(json!({
        "method": name("What tasks say in `schemas.method`."),
        "declared": {"type": "boolean", "description": "Whether it was declared; otherwise workers only ask for it."},
        "workers": count("Workers that ask for it now."),
        "running": count("Attempts under way."),
        "waiting": count("Tasks that are ready and wait for a worker."),
        "last_asked_at": time_or_null("When a worker last asked for it, as far as the servers know."),
    }));
    with_optional(
        always,
        json!({
            "description": {"type": "string"},
            "input_schema": {"type": "object", "description": "The JSON Schema of inputs."},
            "output_schema": {"type": "object", "description": "The JSON Schema of outputs."},
            "defaults": {"type": "object", "description": "Members of `params` for new tasks that do not have them."},
            "limit": {"type": "integer", "minimum": 1, "description": "Attempts at once, over all workers and nodes."},
            "declared_by": {"type": "string", "description": "The principal."},
            "owner": {"type": "string", "description": "The user for whose tasks alone it is declared; absent for a shared one."},
            "declared_at": time("When it was last declared."),
        }),
    )
}

fn shown() -> Value {
    json!({
        "method": METHOD, "declared": true, "description": "Prints a page.",
        "defaults": {"timeout_seconds": 600}, "limit": 10, "declared_by": "anonymous",
        "declared_at": BEGUN, "workers": 0, "running": 0, "waiting": 0, "last_asked_at": null,
    })
}

/// `workers.declare`.
#[must_use]
pub fn declare() -> About {
    About {
        description: "Says that workers carry out a method, and how. Its tasks are never refused for want of an executor: they wait for a worker, as long as `params.schedule_to_start_seconds` allows. Repeating it replaces the declaration. A built-in method, or one that another principal has declared, is refused.",
        result: "method",
        schema: method(),
        errors: &[],
        examples: one(
            "a method",
            "With defaults for its tasks, and at most ten attempts at once.",
            json!({"method": METHOD, "description": "Prints a page.", "defaults": {"timeout_seconds": 600}, "limit": 10}),
            shown(),
        ),
    }
}

/// `workers.undeclare`.
#[must_use]
pub fn undeclare() -> About {
    About {
        description: "Removes the declaration of a method. Attempts in progress continue, and workers may still ask for the method. What another principal has declared needs `admin`, and `users:any` to name its `owner`.",
        result: "undeclared",
        schema: object(json!({
            "method": name("The method."),
            "removed": {"type": "boolean", "description": "Whether it was declared."},
        })),
        errors: &[],
        examples: one(
            "a method",
            "On a server as it was set up.",
            json!({"method": METHOD}),
            json!({"method": METHOD, "removed": true}),
        ),
    }
}

/// `workers.methods`.
#[must_use]
pub fn methods() -> About {
    About {
        description: "Lists the methods that workers carry out, by name: those that were declared, and those that workers ask for. Without `users:any`, `waiting` counts tasks of the caller's own flows, and `running` attempts of its own workers.",
        result: "methods",
        schema: object(json!({"methods": {"type": "array", "items": method()}})),
        errors: &[],
        examples: one(
            "all",
            "On a server as it was set up.",
            json!({}),
            json!({"methods": [shown()]}),
        ),
    }
}

/// `workers.list`.
#[must_use]
pub fn workers() -> About {
    let held = object(json!({
        "task_id": at("TaskId"),
        "attempt": {"type": "integer", "minimum": 1},
        "expires_at": time("When its lease ends unless it is renewed."),
    }));
    let worker = object(json!({
        "worker": name("What it calls itself."),
        "methods": {"type": "array", "items": {"type": "string"}, "description": "What it asks for."},
        "connection": {"type": "string", "enum": ["poll", "socket"]},
        "since": time("Since when it has asked without a long pause."),
        "last_seen_at": time("When it last asked."),
        "draining": {"type": "boolean", "description": "Whether it gets no more work."},
        "held": count("Tasks that it holds."),
        "tasks": {"type": "array", "maxItems": 100, "items": held, "description": "Some of these."},
    }));
    let node = json!({"node": {"type": "string", "description": "The server that it is connected to, if there are several."}});
    About {
        description: "Lists the workers that ask for work, with what they hold. Callers see the workers of their own principal, with `users:any` all of them.",
        result: "workers",
        schema: object(json!({"workers": {"type": "array", "items": with_optional(worker, node)}})),
        errors: &[],
        examples: one(
            "nobody",
            "On a server as it was set up.",
            json!({}),
            json!({"workers": []}),
        ),
    }
}

/// `workers.drain`.
#[must_use]
pub fn drain() -> About {
    About {
        description: "Gives a worker no more work, and says so to it with its next claim, so that it ends what it holds and then itself; with `drain: false` it gets work again. A worker of another principal needs `admin`. The drain belongs to the name: `drain: false` ends it for a worker that is not there, too.",
        result: "drained",
        schema: object(json!({
            "worker": name("The worker."),
            "draining": {"type": "boolean", "description": "Whether it gets no more work."},
            "held": count("Tasks that it still holds, under leases."),
            "present": {"type": "boolean", "description": "Whether a worker of this name is there now. Else the drain waits for one that starts under it."},
        })),
        errors: &[],
        examples: one(
            "a worker",
            "By its name.",
            json!({"worker": WORKER}),
            json!({"worker": WORKER, "draining": true, "held": 0, "present": true}),
        ),
    }
}

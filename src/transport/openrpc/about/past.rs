//! Schemas of past events and explanations: those of `tasks.history`, `events.query` and `tasks.explain`.

use super::super::schema_parts::{count, text, time};
use super::super::schemas::{at, object, with_optional};
use super::{FETCH, GROUP, MINTED};
use crate::application::api::EventType;
use serde_json::{Value, json};

pub(in crate::transport) fn created() -> Value {
    json!({
        "id": MINTED, "sequence": 2, "position": 2, "timestamp": "2026-01-15T10:30:00.000000Z",
        "type": "task_created", "task_id": FETCH, "actor": "anonymous", "correlation_id": "1",
        "data": {
            "status": {"from": null, "to": "pending"}, "name": "fetch", "parent_id": GROUP,
            "user_id": "user-123", "priority": 2, "dependencies": [],
            "inputs": {"text": "to be or not"}, "schemas": {"method": "echo_executor"}, "params": null,
        },
    })
}

pub(in crate::transport) fn entry() -> Value {
    let types: Vec<&str> = EventType::ALL.iter().map(|t| t.as_str()).collect();
    let entry = object(json!({
        "id": {"type": "string", "format": "uuid", "description": "The event's id."},
        "sequence": {"type": "integer", "minimum": 1, "description": "Its number in the flow's history, without gaps."},
        "position": {"type": "integer", "minimum": 1, "description": "Its position in the log; `as_of` accepts it."},
        "timestamp": time("When it was decided."),
        "type": {"type": "string", "enum": types, "description": "What happened."},
        "task_id": at("TaskId"),
        "actor": text("Who caused it; `engine` for what follows by itself."),
        "correlation_id": text("The request that led here."),
        "data": data(),
    }));
    let causation =
        json!({"type": "string", "format": "uuid", "description": "The event that led here."});
    with_optional(entry, json!({"causation_id": causation}))
}

/// Which members there are depends on the type.
fn data() -> Value {
    let status = json!({"anyOf": [at("Status"), {"type": "null"}]});
    let run = || json!({"type": ["string", "null"], "format": "uuid"});
    json!({
        "type": "object",
        "description": "What changed. Members depend on the type; those of a task are as the task has them.",
        "properties": {
            "status": object(json!({"from": status, "to": status})),
            "attempt": count("The attempt."),
            "run_id": run(),
            "error": text("Why it failed or was cancelled."),
            "reason": text("The kind of that: of a failure `executor`, `timeout`, `deadline`, `executor_not_found`, `interrupted`, `invalid_inputs`, `invalid_result`, `group`, `released`, `not_retryable`, `not_started`, `unanswered`, `declined`, `rejected`; of a cancellation `requested`, `deadline`; of another attempt `retry`, `rerun`, `interrupted`, `answered`."),
            "will_retry": {"type": "boolean", "description": "Whether another attempt follows by itself."},
            "next_attempt_at": time("Not before this time."),
            "start_at": time("Of what a task executes: neither it nor a task below it starts before this time."),
            "timer": {"type": "string", "enum": ["start_at", "delay_seconds"], "description": "Of `task_deferred`: which of its timers decides; absent when it has none any more."},
            "result": {"type": "object"},
            "progress": {"type": "number", "minimum": 0, "maximum": 1},
            "message": {"type": ["string", "object"], "description": "Of `task_progressed`: what its worker says; of `message_received`: the message."},
            "message_id": text("Of `message_received`: what its sender calls it."),
            "progress_data": {"type": "object", "description": "Of `task_progressed`: the same in detail."},
            "output_number": {"type": "integer", "minimum": 1, "description": "Of `task_output_appended`: number of the part among those of the attempt."},
            "output_part": {"type": ["string", "object"], "description": "Of `task_output_appended`: what the attempt has made of its output since the part before."},
            "partial_result": {"type": "object", "description": "Of failures and cancellations: what there was of a result, as its worker says."},
            "execution_metadata": {"type": "object", "description": "Of ends: how the attempt was carried out, as its worker says."},
            "worker": {"type": "string", "description": "Of `task_started`: the worker outside the server that claimed it."},
            "input": {"type": "object", "description": "Of `task_started`: what the attempt worked on; absent when all of it is literal, when a result has been replaced since, and beyond 4 MiB in a page."},
            "lineage": lineage("Of `task_started`: where inputs of the attempt came from; absent when all of them are literal."),
            "suspension_id": {"type": "string", "format": "uuid", "description": "Of questions to people: the wait."},
            "question": {"type": "object", "description": "Of `task_suspended`: what is asked."},
            "expires_at": time("Of `task_suspended`: when the wait ends."),
            "number": {"type": "integer", "minimum": 1, "description": "Of `task_reminded`: which one it is."},
            "of": count("Of `task_reminded`: how many there are."),
            "escalation": {"type": "object", "description": "Of `task_reminded`: the step of the ladder."},
            "answer": {"type": "object", "description": "Of `task_answered`: an object with `value`."},
            "responded_by": text("Of `task_answered`: the principal."),
            "on_behalf_of": text("Of `task_answered`: for whom, as the principal says."),
            "fallback_policy": text("Of `task_suspension_expired`: what follows."),
            "contract_error": {"type": "object", "description": "Of `task_failed`: the contract that the attempt did not keep, with the members of errors -31022, -31024 and -31025; `OutputTooLargeError` has `key`, `bytes` and `limit`."},
            "phase_name": {"type": ["string", "null"], "description": "Of refused claims and results: name of the task then; null if it was not known."},
            "unresolvable_refs": {"type": "array", "items": {"type": "string"}, "description": "Of `task_claim_rejected`: references without a value, with names of tasks."},
            "incomplete_dependencies": {"type": "array", "items": {"type": "object"}, "description": "Of `task_claim_rejected`: dependencies that had not completed, with `task_id`, `phase_name` and `status`."},
            "suspended_intent_id": {"type": "string", "format": "uuid", "description": "Of `task_claim_rejected`: the task that waited for a person."},
            "expected_resume_at": {"type": ["string", "null"], "format": "date-time", "description": "Of `task_claim_rejected`: until when that task waited at the latest; null for no bound."},
            "covered_tasks": count("Tasks that a run covers."),
            "state": {"type": "string", "enum": ["completed", "failed", "cancelled"]},
            "rejected": {"type": "boolean", "enum": [true], "description": "Of `run_ended`: it failed only because workers or agents rejected tasks."},
            "counts": at("StatusCounts"),
            "dependencies": {"type": "array", "items": at("Dependency")},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Of `task_labels_changed`: all labels from then on; of `task_created`: absent when there are none."},
        },
    })
}

/// Where inputs of an attempt came from.
pub(in crate::transport) fn lineage(description: &str) -> Value {
    let origin = object(json!({
        "input": text("Position of the value in the inputs, as a JSON pointer."),
        "reference": text("What `wiring` or the template says."),
        "task_id": at("TaskId"),
        "attempt": {"type": "integer", "minimum": 1, "description": "The attempt whose result has it."},
        "event_id": {"type": "string", "format": "uuid", "description": "The event with that result."},
        "sequence": {"type": "integer", "minimum": 1, "description": "Its number in the history of the flow."},
    }));
    json!({"type": "array", "items": origin, "description": description})
}

/// The codes of reasons.
const CODES: [&str; 17] = [
    "not_covered",
    "blocked",
    "waits_for_dependencies",
    "waits_for_retry",
    "waits_for_time",
    "waits_for_executor",
    "waits_for_slot",
    "waits_for_worker",
    "suspended",
    "lacks_inputs",
    "waits_for_descendants",
    "running",
    "completed",
    "failed",
    "cancelled",
    "deadline",
    "draining",
];

/// What became of the retries of a task that has failed.
const RETRIES: [&str; 4] = [
    "not_applicable",
    "not_asked_for",
    "exhausted",
    "not_possible",
];

/// Why no attempt follows although retries are left.
const NO_ATTEMPT: [&str; 5] = [
    "not_retryable",
    "rejected",
    "max_elapsed",
    "deadline",
    "kind",
];

pub(in crate::transport) fn reason() -> Value {
    let step = object(json!({
        "method": text("A method of this server."),
        "params": {"type": "object", "description": "Parameters of the call."},
        "why": text("What it is good for."),
        "when": {"type": "string", "enum": ["now", "after_run", "after_mending"], "description": "Whether the server accepts it now, only after the active run has ended, or only when the fault named in `why` is mended. Those of now come first."},
    }));
    let task = json!({"type": "object", "properties": {
        "id": at("TaskId"), "name": text("Its name."), "status": at("Status"),
        "required": {"type": "boolean", "description": "Whether it must complete."},
        "can_satisfy": {"type": "boolean", "description": "Whether it still can, without anybody's help."},
        "skipped": {"type": "boolean", "description": "True if it is pending and its run has ended without it; else absent."},
        "error": {"type": ["string", "null"], "description": "Why it ended."},
    }});
    let tasks =
        |description: &str| json!({"type": "array", "items": task, "description": description});
    let reason = object(json!({
        "code": {"type": "string", "enum": CODES, "description": "For programs; there may be more one day."},
        "message": text("For people; a sentence that continues after the task's name."),
    }));
    let details = json!({
        "chain": tasks("`blocked`: from the dependency to the root cause."),
        "root_cause": task,
        "dependencies": tasks("`waits_for_dependencies`: those that are not satisfied."),
        "open": tasks("`waits_for_descendants`: running ones first; groups only when no task is open."),
        "harmed_by": tasks("`failed`, of a group: the root causes, tasks below it that failed or were cancelled."),
        "not_done": tasks("`failed`, of a group: what is pending below it."),
        "retries": {"type": "string", "enum": RETRIES, "description": "`failed`: what became of its retries."},
        "no_attempt_because": {"type": "string", "enum": NO_ATTEMPT, "description": "`failed` with retries left: why no attempt follows."},
        "max_elapsed_seconds": {"type": "number", "description": "`failed`, when `no_attempt_because` is `max_elapsed`: how long after the first attempt the last one may start."},
        "holders": {"type": "array", "items": {"type": "object"}, "description": "`waits_for_slot`: attempts that have one."},
        "limit": count("`waits_for_slot`: attempts that may run at once."),
        "running": count("`waits_for_slot` and `waits_for_worker`: attempts that do; absent for callers who see only their own flows, unless there are as many as there may be."),
        "ahead_in_flow": count("`waits_for_slot` and `waits_for_worker`: tasks of its flow that start before it."),
        "flows_ahead": count("`waits_for_slot`: other flows that start something before it, as far as they were counted."),
        "more_flows_ahead": {"type": "boolean", "description": "`waits_for_slot`: there are more of them than were counted."},
        "others_ahead": {"type": "string", "enum": ["few", "many"], "description": "`waits_for_slot` and `waits_for_worker`: for callers who see only their own flows: whether few (at most ten) or many flows or tasks of other users come first. It replaces `flows_ahead` and `tasks_ahead`, which are present if there are none."},
        "fair_share": {"type": "boolean", "description": "`waits_for_slot` and `waits_for_worker`: true when users share the executor, or the workers, fairly; else absent."},
        "workers": count("`waits_for_worker`: workers that ask for its method now, or are busy."),
        "drained": count("`waits_for_worker`: workers of its method that get no new work."),
        "executor": {"type": "string", "description": "`waits_for_executor` and `waits_for_worker`: its method."},
        "unknown_executor": {"type": "string", "description": "`not_covered`: a method that no executor has, of the task or of one below it, for which it cannot be executed."},
        "meant": {"type": "string", "description": "`waits_for_executor`, and `not_covered` with `unknown_executor`: the executor that was probably meant."},
        "next_steps": {"type": "array", "items": step, "description": "What can be done."},
    });
    with_optional(reason, details)
}

pub(in crate::transport) fn attempt() -> Value {
    let time_or_null = |description: &str| json!({"type": ["string", "null"], "format": "date-time", "description": description});
    let text_or_null =
        |description: &str| json!({"type": ["string", "null"], "description": description});
    object(json!({
        "attempt": {"type": "integer", "minimum": 1, "description": "From 1, over all runs."},
        "run_id": {"type": ["string", "null"], "format": "uuid", "description": "The run that began it."},
        "started_at": time_or_null("When it began."),
        "ended_at": time_or_null("When it ended; null while it runs."),
        "outcome": text_or_null("`completed`, `failed` or `cancelled`."),
        "reason": text_or_null("The kind of failure or cancellation."),
        "error": text_or_null("What it said."),
    }))
}

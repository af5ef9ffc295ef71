//! Schemas and examples of the methods for schedules.

use super::super::schemas::{object, with_optional};
use super::MINTED;
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::openrpc::about::TIME;
use crate::transport::openrpc::schema_parts::{
    count, merged, number, text, text_or_null, time, time_or_null, warnings,
};
use serde_json::{Value, json};

/// What [`super::set_up`] keeps a schedule by.
pub(in crate::transport) const NAME: &str = "nightly";
const NEXT: &str = "2026-01-16T01:00:00.000000Z";

pub(in crate::transport) const ABSENT: &[ErrorKind] = &[ErrorKind::ScheduleNotFound];

/// A schedule, and what more of it is told.
pub(in crate::transport) fn schedule(more: Value) -> Value {
    let members = json!({
        "id": {"type": "string", "format": "uuid"},
        "name": text("Its name."),
        "version": number("One more with each change."),
        "paused": {"type": "boolean", "description": "Whether its times pass without runs."},
        "note": text_or_null("Why."),
        "overlap": {"type": "string", "enum": ["skip", "queue", "allow", "cancel_previous"]},
        "catch_up_seconds": number("Within which a missed time is made up."),
        "jitter_seconds": count("By which each start is put off at most."),
        "start_at": time_or_null("No run before."),
        "end_at": time_or_null("No run after."),
        "max_runs": {"type": ["integer", "null"], "description": "Runs in all."},
        "next_at": time_or_null("Its next time; null while it is paused, and when none is left."),
        "runs_as": text("The principal in whose name it starts runs: the one that changed it last."),
        "created_at": time("When it was made."),
        "updated_at": time("When it was changed last."),
        "counters": object(json!({
            "started": count("Runs started at its times."),
            "started_by_hand": count("Runs started by `schedules.run_now`."),
            "skipped": count("Times skipped because a run was in progress."),
            "missed": count("Times that no server looked at within `catch_up_seconds`: none ran, or its clock jumped."),
            "failed": count("Runs that could not be started."),
        })),
        "last_error": text_or_null("Why a run could not be started, the last time."),
    });
    let said = json!({
        "cron": text("When, as a cron expression."),
        "rrule": text("When, as a recurrence rule."),
        "every_seconds": number("When, as a period."),
        "time_zone": text("The zone of `cron` and `rrule`."),
        "workflow": {"type": "object", "description": "The saved workflow that it starts."},
        "tasks": {"type": "array", "description": "The tasks that it starts."},
    });
    with_optional(object(merged(members, more)), said)
}

/// What became of one time.
pub(in crate::transport) fn run() -> Value {
    object(json!({
        "scheduled_at": time("Its time."),
        "by_hand": {"type": "boolean", "description": "Whether it was started by `schedules.run_now`."},
        "outcome": {"type": "string", "enum": ["waiting", "starting", "started", "skipped", "failed"]},
        "status": text_or_null("Status of the run: `submitted`, `working`, `input_required`, `auth_required`, `completed`, `failed`, `cancelled` or `rejected`; `gone` for one that was deleted or archived."),
        "decided_at": time("When it was decided."),
        "error": text_or_null("Why it was not started."),
        "root_task_id": text_or_null("The root of the tasks, if it was started."),
        "run_id": text_or_null("The run, if it was started."),
    }))
}

pub(in crate::transport) fn with_times() -> Value {
    let shown = schedule(json!({
        "next": {"type": "array", "items": {"type": "string", "format": "date-time"}, "description": "Its next times, at most 5."},
        "runs": {"type": "array", "items": run(), "description": "Results of its last times, newest first, at most 20; only in `schedules.get`."},
    }));
    with_optional(shown, warnings())
}

pub(in crate::transport) fn shown_schedule() -> Value {
    json!({
        "id": MINTED, "name": NAME, "version": 1, "paused": false, "note": null, "overlap": "skip",
        "catch_up_seconds": 60, "jitter_seconds": 0, "start_at": null, "end_at": null, "max_runs": null,
        "next_at": NEXT, "runs_as": "anonymous", "created_at": TIME, "updated_at": TIME,
        "counters": {"started": 0, "started_by_hand": 0, "skipped": 0, "missed": 0, "failed": 0},
        "last_error": null, "cron": "0 2 * * *", "time_zone": "Europe/Berlin",
        "workflow": {"name": "Quarterly report", "version": null, "inputs": {"quarter": "2026-Q1"}},
    })
}

pub(in crate::transport) fn shown_with_times() -> Value {
    let next = ["16", "17", "18", "19", "20"].map(|day| format!("2026-01-{day}T01:00:00.000000Z"));
    merged(shown_schedule(), json!({"next": next, "runs": []}))
}

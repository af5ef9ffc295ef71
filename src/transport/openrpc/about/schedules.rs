//! The methods of schedules.

use super::super::schemas::{object, with_optional};
use super::workflows::{count, merged, number, text, time};
use super::{About, MINTED, MINTED_TOO, RUN};
use crate::transport::jsonrpc::ErrorKind;
use serde_json::{Value, json};

/// What [`super::set_up`] keeps a schedule by.
pub(super) const NAME: &str = "nightly";
const TIME: &str = "2026-01-15T10:30:00.000000Z";
const NEXT: &str = "2026-01-16T01:00:00.000000Z";

const ABSENT: &[ErrorKind] = &[ErrorKind::ScheduleNotFound];

fn text_or_null(description: &str) -> Value {
    json!({"type": ["string", "null"], "description": description})
}

fn time_or_null(description: &str) -> Value {
    json!({"type": ["string", "null"], "format": "date-time", "description": description})
}

/// A schedule, and what more of it is told.
fn schedule(more: Value) -> Value {
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
            "missed": count("Times missed because no server ran."),
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
fn run() -> Value {
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

fn with_times() -> Value {
    schedule(json!({
        "next": {"type": "array", "items": {"type": "string", "format": "date-time"}, "description": "Its next times, at most 5."},
        "runs": {"type": "array", "items": run(), "description": "Results of its last times, newest first, at most 20; only in `schedules.get`."},
    }))
}

fn shown_schedule() -> Value {
    json!({
        "id": MINTED, "name": NAME, "version": 1, "paused": false, "note": null, "overlap": "skip",
        "catch_up_seconds": 60, "jitter_seconds": 0, "start_at": null, "end_at": null, "max_runs": null,
        "next_at": NEXT, "runs_as": "anonymous", "created_at": TIME, "updated_at": TIME,
        "counters": {"started": 0, "started_by_hand": 0, "skipped": 0, "missed": 0, "failed": 0},
        "last_error": null, "cron": "0 2 * * *", "time_zone": "Europe/Berlin",
        "workflow": {"name": "Quarterly report", "version": null, "inputs": {"quarter": "2026-Q1"}},
    })
}

fn shown_with_times() -> Value {
    let next = ["16", "17", "18", "19", "20"].map(|day| format!("2026-01-{day}T01:00:00.000000Z"));
    merged(shown_schedule(), json!({"next": next, "runs": []}))
}

/// `schedules.create`.
#[must_use]
pub fn create() -> About {
    let shown = json!({
        "name": "hourly", "cron": "@hourly", "time_zone": "UTC", "paused": true, "note": "until Monday",
        "next_at": null, "next": [], "tasks": [{"name": "poll", "schemas": {"method": "echo_executor"}}],
    });
    let mut shown = merged(shown_with_times(), shown);
    if let Some(members) = shown.as_object_mut() {
        members.remove("workflow");
    }
    About::with_example(
        ("schedule", with_times()),
        "Makes a schedule, which starts a saved workflow or tasks at given times, each time once, on any of several servers and after a restart too. It acts in the name of the caller. At most 1,000 schedules for each owner.",
        &[ErrorKind::ScheduleChanged, ErrorKind::WorkflowNotFound],
        (
            "each hour, paused at first",
            json!({
                "name": "hourly", "cron": "@hourly", "paused": true, "note": "until Monday",
                "tasks": [{"name": "poll", "schemas": {"method": "echo_executor"}}],
            }),
            shown,
        ),
    )
}

/// `schedules.list`.
#[must_use]
pub fn list() -> About {
    About::with_example(
        (
            "schedules",
            object(json!({
                "schedules": {"type": "array", "items": schedule(json!({}))},
                "next_after": {"type": ["string", "null"], "description": "`after` of the next page; null on the last."},
            })),
        ),
        "Lists the schedules of one user, by name.",
        &[],
        (
            "one",
            json!({"after": "monthly", "limit": 1000}),
            json!({"schedules": [shown_schedule()], "next_after": null}),
        ),
    )
}

/// `schedules.get`.
#[must_use]
pub fn get() -> About {
    About::with_example(
        ("schedule", with_times()),
        "Shows a schedule, its next times and what became of its last ones.",
        ABSENT,
        ("one", json!({"name": NAME}), shown_with_times()),
    )
}

/// `schedules.update`.
#[must_use]
pub fn update() -> About {
    About::with_example(
        ("schedule", with_times()),
        "Changes a schedule; what is not named stays. With another `cron`, `rrule`, `every_seconds`, `time_zone` or `start_at`, its times count from now on, and those that are due are missed; with anything else, a time that is due stays due. From now on it acts in the name of the caller.",
        &[
            ErrorKind::ScheduleNotFound,
            ErrorKind::ScheduleChanged,
            ErrorKind::WorkflowNotFound,
        ],
        (
            "another policy",
            json!({"name": NAME, "overlap": "queue"}),
            merged(
                shown_with_times(),
                json!({"version": 2, "overlap": "queue"}),
            ),
        ),
    )
}

/// `schedules.pause`.
#[must_use]
pub fn pause() -> About {
    About::with_example(
        ("schedule", with_times()),
        "Has the times of a schedule pass without runs, or with `paused: false` not any more. Times that pass meanwhile are not made up. A time that waited is skipped.",
        ABSENT,
        (
            "resumed",
            json!({"name": NAME, "paused": false}),
            merged(
                shown_with_times(),
                json!({"version": 3, "overlap": "queue"}),
            ),
        ),
    )
}

/// `schedules.delete`.
#[must_use]
pub fn delete() -> About {
    About::with_example(
        (
            "deleted",
            object(json!({
                "deleted": {"type": "boolean", "description": "Whether there was one."},
            })),
        ),
        "Deletes a schedule. Runs that it has started continue.",
        &[ErrorKind::ScheduleChanged],
        ("one", json!({"name": "draft"}), json!({"deleted": false})),
    )
}

/// `schedules.run_now`.
#[must_use]
pub fn run_now() -> About {
    About::with_example(
        ("run", run()),
        "Starts a run of a schedule now, whether it is paused or not. A run in progress is handled as the schedule says, or as `overlap` says. Repeated under an idempotency key it gets the answer of the first call.",
        ABSENT,
        (
            "in addition to others",
            json!({"name": NAME, "overlap": "allow"}),
            json!({
                "scheduled_at": TIME, "by_hand": true, "outcome": "started", "status": null,
                "decided_at": TIME, "error": null, "root_task_id": MINTED_TOO, "run_id": RUN,
            }),
        ),
    )
}

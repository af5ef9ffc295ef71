//! The results of `schedules.*`.

use super::super::text::raw;
use crate::application::api::schedules::{Run, RunByHand, Schedule, ShownSchedule, Timing, Work};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A schedule without what became of it.
fn schedule(it: &Schedule) -> Value {
    let definition = &it.definition;
    let mut shown = json!({
        "id": it.id,
        "name": it.name,
        "version": it.version,
        "paused": it.is_paused,
        "note": it.note,
        "overlap": definition.overlap.as_str(),
        "catch_up_seconds": definition.catch_up_seconds,
        "jitter_seconds": definition.jitter_seconds,
        "start_at": definition.start_at,
        "end_at": definition.end_at,
        "max_runs": definition.max_runs,
        "next_at": it.next_at,
        "runs_as": it.actor,
        "created_at": it.created_at,
        "updated_at": it.updated_at,
        "counters": {
            "started": it.counters.started,
            "started_by_hand": it.counters.started_by_hand,
            "skipped": it.counters.skipped,
            "missed": it.counters.missed,
            "failed": it.counters.failed,
        },
        "last_error": it.last_error,
    });
    match &definition.timing {
        Timing::Cron { cron, time_zone } => {
            shown["cron"] = json!(cron);
            shown["time_zone"] = json!(time_zone);
        }
        Timing::Rrule { rrule, time_zone } => {
            shown["rrule"] = json!(rrule);
            shown["time_zone"] = json!(time_zone);
        }
        Timing::Every { seconds } => shown["every_seconds"] = json!(seconds),
    }
    match &definition.work {
        Work::Workflow {
            name,
            version,
            inputs,
        } => shown["workflow"] = json!({"name": name, "version": version, "inputs": inputs}),
        Work::Tasks { tasks } => shown["tasks"] = tasks.clone(),
    }
    shown
}

/// One time of a schedule, or one start by hand.
fn run(it: &Run) -> Value {
    let mut shown = json!({
        "scheduled_at": it.scheduled_at,
        "by_hand": it.is_by_hand(),
        "outcome": it.state.as_str(),
        "status": it.stage,
        "decided_at": it.decided_at,
        "error": it.error,
    });
    // One that was not started has no flow.
    let started = it.run.is_some() || it.stage.is_some();
    shown["root_task_id"] = json!(Some(it.flow).filter(|_| started));
    shown["run_id"] = json!(it.run);
    shown
}

/// The answer to `schedules.create`, `get`, `update` and `pause`.
pub(in crate::transport::jsonrpc) fn schedule_shown(shown: &ShownSchedule) -> Box<RawValue> {
    let mut answer = schedule(&shown.schedule);
    answer["next"] = json!(shown.next);
    answer["runs"] = shown.runs.iter().map(run).collect();
    if !shown.warnings.is_empty() {
        answer["warnings"] = json!(shown.warnings);
    }
    raw(&answer)
}

/// The answer to `schedules.list`.
pub(in crate::transport::jsonrpc) fn schedules(found: &[Schedule], limit: u32) -> Box<RawValue> {
    let is_full = found.len() >= limit as usize;
    let last = found.last().filter(|_| is_full);
    raw(&json!({
        "schedules": found.iter().map(schedule).collect::<Vec<_>>(),
        "next_after": last.map(|last| &last.name),
    }))
}

/// The answer to `schedules.delete`.
pub(in crate::transport::jsonrpc) fn schedule_deleted(deleted: bool) -> Box<RawValue> {
    raw(&json!({"deleted": deleted}))
}

/// The answer to `schedules.run_now`.
pub(in crate::transport::jsonrpc) fn run_by_hand(done: &RunByHand) -> Box<RawValue> {
    let mut answer = run(&done.run);
    if !done.warnings.is_empty() {
        answer["warnings"] = json!(done.warnings);
    }
    raw(&answer)
}

//! The members that say what a schedule starts, which `create` and `update` share.

use super::super::super::reader::{Fault, Reader, TIMESTAMP, integer};
use super::kinds::{BoundsKind, OVERLAP, TasksKind, WorkflowKind, expression};
use crate::application::api::schedules::{
    CATCH_UP_SECONDS_DEFAULT, CATCH_UP_SECONDS_MAX, CATCH_UP_SECONDS_MIN, Definition,
    EVERY_SECONDS_MAX, JITTER_SECONDS_MAX, MAX_RUNS_MAX, ScheduleChanges, Timing, Work,
};
use std::sync::Arc;

/// The zone of those that name none.
const UTC: &str = "UTC";
/// Members of which one says when.
const WHEN: [&str; 3] = ["cron", "rrule", "every_seconds"];
/// Members of which one says what.
const WHAT: [&str; 2] = ["workflow", "tasks"];

/// Asks for what a schedule does, as far as it is said. `is_new`: whether it must be said when and what.
pub(super) fn changes(reader: &mut Reader<'_>, is_new: bool) -> ScheduleChanges {
    let cron = reader.optional(
        "cron",
        expression(),
        "When, as a cron expression: minute, hour, day of month, month, day of week; or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. One of `cron`, `rrule` and `every_seconds`.",
    );
    let rrule = reader.optional(
        "rrule",
        expression(),
        "When, as an RFC 5545 recurrence rule, such as `FREQ=WEEKLY;BYDAY=MO,TH;BYHOUR=9;BYMINUTE=0;BYSECOND=0`, optionally with a line `DTSTART` before it. Without that line, it starts at `start_at`, or when the schedule is created.",
    );
    let every = reader.optional(
        "every_seconds",
        integer(1..=EVERY_SECONDS_MAX),
        "When, as a period, counted from `start_at`, or from when the schedule is made.",
    );
    let zone = reader.optional(
        "time_zone",
        expression(),
        "The time zone of `cron` and `rrule`: a name of the IANA database; default: UTC.",
    );
    one_of(
        reader,
        &WHEN,
        is_new,
        "one of `cron`, `rrule` and `every_seconds`",
    );
    let workflow = reader.optional(
        "workflow",
        WorkflowKind,
        "What to start: a saved workflow, as `workflows.run` names it; without `version` the newest at the time. Its inputs have `schedule` and `scheduled_at` too. Either this or `tasks`.",
    );
    let tasks = reader.optional(
        "tasks",
        TasksKind,
        "What to start: tasks as `tasks.execute` takes them, without UUIDs as ids. In `inputs`, `$schedule.name`, `$schedule.id` and `$schedule.scheduled_at` are replaced. Either these or `workflow`.",
    );
    one_of(reader, &WHAT, is_new, "either `workflow` or `tasks`");
    let start_at = reader.optional("start_at", TIMESTAMP, "No run before this time.");
    let end_at = reader.optional("end_at", TIMESTAMP, "No run after this time.");
    let max_runs = reader.optional(
        "max_runs",
        integer(1..=MAX_RUNS_MAX),
        "Runs that are started in all, those by hand not counted.",
    );
    let overlap = reader.optional(
        "overlap",
        OVERLAP,
        "What to do at a time of the schedule while a run is in progress: `skip` (the default), `queue` (one start waits for its end), `allow`, `cancel_previous`.",
    );
    let catch_up_seconds = reader.optional(
        "catch_up_seconds",
        integer(CATCH_UP_SECONDS_MIN..=CATCH_UP_SECONDS_MAX),
        "A time that no server looked at when it came is made up within so many seconds (60 by default); older ones are counted as missed.",
    );
    let jitter_seconds = reader.optional(
        "jitter_seconds",
        integer(0..=JITTER_SECONDS_MAX),
        "Each start is put off by 0 to so many seconds, always the same for the same time.",
    );
    let without = match is_new {
        true => Vec::new(),
        false => reader
            .optional("without", BoundsKind, "Bounds that are taken away.")
            .unwrap_or_default(),
    };
    let has_every = every.is_some();
    let in_zone = zone.clone().unwrap_or_else(|| Arc::from(UTC));
    let time_zone = in_zone.clone();
    let timing = cron
        .map(|cron| Timing::Cron { cron, time_zone })
        .or_else(|| {
            let time_zone = in_zone;
            rrule.map(|rrule| Timing::Rrule { rrule, time_zone })
        })
        .or_else(|| every.map(|seconds| Timing::Every { seconds }));
    if let (Some(_), true) = (&zone, has_every) {
        let fault = Fault::new(
            "has no meaning for `every_seconds`",
            "`time_zone` beside `cron` or `rrule`",
        );
        let actual = reader.value("time_zone");
        reader.report("time_zone", fault, actual);
    }
    ScheduleChanges {
        time_zone: zone,
        timing,
        work: workflow.or(tasks),
        start_at,
        end_at,
        max_runs,
        without,
        overlap,
        catch_up_seconds,
        jitter_seconds,
    }
}

/// Reports members that exclude each other, or of which one must be there.
fn one_of(
    reader: &mut Reader<'_>,
    members: &[&'static str],
    is_needed: bool,
    expected: &'static str,
) {
    let given: Vec<&'static str> = members
        .iter()
        .copied()
        .filter(|name| reader.given(name))
        .collect();
    match given.as_slice() {
        [] if is_needed => {
            let actual = reader.value(members[0]);
            reader.report(members[0], Fault::new("missing", expected), actual);
        }
        [] | [_] => {}
        [first, second, ..] => {
            let fault = Fault::new(format!("given together with `{first}`"), expected);
            let actual = reader.value(second);
            reader.report(second, fault, actual);
        }
    }
}

/// A definition of which it was said when and what; `None`: it was not.
pub(super) fn definition(changes: ScheduleChanges) -> Option<Definition> {
    let work: Work = changes.work?;
    Some(Definition {
        timing: changes.timing?,
        work,
        start_at: changes.start_at,
        end_at: changes.end_at,
        max_runs: changes.max_runs,
        overlap: changes.overlap.unwrap_or_default(),
        catch_up_seconds: changes.catch_up_seconds.unwrap_or(CATCH_UP_SECONDS_DEFAULT),
        jitter_seconds: changes.jitter_seconds.unwrap_or_default(),
    })
}

//! Checks the definition of a schedule, and applies changes to it.

use crate::application::api::schedules::{
    Bound, Definition, Invalid, Schedule, ScheduleChanges, Timing, UnfitSchedule,
};
use crate::runtime::maybe_block_in_place;
use taskledger_domain::Timestamp;
use taskledger_schedules::{Calendar, jitter_ms};
use taskledger_zones::Zones;

/// Times that are counted as missed when a schedule gets other ones.
const DROPPED_MAX: u64 = 10_000;

/// What is asked for, or why it cannot be done.
pub(super) type Fit<T> = Result<T, UnfitSchedule>;

/// When the start of a time is due.
pub(super) fn due(id: uuid::Uuid, definition: &Definition, at: Timestamp) -> Timestamp {
    at.plus_ms(jitter_ms(id, at, definition.jitter_seconds * 1000))
}

/// Computes times. Those of a recurrence rule can take some milliseconds, so they do not keep a runtime thread.
pub(super) fn compute<T>(timing: &Timing, work: impl FnOnce() -> T) -> T {
    let size = match timing {
        Timing::Rrule { .. } => usize::MAX,
        Timing::Cron { .. } | Timing::Every { .. } => 0,
    };
    maybe_block_in_place(size, work)
}

/// The times of a definition without faults.
pub(super) fn checked(
    definition: &Definition,
    created_at: Timestamp,
    zones: &Zones,
) -> Result<Calendar, Invalid> {
    if let (Some(start), Some(end)) = (definition.start_at, definition.end_at)
        && end < start
    {
        return Err(Invalid {
            field: "end_at",
            reason: "before `start_at`".to_owned(),
            expected: "a time after `start_at`".to_owned(),
            actual: end.to_string(),
        });
    }
    compute(&definition.timing, || {
        definition.calendar(created_at, zones)
    })
}

/// The refusal of a schedule that would never be due.
pub(super) fn never(definition: &Definition) -> Invalid {
    let (field, actual) = match &definition.timing {
        Timing::Cron { cron, .. } => ("cron", cron.to_string()),
        Timing::Rrule { rrule, .. } => ("rrule", rrule.to_string()),
        Timing::Every { seconds } => ("every_seconds", seconds.to_string()),
    };
    Invalid {
        field,
        reason: "no time is left".to_owned(),
        expected:
            "at least one time from now on, between `start_at` and `end_at`, within `max_runs`"
                .to_owned(),
        actual,
    }
}

pub(super) fn changed(
    definition: &mut Definition,
    changes: &ScheduleChanges,
) -> Result<(), Invalid> {
    let before = match &definition.timing {
        Timing::Cron { time_zone, .. } | Timing::Rrule { time_zone, .. } => Some(time_zone.clone()),
        Timing::Every { .. } => None,
    };
    let mut zone = changes.time_zone.clone();
    if let Some(timing) = &changes.timing {
        definition.timing = timing.clone();
        if !matches!(timing, Timing::Every { .. }) {
            zone = zone.or(before);
        }
    }
    if let Some(zone) = &zone {
        match &mut definition.timing {
            Timing::Cron { time_zone, .. } | Timing::Rrule { time_zone, .. } => {
                *time_zone = zone.clone();
            }
            Timing::Every { .. } => {
                return Err(Invalid {
                    field: "time_zone",
                    reason: "has no meaning for `every_seconds`".to_owned(),
                    expected: "`time_zone` beside `cron` or `rrule`".to_owned(),
                    actual: zone.to_string(),
                });
            }
        }
    }
    if let Some(work) = &changes.work {
        definition.work = work.clone();
    }
    for bound in &changes.without {
        match bound {
            Bound::Start => definition.start_at = None,
            Bound::End => definition.end_at = None,
            Bound::Runs => definition.max_runs = None,
        }
    }
    definition.start_at = changes.start_at.or(definition.start_at);
    definition.end_at = changes.end_at.or(definition.end_at);
    definition.max_runs = changes.max_runs.or(definition.max_runs);
    definition.overlap = changes.overlap.unwrap_or(definition.overlap);
    let catch_up = changes.catch_up_seconds;
    definition.catch_up_seconds = catch_up.unwrap_or(definition.catch_up_seconds);
    let jitter = changes.jitter_seconds;
    definition.jitter_seconds = jitter.unwrap_or(definition.jitter_seconds);
    Ok(())
}

/// Whether a definition has other times than another one, apart from where they end.
pub(super) fn has_other_times(before: &Definition, after: &Definition) -> bool {
    before.timing != after.timing || before.start_at != after.start_at
}

/// How many times of a schedule are due, or overdue, and are dropped as its times change.
pub(super) fn dropped(schedule: &Schedule, now: Timestamp, zones: &Zones) -> u64 {
    let definition = &schedule.definition;
    let left = definition.max_runs.map_or(DROPPED_MAX, |max| {
        max.saturating_sub(schedule.counters.started)
    });
    if schedule.is_paused {
        return 0;
    }
    let calendar = || definition.calendar(schedule.created_at, zones);
    let Ok(calendar) = compute(&definition.timing, calendar) else {
        return 0;
    };
    let is_due = |at| due(schedule.id, definition, at) <= now;
    let max = left.min(DROPPED_MAX);
    let count = || definition.passed(&calendar, schedule.cursor, max, is_due);
    maybe_block_in_place(usize::MAX, count).0
}

//! Converts values between the wire and JSON: times, priorities, names, and the faults in them. Structs are those of
//! `crates/eventbus`.

pub(super) use taskledger_eventbus::values::{invalid, json_of, struct_of};

use crate::application::api::work::is_unseen;
use chrono::{DateTime, Utc};
use prost_types::Timestamp;
use taskledger_eventbus::Priority;
use tonic::Status;

/// A time of the wire.
///
/// # Errors
/// `INVALID_ARGUMENT` for one that no calendar has.
pub(super) fn time_of(given: Timestamp, field: &str) -> Result<DateTime<Utc>, Status> {
    let time = u32::try_from(given.nanos)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000)
        .and_then(|nanos| DateTime::from_timestamp(given.seconds, nanos));
    // As `google.protobuf.Timestamp` bounds it.
    time.filter(|time| (1..=9999).contains(&chrono::Datelike::year(time)))
        .ok_or_else(|| invalid(field, "no time from year 1 to 9999"))
}

/// A time for the wire.
pub(super) fn timestamp_of(micros: i64) -> Timestamp {
    Timestamp {
        seconds: micros.div_euclid(1_000_000),
        nanos: i32::try_from(micros.rem_euclid(1_000_000) * 1000).unwrap_or(0),
    }
}

/// The scales run opposite ways, and 0 means "not said" on the wire and "urgent" in a task.
///
/// # Errors
/// `INVALID_ARGUMENT` for a number without a name.
pub(super) fn priority_of(given: i32) -> Result<u8, Status> {
    match Priority::try_from(given) {
        Ok(Priority::Critical) => Ok(0),
        Ok(Priority::High) => Ok(1),
        Ok(Priority::Medium | Priority::Unspecified) => Ok(2),
        Ok(Priority::Low) => Ok(3),
        Err(_) => Err(invalid(
            "priority",
            format!("{given} is not a priority; expected 0 (unspecified) to 4 (critical)"),
        )),
    }
}

/// The priority of a task, for the wire.
pub(super) fn priority_for(task: taskledger_domain::task::Priority) -> Priority {
    match u8::from(task) {
        0 => Priority::Critical,
        1 => Priority::High,
        3 => Priority::Low,
        _ => Priority::Medium,
    }
}

/// A text that names somebody or something.
///
/// # Errors
/// `INVALID_ARGUMENT`: it is too long, or has control characters.
pub(super) fn name_of(text: &str, field: &str, chars_max: usize) -> Result<(), Status> {
    let chars = text.chars().count();
    if chars > chars_max {
        let reason = format!("{chars} characters; at most {chars_max} are accepted");
        return Err(invalid(field, reason));
    }
    if text.contains(is_unseen) {
        let reason = "control characters and those that are not seen or change the direction of text are not accepted";
        return Err(invalid(field, reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_run_the_other_way_and_unknown_ones_are_refused() {
        let told: Vec<_> = (0..5)
            .map(|it| priority_of(it).expect("a priority"))
            .collect();
        assert_eq!(told, [2, 3, 2, 1, 0]);
        assert!(priority_of(5).is_err() && priority_of(-1).is_err());
    }

    #[test]
    fn times_out_of_the_calendar_are_refused() {
        let at = |seconds, nanos| time_of(Timestamp { seconds, nanos }, "deadline");
        assert!(at(0, 0).is_ok() && at(-1, 999_999_999).is_ok());
        assert!(at(0, -1).is_err() && at(0, 1_000_000_000).is_err() && at(i64::MAX, 0).is_err());
        assert_eq!(
            timestamp_of(-1),
            Timestamp {
                seconds: -1,
                nanos: 999_999_000
            }
        );
    }
}

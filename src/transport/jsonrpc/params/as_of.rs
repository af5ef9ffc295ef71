//! The member `as_of`: a moment in the past.

use super::super::reader::{Fault, Kind, Reader, Refusal, TIMESTAMP, integer};
use crate::application::api::AsOf;
use serde_json::{Value, json};
use std::borrow::Cow;

/// A position of the log, or a time.
#[derive(Debug, Clone, Copy)]
struct Moment;

/// Positions are stored as signed numbers.
const POSITION_MAX: u64 = i64::MAX as u64;

impl Kind for Moment {
    type Out = AsOf;

    fn schema(&self) -> Value {
        json!({"anyOf": [integer(1..=POSITION_MAX).schema(), TIMESTAMP.schema()]})
    }

    fn parse(&self, value: &Value) -> Result<AsOf, Refusal> {
        const EXPECTED: &str = "a position (an integer of 1 or more), or a time in RFC 3339 (years 0000 to 9999), for \
            example 2026-01-31T12:00:00Z";
        let refused = |reason: Cow<'static, str>| Refusal::from(Fault::new(reason, EXPECTED));
        match value {
            Value::Number(_) => integer(1..=POSITION_MAX)
                .parse(value)
                .map(AsOf::Position)
                .map_err(|_| refused("not a position".into())),
            Value::String(_) => {
                TIMESTAMP
                    .parse(value)
                    .map(AsOf::Time)
                    .map_err(|refusal| match refusal {
                        Refusal::Here(fault) => refused(fault.reason),
                        Refusal::Inside(_) => refused("not a point in time".into()),
                    })
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                Err(refused("neither a position nor a time".into()))
            }
        }
    }
}

/// Asks for the member `as_of`.
pub(in crate::transport::jsonrpc) fn as_of(reader: &mut Reader<'_>) -> Option<AsOf> {
    reader.optional(
        "as_of",
        Moment,
        "Answer as it would have been answered then: after the event at this position of the log, \
         or after all events up to this time. Read from the log itself, so `consistency` has no \
         effect.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_domain::Timestamp;

    #[test]
    fn a_moment_is_a_position_or_a_time() {
        assert_eq!(Moment.parse(&json!(7)), Ok(AsOf::Position(7)));
        assert_eq!(Moment.parse(&json!(7.0)), Ok(AsOf::Position(7)));
        let time = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        assert_eq!(
            Moment.parse(&json!("2026-01-31T13:00:00+01:00")),
            Ok(AsOf::Time(time))
        );
    }

    #[test]
    fn anything_else_is_refused_and_told_what_would_be_taken() {
        for (value, reason) in [
            (json!(0), "not a position"),
            (json!(-1), "not a position"),
            (json!(1.5), "not a position"),
            (json!("yesterday"), "not a point in time"),
            (json!("7"), "not a point in time"),
            (json!("10000-01-01T00:00:00Z"), "year out of range"),
            (json!(true), "neither a position nor a time"),
            (json!([1]), "neither a position nor a time"),
        ] {
            let Err(Refusal::Here(fault)) = Moment.parse(&value) else {
                panic!("{value}");
            };
            assert_eq!(fault.reason, reason, "{value}");
            assert!(fault.expected.contains("RFC 3339"));
        }
    }
}

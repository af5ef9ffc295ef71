//! Free values: `google.protobuf.Struct` and `Value`, and times.

use crate::read::{Fault, Faults};
use chrono::{DateTime, Utc};
use prost_types::value::Kind;
use prost_types::{Struct, Timestamp};
use serde_json::{Map, Number, Value};
use std::fmt::Write as _;
use taskledger_protobuf_values::{LargeDoubles, WHOLE_MAX};

/// A value as JSON. Whole numbers become integers; what JSON cannot say becomes null, which
/// `unsayable` tells. Cost: O(size); as deep as the
/// message, which its decoder bounds.
#[must_use]
pub fn json_of(value: prost_types::Value) -> Value {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(it)) => Value::Bool(it),
        Some(Kind::StringValue(it)) => Value::String(it),
        Some(Kind::NumberValue(it)) => number(it),
        Some(Kind::StructValue(it)) => Value::Object(map_of(it)),
        Some(Kind::ListValue(it)) => it.values.into_iter().map(json_of).collect(),
    }
}

/// Free members as JSON.
#[must_use]
pub fn map_of(given: Struct) -> Map<String, Value> {
    let members = given.fields.into_iter();
    members
        .map(|(name, value)| (name, json_of(value)))
        .collect()
}

fn number(it: f64) -> Value {
    if it.fract() == 0.0 && it.abs() <= WHOLE_MAX {
        // Exact: it is whole and small enough.
        #[allow(clippy::cast_possible_truncation)]
        return Value::from(it as i64);
    }
    Number::from_f64(it).map_or(Value::Null, Value::Number)
}

/// Notes the numbers of free members that JSON cannot say: NaN and the infinite ones. Cost: O(size).
pub(super) fn unsayable(given: &Struct, path: &mut String, faults: &mut Faults) {
    for (name, value) in &given.fields {
        let before = path.len();
        let _ = write!(path, ".{name}");
        unsayable_of(value, path, faults);
        path.truncate(before);
    }
}

/// The same of a value.
pub(super) fn unsayable_of(given: &prost_types::Value, path: &mut String, faults: &mut Faults) {
    match &given.kind {
        Some(Kind::NumberValue(it)) if !it.is_finite() => {
            let description = format!("{it} is given, a number that JSON can say is required");
            faults.note(Fault::new(path.as_str(), description));
        }
        Some(Kind::StructValue(it)) => unsayable(it, path, faults),
        Some(Kind::ListValue(it)) => {
            for (i, value) in it.values.iter().enumerate() {
                let before = path.len();
                let _ = write!(path, "[{i}]");
                unsayable_of(value, path, faults);
                path.truncate(before);
            }
        }
        Some(
            Kind::NumberValue(_) | Kind::NullValue(_) | Kind::BoolValue(_) | Kind::StringValue(_),
        )
        | None => {}
    }
}

/// JSON as a value. Integers that a `double` cannot hold become strings, as the JSON form of `int64` does.
#[must_use]
pub fn value_of(value: Value) -> prost_types::Value {
    taskledger_protobuf_values::value_of(value, LargeDoubles::Numbers)
}

/// JSON as free members.
#[must_use]
pub fn struct_of(map: Map<String, Value>) -> Struct {
    taskledger_protobuf_values::struct_of(map, LargeDoubles::Numbers)
}

/// A time for the wire, in milliseconds as on the other bindings.
#[must_use]
pub fn timestamp_of(time: DateTime<Utc>) -> Timestamp {
    let millis = i32::try_from(time.timestamp_subsec_millis()).unwrap_or_default();
    Timestamp {
        seconds: time.timestamp(),
        // A leap second has more than 999.
        nanos: millis.min(999) * 1_000_000,
    }
}

/// A time as text, in milliseconds as on the other bindings unless it is finer; one that no calendar has, as what no
/// reader takes.
#[must_use]
pub fn time_text(time: Timestamp) -> String {
    let nanos = u32::try_from(time.nanos)
        .ok()
        .filter(|it| *it < 1_000_000_000);
    let found = nanos.and_then(|nanos| DateTime::from_timestamp(time.seconds, nanos));
    match found.filter(|it| (1..=9999).contains(&chrono::Datelike::year(it))) {
        Some(found) if found.timestamp_subsec_nanos() == 0 => {
            found.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
        }
        Some(found) => found.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true),
        None => format!("{} s, {} ns", time.seconds, time.nanos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds_and_more_only_where_they_are_finer() {
        for (nanos, fraction) in [
            (0, ".000"),
            (35_000_000, ".035"),
            (35_000_001, ".035000001"),
        ] {
            let time = Timestamp { seconds: 0, nanos };
            assert_eq!(time_text(time), format!("1970-01-01T00:00:00{fraction}Z"));
        }
    }
}

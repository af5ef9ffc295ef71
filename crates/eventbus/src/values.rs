//! Converts free values of the wire to JSON, and reports what is wrong with them.

use prost_types::Struct;
use prost_types::value::Kind;
use serde_json::{Map, Number, Value};
use taskledger_protobuf_values::{LargeDoubles, WHOLE_MAX};
use tonic::Status;

/// How deep values may lie in each other; as deep as `inputs` may.
const DEPTH_MAX: usize = 100;

/// Characters of a place within a message that a refusal tells: it travels in a header.
const PLACE_CHARS_MAX: usize = 200;

/// A refusal that names a member of the message.
pub fn invalid(field: &str, reason: impl std::fmt::Display) -> Status {
    let cut = field.char_indices().nth(PLACE_CHARS_MAX);
    Status::invalid_argument(match cut {
        None => format!("{field}: {reason}"),
        Some((end, _)) => format!("{}..: {reason}", &field[..end]),
    })
}

/// A struct as JSON. Whole numbers become integers. Cost: O(size).
///
/// # Errors
/// `INVALID_ARGUMENT` with the place of a number that JSON cannot say, or of a value that lies too deep.
pub fn json_of(given: Struct, field: &str) -> Result<Map<String, Value>, Status> {
    object(given, &mut field.to_owned(), DEPTH_MAX)
}

fn object(given: Struct, place: &mut String, depth: usize) -> Result<Map<String, Value>, Status> {
    let mut map = Map::new();
    for (key, value) in given.fields {
        let before = place.len();
        place.push('.');
        place.push_str(&key);
        map.insert(key, one(value.kind, place, depth)?);
        place.truncate(before);
    }
    Ok(map)
}

fn one(kind: Option<Kind>, place: &mut String, depth: usize) -> Result<Value, Status> {
    let Some(inner) = depth.checked_sub(1) else {
        let reason = format!("values lie deeper than {DEPTH_MAX} levels");
        return Err(invalid(place, reason));
    };
    match kind {
        None | Some(Kind::NullValue(_)) => Ok(Value::Null),
        Some(Kind::BoolValue(it)) => Ok(Value::Bool(it)),
        Some(Kind::StringValue(it)) => Ok(Value::String(it)),
        Some(Kind::NumberValue(it)) => number(it).map_err(|reason| invalid(place, reason)),
        Some(Kind::StructValue(it)) => object(it, place, inner).map(Value::Object),
        Some(Kind::ListValue(it)) => {
            let mut list = Vec::with_capacity(it.values.len());
            for (i, value) in it.values.into_iter().enumerate() {
                let before = place.len();
                place.push_str(&format!("[{i}]"));
                list.push(one(value.kind, place, inner)?);
                place.truncate(before);
            }
            Ok(Value::Array(list))
        }
    }
}

fn number(it: f64) -> Result<Value, &'static str> {
    if !it.is_finite() {
        return Err("NaN and infinite numbers are not accepted");
    }
    if it.fract() != 0.0 {
        return Ok(Number::from_f64(it).map_or(Value::Null, Value::Number));
    }
    if it.abs() > WHOLE_MAX {
        return Err("whole numbers beyond 2^53 are not kept exactly; send them as strings");
    }
    // Exact: it is whole and small enough.
    #[allow(clippy::cast_possible_truncation)]
    Ok(Value::from(it as i64))
}

/// JSON as a struct. Whole numbers that a `double` cannot hold, or that agents could not send back, become strings.
pub fn struct_of(map: Map<String, Value>) -> Struct {
    taskledger_protobuf_values::struct_of(map, LargeDoubles::Strings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost_types::ListValue;
    use serde_json::json;

    fn there_and_back(value: Value) -> Value {
        let Value::Object(map) = value else {
            panic!("an object")
        };
        Value::Object(json_of(struct_of(map), "parameters").expect("it can be said"))
    }

    #[test]
    fn json_survives_the_wire() {
        let all = json!({"a": [1, -2.5, "x", null, true], "b": {"c": {}}, "zero": 0, "whole": 9_007_199_254_740_992_u64});
        assert_eq!(there_and_back(all.clone()), all);
        let large = json!({"n": u64::MAX});
        assert_eq!(there_and_back(large), json!({"n": u64::MAX.to_string()}));
        for beyond in [9_007_199_254_740_993_i64, -9_007_199_254_740_993] {
            let told = there_and_back(json!({ "n": beyond }));
            assert_eq!(told, json!({"n": beyond.to_string()}), "not rounded");
        }
    }

    #[test]
    fn numbers_that_json_cannot_say_are_refused_with_their_place() {
        for (number, word) in [(f64::NAN, "NaN"), (f64::INFINITY, "NaN"), (1e300, "2^53")] {
            let value = |kind| prost_types::Value { kind: Some(kind) };
            let list = ListValue {
                values: vec![value(Kind::NumberValue(number))],
            };
            let given = Struct {
                fields: [("k".to_owned(), value(Kind::ListValue(list)))].into(),
            };
            let refused = json_of(given, "parameters").expect_err("no JSON");
            assert!(
                refused.message().starts_with("parameters.k[0]: "),
                "{refused}"
            );
            assert!(refused.message().contains(word), "{refused}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let mut deep = json!(1);
        for _ in 0..DEPTH_MAX {
            deep = json!([deep]);
        }
        let Value::Object(map) = json!({ "k": deep }) else {
            unreachable!("an object")
        };
        let refused = json_of(struct_of(map), "parameters").expect_err("too deep");
        assert_eq!(refused.code(), tonic::Code::InvalidArgument);
        let place = "parameters.k[0][0][0]";
        assert!(refused.message().starts_with(place), "{refused}");
        assert!(refused.message().len() < 400, "{refused}");
    }
}

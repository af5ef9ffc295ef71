//! JSON as the free values of Protocol Buffers, whose only number is a `double`: one rule for all protocols over gRPC.
//!
//! Owns: what becomes of numbers that a `double` changes. What comes in is read by each protocol, with its own errors.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct};
use serde_json::{Map, Number, Value};

/// Beyond it a `double` does not tell whole numbers apart.
pub const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
/// The same as an integer.
const INTEGER_MAX: u64 = 1 << 53;

/// What becomes of a `double` that is whole and beyond [`WHOLE_MAX`], such as 1e300. It is exact, but looks like an
/// integer that was rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LargeDoubles {
    /// It stays a number.
    Numbers,
    /// It becomes a string, for peers that send such numbers back to somebody who refuses them.
    Strings,
}

/// JSON as free members. Integers that a `double` cannot hold become strings, as the JSON form of `int64` does. Cost:
/// O(size).
#[must_use]
pub fn struct_of(map: Map<String, Value>, large: LargeDoubles) -> Struct {
    let fields = map
        .into_iter()
        .map(|(name, value)| (name, value_of(value, large)));
    Struct {
        fields: fields.collect(),
    }
}

/// The same of one value.
#[must_use]
pub fn value_of(value: Value, large: LargeDoubles) -> prost_types::Value {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(it) => Kind::BoolValue(it),
        Value::String(it) => Kind::StringValue(it),
        Value::Number(it) => match exact(&it, large) {
            Some(exact) => Kind::NumberValue(exact),
            None => Kind::StringValue(it.to_string()),
        },
        Value::Array(list) => Kind::ListValue(ListValue {
            values: list.into_iter().map(|it| value_of(it, large)).collect(),
        }),
        Value::Object(map) => Kind::StructValue(struct_of(map, large)),
    };
    prost_types::Value { kind: Some(kind) }
}

/// A number as a `double`, unless it is an integer that this would change, or one that must not look like one.
fn exact(number: &Number, large: LargeDoubles) -> Option<f64> {
    let whole = number.as_i64().map(i64::unsigned_abs).or(number.as_u64());
    // Compared before it is rounded.
    if whole.is_some_and(|it| it > INTEGER_MAX) {
        return None;
    }
    let double = number.as_f64()?;
    let is_small = double.fract() != 0.0 || double.abs() <= WHOLE_MAX;
    match large {
        LargeDoubles::Numbers => Some(double),
        LargeDoubles::Strings => is_small.then_some(double),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kind(value: Value, large: LargeDoubles) -> Kind {
        value_of(value, large).kind.expect("there is one")
    }

    #[test]
    fn integers_that_a_double_would_round_are_strings_everywhere() {
        for large in [LargeDoubles::Numbers, LargeDoubles::Strings] {
            for exact in [0_i64, -1, 1 << 53, -(1 << 53)] {
                #[allow(clippy::cast_precision_loss)] // they are exact
                let number = Kind::NumberValue(exact as f64);
                assert_eq!(kind(json!(exact), large), number);
            }
            for beyond in [(1_i64 << 53) + 1, -(1 << 53) - 1, i64::MAX, i64::MIN] {
                assert_eq!(
                    kind(json!(beyond), large),
                    Kind::StringValue(beyond.to_string())
                );
            }
            let most = Kind::StringValue(u64::MAX.to_string());
            assert_eq!(kind(json!(u64::MAX), large), most);
            assert_eq!(kind(json!(-2.5), large), Kind::NumberValue(-2.5));
        }
    }

    #[test]
    fn large_doubles_are_what_the_protocol_says() {
        let number = Kind::NumberValue(1e300);
        assert_eq!(kind(json!(1e300), LargeDoubles::Numbers), number);
        let text = Kind::StringValue("1e+300".to_owned());
        assert_eq!(kind(json!(1e300), LargeDoubles::Strings), text);
    }

    #[test]
    fn members_and_lists_are_carried_in_their_places() {
        let map = json!({"a": [null, true, "x", {"b": 1}]});
        let Value::Object(map) = map else {
            panic!("an object")
        };
        let found = struct_of(map, LargeDoubles::Numbers);
        let Some(Kind::ListValue(list)) = &found.fields["a"].kind else {
            panic!("{found:?}")
        };
        let kinds: Vec<_> = list.values.iter().map(|it| it.kind.clone()).collect();
        let inner = Struct {
            fields: [(
                "b".to_owned(),
                prost_types::Value {
                    kind: Some(Kind::NumberValue(1.0)),
                },
            )]
            .into(),
        };
        assert_eq!(
            kinds,
            [
                Some(Kind::NullValue(0)),
                Some(Kind::BoolValue(true)),
                Some(Kind::StringValue("x".to_owned())),
                Some(Kind::StructValue(inner)),
            ]
        );
    }
}

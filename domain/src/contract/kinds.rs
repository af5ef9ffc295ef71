//! The kinds of JSON values, as sets: most questions about types are settled by them.

use serde_json::{Number, Value};

/// A set of kinds. Numbers without fraction are a kind of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    const FRACTION: Self = Self(8);
    pub(super) const NUMBER: Self = Self::INTEGER.or(Self::FRACTION);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const ALL: Self = Self(127);

    pub(super) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    pub(super) const fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The kind of a value.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if is_integral(number) => Self::INTEGER,
            Value::Number(_) => Self::FRACTION,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }
}

/// The JSON type of a value; `integer` for a number without fraction.
pub(super) fn name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if is_integral(number) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether a number has no fraction, in whatever form it is written: 1.0 has none.
fn is_integral(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|it| it.fract() == 0.0)
}

/// Whether two values are the same in JSON: 1 equals 1.0, but not `true`. Cost: O(the smaller one).
#[must_use]
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => equal_numbers(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let mut members = a.iter();
            a.len() == b.len() && members.all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        (
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
            _,
        ) => a == b,
    }
}

/// Exact, also where an integer has no equal among the floating-point numbers.
fn equal_numbers(a: &Number, b: &Number) -> bool {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.as_f64() == b.as_f64(),
        // `as` saturates, and no number in JSON text of this size is an integer of 128 bits.
        (Some(integer), None) => b.as_f64().is_some_and(|it| is_exactly(it, integer)),
        (None, Some(integer)) => a.as_f64().is_some_and(|it| is_exactly(it, integer)),
    }
}

fn is_exactly(float: f64, integer: i128) -> bool {
    float.fract() == 0.0 && float as i128 == integer
}

/// Steps that comparing with a value takes at most. Recurses; values are as deep as the parser lets them be.
pub(super) fn weight(value: &Value) -> u64 {
    /// Bytes of a text that are compared in one step.
    const BYTES_PER_STEP: usize = 64;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + (text.len() / BYTES_PER_STEP) as u64,
        Value::Array(items) => 1 + items.iter().map(weight).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(|it| 1 + weight(it)).sum::<u64>(),
    }
}

//! JSON objects that the rules carry but never look into.

use crate::json;
use crate::limits;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Number, Value, value::RawValue};
use std::fmt;
use std::sync::Arc;

/// Bytes of a character inside of a JSON string.
#[must_use]
pub const fn json_length(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

/// The text of one JSON object, shared. Cloning costs a reference count; writing it into an
/// answer or a row copies the text without parsing it again.
#[derive(Clone)]
pub struct Payload(Arc<RawValue>);

impl Payload {
    /// The object `{}`.
    #[must_use]
    pub fn empty() -> Self {
        Self::from_map(&Map::new())
    }

    /// The text of `map`. Cost: O(size).
    #[must_use]
    pub fn from_map(map: &Map<String, Value>) -> Self {
        let raw =
            serde_json::value::to_raw_value(map).expect("a JSON object can always be written");
        Self(Arc::from(raw))
    }

    /// The text of `map`, if tasks can hold it and still be read. Cost: O(size); what was parsed has at most 127
    /// levels.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn checked(map: &Map<String, Value>) -> Result<Self, Unfit> {
        let payload = Self::from_map(map);
        let bytes = payload.as_str().len();
        if bytes > limits::PAYLOAD_BYTES_MAX {
            return Err(Unfit::TooLarge(bytes));
        }
        if is_reserved_name_in(payload.as_str()) {
            return Err(Unfit::ReservedName);
        }
        let levels = 1 + map.values().map(depth).max().unwrap_or(0);
        if levels > limits::PAYLOAD_DEPTH_MAX {
            return Err(Unfit::TooDeep(levels));
        }
        Ok(payload)
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The object, parsed. Cost: O(size).
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        serde_json::from_str(self.0.get()).expect("a payload holds the text of a JSON object")
    }

    /// Whether both are the same JSON value: members in any order, numbers by their value, so that `1.0` is `1`.
    /// Cost: O(size).
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.as_str() == other.as_str() || same_members(&self.to_map(), &other.to_map())
    }

    /// Whether the object has a member of one of these names. Cost: O(size); nothing is kept of what is read.
    #[must_use]
    pub fn has_any(&self, names: &[&str]) -> bool {
        let mut text = serde_json::Deserializer::from_str(self.0.get());
        let found = text.deserialize_map(MemberOf(names));
        found.expect("a payload holds the text of a JSON object")
    }

    /// Reads the text of a JSON object. Cost: O(size).
    ///
    /// # Errors
    /// Text that is no JSON, JSON that is no object, or one that is nested more than 127 levels
    /// deep: no common parser would read it again.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        // The text alone would be taken at any depth, and then `to_map` could not read it.
        serde_json::from_str::<Map<String, Value>>(text)?;
        serde_json::from_str(text)
    }
}

/// Looks for members of these names.
struct MemberOf<'n>(&'n [&'n str]);

impl<'de> Visitor<'de> for MemberOf<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        let mut is_there = false;
        while let Some(found) = members.next_key_seed(NameOf(self.0))? {
            is_there |= found;
            let IgnoredAny = members.next_value()?;
        }
        Ok(is_there)
    }
}

/// Whether a name is one of these.
struct NameOf<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for NameOf<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<bool, D::Error> {
        d.deserialize_str(self)
    }
}

impl Visitor<'_> for NameOf<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(self.0.contains(&name))
    }
}

/// Whether an object in a text that `serde_json` has written has a member of the reserved name. In such a text a name
/// is not escaped, and a quote within a string is.
fn is_reserved_name_in(text: &str) -> bool {
    text.contains(concat!("\"", json::reserved_name!(), "\":"))
}

/// The text of one JSON value of any kind, shared.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// The text of `value`. Cost: O(size).
    #[must_use]
    pub fn of(value: &Value) -> Self {
        let raw = serde_json::value::to_raw_value(value).expect("JSON can always be written");
        Self(Arc::from(raw))
    }

    /// The value, parsed. Cost: O(size).
    ///
    /// # Errors
    /// It came in a message and is nested more than 127 levels deep.
    pub fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}
impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(d).map(|raw| Self(Arc::from(raw)))
    }
}

/// Why an object cannot be the `inputs`, `schemas`, `params` or `result` of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// It has so many bytes of text, more than [`limits::PAYLOAD_BYTES_MAX`].
    TooLarge(usize),
    /// It has so many JSON levels, more than [`limits::PAYLOAD_DEPTH_MAX`].
    TooDeep(usize),
    /// An object in it has a member of the name [`json::RESERVED_NAME`].
    ReservedName,
}

impl Unfit {
    /// What is wrong, as violations say it.
    #[must_use]
    pub fn reason(self) -> String {
        match self {
            Self::TooLarge(bytes) => format!("Too large: {bytes} bytes of JSON"),
            Self::TooDeep(levels) => format!("Nested too deep: {levels} levels"),
            Self::ReservedName => json::RESERVED.to_owned(),
        }
    }

    /// What would be accepted.
    #[must_use]
    pub fn expected(self) -> String {
        match self {
            Self::TooLarge(_) => format!("at most {} bytes", limits::PAYLOAD_BYTES_MAX),
            Self::TooDeep(_) => format!("at most {} levels of JSON", limits::PAYLOAD_DEPTH_MAX),
            Self::ReservedName => json::RESERVED_EXPECTED.to_owned(),
        }
    }

    /// How much there is of what there is too much of.
    #[must_use]
    pub const fn found(self) -> usize {
        match self {
            Self::TooLarge(found) | Self::TooDeep(found) => found,
            Self::ReservedName => 1,
        }
    }
}

/// JSON levels of a value; 0 for a value that holds no others.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}
impl Eq for Payload {}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(d)?;
        if raw.get().starts_with('{') {
            Ok(Self(Arc::from(raw)))
        } else {
            Err(de::Error::custom("expected a JSON object"))
        }
    }
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || same_number(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => same_members(a, b),
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

fn same_members(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    let in_b = |(name, value): (&String, &Value)| b.get(name).is_some_and(|it| same(value, it));
    a.len() == b.len() && a.iter().all(in_b)
}

/// Exactly: an integer that has no equal among the floating-point numbers is the same as none of them.
fn same_number(a: &Number, b: &Number) -> bool {
    let (integer, float) = if a.is_f64() { (b, a) } else { (a, b) };
    match (integer.as_i128(), float.as_f64()) {
        // No integer of JSON here has more than 64 bits, so the conversion is exact where it matters.
        #[expect(clippy::cast_possible_truncation, reason = "a fraction was ruled out")]
        (Some(integer), Some(float)) => float.fract() == 0.0 && float as i128 == integer,
        (_, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::Payload;

    #[test]
    fn members_are_found_by_their_names_and_not_by_text() {
        let has = |text: &str| {
            Payload::parse(text)
                .expect("an object")
                .has_any(&["wiring", "x"])
        };
        for there in [
            r#"{"wiring":{}}"#,
            r#"{"a":[{"b":1}],"x":null}"#,
            r#"{"\u0077iring":1,"a":2}"#,
        ] {
            assert!(has(there), "{there}");
        }
        for absent in [
            "{}",
            r#"{"method":"wiring"}"#,
            r#"{"outputs":{"wiring":1,"x":[]}}"#,
            r#"{"wirings":1,"\"wiring\"":1}"#,
        ] {
            assert!(!has(absent), "{absent}");
        }
    }
}

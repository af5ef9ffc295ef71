//! Reads objects from JSON by the rules of ProtoJSON: names in camelCase or as in the .proto, `null` and empty
//! texts are unset, enums by name or number, numbers also as texts (those of enums too). Members that nobody asks for
//! are ignored.
//!
//! A fault is noted with the path of its member, and reading goes on, so that a caller learns all of them at once.

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use chrono::{DateTime, Datelike, Timelike, Utc};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Faults that are listed of one request; the rest is counted.
pub const FAULTS_MAX: usize = 64;
/// Characters of a wrong value that a description shows.
const SHOWN_CHARS_MAX: usize = 64;

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASE64: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, LENIENT);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::URL_SAFE, LENIENT);

/// A fault in a member of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The path of the member, such as `message.parts[0].data`.
    pub field: String,
    /// What is wrong, and what would be accepted.
    pub description: String,
}

impl Fault {
    /// A fault of a member.
    pub fn new(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            description: description.into(),
        }
    }
}

/// The faults of a request, at most [`FAULTS_MAX`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    /// Those that are listed.
    pub listed: Vec<Fault>,
    /// How many there are besides.
    pub more: usize,
}

impl Faults {
    /// Adds one.
    pub fn note(&mut self, fault: Fault) {
        if self.listed.len() < FAULTS_MAX {
            self.listed.push(fault);
        } else {
            self.more += 1;
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self {
            listed: vec![fault],
            more: 0,
        }
    }
}

/// An object of the protocol.
pub trait Wire: Sized {
    /// Reads it. `None`: a fault was noted.
    fn read(from: &mut Object<'_>) -> Option<Self>;

    /// Writes it: unset members are left out, required ones are not.
    fn write(&self) -> Map<String, Value>;

    /// As JSON.
    fn to_json(&self) -> Value {
        Value::Object(self.write())
    }

    /// Reads it from a whole value.
    ///
    /// # Errors
    /// All faults.
    fn from_json(value: Value) -> Result<Self, Faults> {
        match value {
            Value::Object(members) => whole(members, Self::read),
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)) => Err(Fault::new("", expected("an object", &other)).into()),
        }
    }
}

/// An enum of the protocol.
pub trait Named: Copy + 'static {
    /// What it is, for descriptions.
    const WHAT: &'static str;
    /// The number and name of "not said", which a request may send for an absent member.
    const UNSPECIFIED: &'static str;
    /// All values with number and name.
    const ALL: &'static [(Self, i32, &'static str)];
}

/// Reads an object from its members.
///
/// # Errors
/// All faults.
pub fn whole<T>(
    members: Map<String, Value>,
    read: impl FnOnce(&mut Object<'_>) -> Option<T>,
) -> Result<T, Faults> {
    let mut faults = Faults::default();
    let mut object = Object {
        members,
        path: String::new(),
        faults: &mut faults,
    };
    let found = read(&mut object);
    match found {
        Some(found) if faults.is_empty() => Ok(found),
        Some(_) | None => Err(faults),
    }
}

/// An object that is being read.
pub struct Object<'f> {
    members: Map<String, Value>,
    path: String,
    faults: &'f mut Faults,
}

impl Object<'_> {
    /// Notes a fault of a member; an empty name means the object itself.
    pub fn fault(&mut self, name: &str, description: impl Into<String>) {
        let field = self.at(name);
        self.faults.note(Fault::new(field, description));
    }

    fn at(&self, name: &str) -> String {
        match (self.path.is_empty(), name.is_empty()) {
            (true, _) => name.to_owned(),
            (false, true) => self.path.clone(),
            (false, false) => format!("{}.{name}", self.path),
        }
    }

    /// A member, which is not unset.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.take_or_null(name).filter(|value| !value.is_null())
    }

    fn take_or_null(&mut self, name: &str) -> Option<Value> {
        let camel = self.members.remove(name);
        let snake = snake_of(name);
        let other = match snake == name {
            true => None,
            false => self.members.remove(&snake),
        };
        match (camel, other) {
            (Some(first), Some(second)) if !first.is_null() && !second.is_null() => {
                self.fault(name, format!("given twice, as `{name}` and as `{snake}`"));
                Some(first)
            }
            (Some(Value::Null) | None, Some(second)) => Some(second),
            (first, _) => first,
        }
    }

    /// A value that may be anything, JSON's null included.
    pub fn any(&mut self, name: &str) -> Option<Value> {
        self.take_or_null(name)
    }

    /// A text, which may be empty.
    pub fn content(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(text),
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_)) => {
                self.fault(name, expected("a string", &other));
                None
            }
        }
    }

    /// A text; an empty one is unset.
    pub fn text(&mut self, name: &str) -> Option<String> {
        self.content(name).filter(|text| !text.is_empty())
    }

    /// A text that must be there.
    pub fn required_text(&mut self, name: &str) -> Option<String> {
        let before = self.faults.listed.len() + self.faults.more;
        let found = self.text(name);
        if found.is_none() && self.faults.listed.len() + self.faults.more == before {
            self.fault(name, "missing; a string that is not empty is required");
        }
        found
    }

    /// A list of texts.
    pub fn texts(&mut self, name: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for (i, value) in self.list(name).into_iter().enumerate() {
            match value {
                Value::String(text) => texts.push(text),
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_)) => {
                    self.fault(&format!("{name}[{i}]"), expected("a string", &other))
                }
            }
        }
        texts
    }

    fn list(&mut self, name: &str) -> Vec<Value> {
        match self.take(name) {
            None => Vec::new(),
            Some(Value::Array(list)) => list,
            Some(other) => {
                self.fault(name, expected("an array", &other));
                Vec::new()
            }
        }
    }

    /// A whole number of 32 bits.
    pub fn int(&mut self, name: &str) -> Option<i32> {
        let value = self.take(name)?;
        let whole = whole_number(&value);
        if whole.is_none() {
            self.fault(name, expected("a whole number of 32 bits", &value));
        }
        whole
    }

    /// Yes or no.
    pub fn flag(&mut self, name: &str) -> Option<bool> {
        match self.take(name)? {
            Value::Bool(flag) => Some(flag),
            other @ (Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_)) => {
                self.fault(name, expected("true or false", &other));
                None
            }
        }
    }

    /// Reads a member as an RFC 3339 timestamp; anything else is recorded as a fault.
    pub fn time(&mut self, name: &str) -> Option<DateTime<Utc>> {
        let value = self.take(name)?;
        let time = value.as_str().and_then(rfc_3339);
        if time.is_none() {
            self.fault(name, expected("a time in the form of RFC 3339", &value));
        }
        time
    }

    /// Bytes in base64, of either alphabet.
    pub fn bytes(&mut self, name: &str) -> Option<Vec<u8>> {
        let text = self.content(name)?;
        let decoded = BASE64.decode(&text).or_else(|_| BASE64_URL.decode(&text));
        if decoded.is_err() {
            self.fault(name, "not base64");
        }
        decoded.ok()
    }

    /// Reads an object with free-form members.
    pub fn map(&mut self, name: &str) -> Option<Map<String, Value>> {
        match self.take(name)? {
            Value::Object(map) => Some(map),
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)) => {
                self.fault(name, expected("an object", &other));
                None
            }
        }
    }

    /// A value of an enum.
    pub fn named<E: Named>(&mut self, name: &str) -> Option<E> {
        let value = self.take(name)?;
        let found = match &value {
            Value::String(text) if text == E::UNSPECIFIED || text.is_empty() => return None,
            // Queries have no numbers but in texts.
            Value::String(_) | Value::Number(_) => match whole_number(&value) {
                Some(0) => return None,
                Some(number) => E::ALL.iter().find(|(_, known, _)| *known == number),
                None => (E::ALL.iter()).find(|(_, _, known)| value.as_str() == Some(*known)),
            },
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        if found.is_none() {
            let mut known = String::new();
            for (_, _, name) in E::ALL {
                let _ = write!(known, "{}{name}", if known.is_empty() { "" } else { ", " });
            }
            self.fault(name, expected(&format!("a {}: {known}", E::WHAT), &value));
        }
        found.map(|(found, _, _)| *found)
    }

    /// The same, which must be there.
    pub fn required_named<E: Named>(&mut self, name: &str) -> Option<E> {
        let before = self.faults.listed.len() + self.faults.more;
        let found = self.named(name);
        if found.is_none() && self.faults.listed.len() + self.faults.more == before {
            self.fault(name, format!("missing; a {} is required", E::WHAT));
        }
        found
    }

    /// An object of the protocol.
    pub fn one<T: Wire>(&mut self, name: &str) -> Option<T> {
        let value = self.take(name)?;
        let path = self.at(name);
        below(value, path, self.faults)
    }

    /// The same, which must be there.
    pub fn required<T: Wire>(&mut self, name: &str) -> Option<T> {
        match self.take(name) {
            Some(value) => {
                let path = self.at(name);
                below(value, path, self.faults)
            }
            None => {
                self.fault(name, "missing; an object is required");
                None
            }
        }
    }

    /// Objects of the protocol.
    pub fn many<T: Wire>(&mut self, name: &str) -> Vec<T> {
        let list = self.list(name);
        let path = self.at(name);
        let read = list.into_iter().enumerate();
        read.filter_map(|(i, value)| below(value, format!("{path}[{i}]"), self.faults))
            .collect()
    }

    /// The same, of which there must be one at least.
    pub fn required_many<T: Wire>(&mut self, name: &str) -> Vec<T> {
        let before = self.faults.listed.len() + self.faults.more;
        let found = self.many(name);
        if found.is_empty() && self.faults.listed.len() + self.faults.more == before {
            self.fault(
                name,
                "missing or empty; an array of one element at least is required",
            );
        }
        found
    }

    /// Objects of the protocol by their names.
    pub fn by_name<T: Wire>(&mut self, name: &str) -> Vec<(String, T)> {
        let map = self.map(name).unwrap_or_default();
        let path = self.at(name);
        map.into_iter()
            .filter_map(|(key, value)| {
                let found = below(value, format!("{path}.{key}"), self.faults)?;
                Some((key, found))
            })
            .collect()
    }
}

fn below<T: Wire>(value: Value, path: String, faults: &mut Faults) -> Option<T> {
    match value {
        Value::Object(members) => T::read(&mut Object {
            members,
            path,
            faults,
        }),
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)) => {
            faults.note(Fault::new(path, expected("an object", &other)));
            None
        }
    }
}

/// A number as ProtoJSON takes it: with a fraction of zero, or as a text.
fn whole_number(value: &Value) -> Option<i32> {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(whole) => i32::try_from(whole).ok(),
            // Exact: it is whole and within 32 bits.
            #[allow(clippy::cast_possible_truncation)]
            None => (number.as_f64())
                .filter(|it| {
                    it.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(it)
                })
                .map(|it| it as i32),
        },
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn expected(what: &str, actual: &Value) -> String {
    let shown = match actual {
        Value::Null => "null".to_owned(),
        Value::Bool(it) => it.to_string(),
        Value::Number(it) => it.to_string(),
        Value::String(text) if text.chars().count() <= SHOWN_CHARS_MAX => format!("`{text}`"),
        Value::String(_) => "a longer string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    format!("{shown} is given, {what} is required")
}

/// The name of a member as the .proto has it.
#[must_use]
pub fn snake_of(camel: &str) -> String {
    let mut snake = String::with_capacity(camel.len() + 4);
    for c in camel.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// Reads RFC 3339, with the signs of ASCII, and with a second 60 only where a leap second can be.
fn rfc_3339(text: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
    let is_leap = time.nanosecond() >= 1_000_000_000;
    let is_last = matches!((time.month(), time.day()), (6, 30) | (12, 31));
    let can_be = is_last && (time.hour(), time.minute()) == (23, 59);
    (text.is_ascii() && (!is_leap || can_be)).then_some(time)
}

//! Faults of a declaration (`FormFault`) and of an output (`OutputFault`).

use crate::payload::Unfit;
use crate::{Payload, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt::Write as _;

const WRITES: &str = "a string takes what is written";

/// Something that is wrong with the form of `outputs`, `types` or `validation`.
#[derive(Debug, Clone, PartialEq)]
pub struct FormFault {
    /// The names on the way to it, below `schemas`; positions of a list are written as digits.
    pub path: Vec<String>,
    /// What is wrong.
    pub reason: &'static str,
    /// What would be accepted.
    pub expected: String,
    /// What was found.
    pub found: Value,
}

/// A part of a value that is not of its type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatch {
    /// The key of the output; empty when a value was checked on its own.
    pub key: String,
    /// A JSON pointer from the output, or from the value that was checked on its own. One of more than
    /// [`Mismatch::POINTER_BYTES_MAX`] bytes ends at the last name that fits.
    pub pointer: String,
    /// The type that is declared for what stands at `pointer`, as [`super::Type`] displays it; of a named list of
    /// values the values, too; what a JSON Schema demands there. Cut after [`Mismatch::EXPECTED_CHARS_MAX`] characters.
    #[serde(rename = "expected_type")]
    pub expected: String,
    /// The JSON type of the value, `integer` for a number without fraction; the text of the value, cut after
    /// [`Mismatch::ACTUAL_CHARS_MAX`] characters, where only certain values are allowed; `nothing` for a field
    /// that is missing; `too costly to check`.
    #[serde(rename = "actual_type")]
    pub actual: String,
}

impl Mismatch {
    /// Bytes of `pointer`.
    pub const POINTER_BYTES_MAX: usize = 1024;
    /// Characters of `expected`.
    pub const EXPECTED_CHARS_MAX: usize = 200;
    /// Characters of `actual`.
    pub const ACTUAL_CHARS_MAX: usize = 100;

    /// Whether the whole value of the key is meant, and not a part of it.
    fn is_whole(&self) -> bool {
        self.pointer.matches('/').count() <= 1
    }
}

/// An output with more bytes than a result may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TooLarge {
    /// The key with the most bytes; absent for an output without keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Bytes of JSON of the value of that key.
    pub key_bytes: u64,
    /// Bytes of JSON of the whole output.
    pub bytes: u64,
    /// Bytes that it may have: [`limits::PAYLOAD_BYTES_MAX`].
    pub limit: u64,
}

impl TooLarge {
    /// An output as tasks can have it, or how much too large it is. Cost: O(bytes).
    ///
    /// # Errors
    /// It has too many levels.
    pub fn unless_fits(output: &Map<String, Value>) -> Result<Result<Payload, Self>, Unfit> {
        match Payload::checked(output) {
            Ok(whole) => Ok(Ok(whole)),
            Err(Unfit::TooLarge(bytes)) => Ok(Err(Self::of(output, bytes))),
            Err(unfit @ (Unfit::TooDeep(_) | Unfit::ReservedName)) => Err(unfit),
        }
    }

    /// Of an output of so many bytes. Cost: O(bytes).
    #[must_use]
    pub fn of(output: &Map<String, Value>, bytes: usize) -> Self {
        let sizes = output
            .iter()
            .map(|(key, value)| (key, value.to_string().len()));
        let largest = sizes.max_by_key(|(_, bytes)| *bytes);
        Self {
            key: largest.map(|(key, _)| cut(key, Self::KEY_CHARS_MAX)),
            key_bytes: largest.map_or(0, |(_, bytes)| bytes as u64),
            bytes: bytes as u64,
            limit: limits::PAYLOAD_BYTES_MAX as u64,
        }
    }

    /// Characters of `key`; what is longer ends with an ellipsis.
    pub const KEY_CHARS_MAX: usize = 1024;
}

/// Why an output is not accepted. At least one list is not empty, or it is too large; each list has at most
/// [`limits::VIOLATIONS_MAX`] entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFault {
    /// Required keys that the output has not, in the order of the declaration.
    #[serde(
        rename = "missing_keys",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub missing: Vec<String>,
    /// Parts of the output that are not of their types, in the order of the declaration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mismatches: Vec<Mismatch>,
    /// It has too many bytes; then nothing else was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_large: Option<TooLarge>,
}

impl OutputFault {
    /// Bytes of [`OutputFault::message`].
    pub const MESSAGE_BYTES_MAX: usize = 1024;

    /// An output that is too large.
    #[must_use]
    pub const fn of_size(too_large: TooLarge) -> Self {
        Self {
            missing: Vec::new(),
            mismatches: Vec::new(),
            too_large: Some(too_large),
        }
    }

    /// Bytes that it takes, roughly. Cost: O(entries).
    #[must_use]
    pub fn bytes(&self) -> usize {
        let missing = self.missing.iter().map(|key| 24 + key.len());
        let mismatches = self
            .mismatches
            .iter()
            .map(|it| 96 + it.key.len() + it.pointer.len() + it.expected.len() + it.actual.len());
        let key = self.too_large.as_ref().and_then(|it| it.key.as_ref());
        missing.sum::<usize>() + mismatches.sum::<usize>() + key.map_or(0, |key| 64 + key.len())
    }

    /// The name of the error. spec: I/O contracts / 4.1, 4.2
    #[must_use]
    pub fn name(&self) -> &'static str {
        if self.too_large.is_some() {
            "OutputTooLargeError"
        } else if self.missing.is_empty() {
            "OutputTypeMismatchError"
        } else {
            "MissingOutputError"
        }
    }

    /// One sentence for people that names each key, as far as [`OutputFault::MESSAGE_BYTES_MAX`] bytes allow.
    #[must_use]
    pub fn message(&self) -> String {
        /// Bytes that are left for what says how many keys are not named.
        const REST_BYTES: usize = 100;
        let mut text = String::from("Task completion rejected: ");
        let bytes_max = Self::MESSAGE_BYTES_MAX - REST_BYTES;
        if let Some(large) = &self.too_large {
            let (bytes, limit) = (large.bytes, large.limit);
            write!(text, "the output has {bytes} bytes of JSON").expect(WRITES);
            if let Some(key) = &large.key {
                let key = limits::cut(key, bytes_max / 2);
                write!(text, ", {} of them in '{key}'", large.key_bytes).expect(WRITES);
            }
            write!(text, "; at most {limit} are kept").expect(WRITES);
            return text;
        }
        if !self.missing.is_empty() {
            let one = self.missing.len() == 1;
            text += if one {
                "declared output key "
            } else {
                "declared output keys "
            };
            let keys = self.missing.iter().map(|key| format!("'{key}'"));
            // Half for each list, so that neither hides the other.
            let share = if self.mismatches.is_empty() { 1 } else { 2 };
            list(&mut text, keys, bytes_max / share, ", ");
            text += if one { " was" } else { " were" };
            text += " not present in agent return value";
        }
        if !self.mismatches.is_empty() {
            if !self.missing.is_empty() {
                text += "; ";
            }
            list(&mut text, self.parts(), bytes_max, "; ");
        }
        text
    }

    /// What is said of each mismatch.
    fn parts(&self) -> impl Iterator<Item = String> {
        self.mismatches.iter().map(|it| {
            let Mismatch {
                key,
                pointer,
                expected,
                actual,
            } = it;
            match it.is_whole() {
                true => format!("output key '{key}' was declared as {expected} but is {actual}"),
                false => format!(
                    "output key '{key}' does not conform at '{pointer}': declared {expected}, found {actual}"
                ),
            }
        })
    }
}

/// Appends items while the text has at most `bytes_max` bytes, and the count of the others.
fn list(text: &mut String, items: impl Iterator<Item = String>, bytes_max: usize, between: &str) {
    let (mut listed, mut others) = (0, 0);
    for item in items {
        let room = bytes_max.saturating_sub(text.len());
        if listed == 0 && others == 0 && item.len() > room {
            text.push_str(limits::cut(&item, room));
            text.push('…');
            listed += 1;
        } else if others > 0 || text.len() + between.len() + item.len() > bytes_max {
            others += 1;
        } else {
            if listed > 0 {
                text.push_str(between);
            }
            text.push_str(&item);
            listed += 1;
        }
    }
    if others > 0 {
        let and = if listed > 0 { " and " } else { "" };
        write!(text, "{and}{others} more").expect(WRITES);
    }
}

/// The beginning of a text, with an ellipsis where characters are left out.
pub(super) fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Collects up to [`limits::VIOLATIONS_MAX`] entries, so that an answer cannot outgrow what it answers.
pub(super) fn push<T>(list: &mut Vec<T>, make: impl FnOnce() -> T) {
    if list.len() < limits::VIOLATIONS_MAX {
        list.push(make());
    }
}

//! The place of a value in a result, and its written form.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{fmt, io};

/// Where a value lies in a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    key: Option<String>,
    /// A JSON pointer; empty for the whole value.
    pointer: String,
}

impl Place {
    /// Reads what stands behind the name of a dependency, from its `.` or `#` on.
    fn parse(text: &str) -> Option<Self> {
        let (key, pointer) = match text.strip_prefix('.') {
            Some(rest) => {
                let (key, pointer) = rest.split_once('#').unwrap_or((rest, ""));
                (Some(key.to_owned()), pointer)
            }
            None => (None, text.strip_prefix('#')?),
        };
        let is_key = key.as_ref().is_none_or(|key| !key.is_empty());
        (is_key && is_pointer(pointer)).then(|| Self {
            key,
            pointer: pointer.to_owned(),
        })
    }

    pub(super) fn find<'v>(&self, result: &'v Map<String, Value>) -> Option<Found<'v>> {
        match &self.key {
            Some(key) => result.get(key)?.pointer(&self.pointer).map(Found::Value),
            None if self.pointer.is_empty() => Some(Found::Whole(result)),
            None => {
                // The first name of the pointer leads into the result, the rest into its value.
                let rest = &self.pointer[1..];
                let (first, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                let key = first.replace("~1", "/").replace("~0", "~");
                result.get(&key)?.pointer(behind).map(Found::Value)
            }
        }
    }
}

pub(super) enum Found<'v> {
    Value(&'v Value),
    Whole(&'v Map<String, Value>),
}

/// Counts what is written to it.
#[derive(Default)]
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.0 += part.len();
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Found<'_> {
    /// Bytes of its text.
    pub(super) fn bytes(&self) -> usize {
        let mut counter = Counter::default();
        let written = match self {
            Self::Value(value) => serde_json::to_writer(&mut counter, value),
            Self::Whole(result) => serde_json::to_writer(&mut counter, result),
        };
        written.expect("JSON can always be written to memory");
        counter.0
    }

    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Value(value) => Value::clone(value),
            Self::Whole(result) => Value::Object(Map::clone(result)),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key) = &self.key {
            write!(f, ".{key}")?;
        }
        // White space at the end of a template does not count, but that of a key does.
        let is_blunt = |key: &str| !key.ends_with(char::is_whitespace);
        if !self.key.as_deref().is_some_and(is_blunt) || !self.pointer.is_empty() {
            write!(f, "#{}", self.pointer)?;
        }
        Ok(())
    }
}

fn is_pointer(text: &str) -> bool {
    let mut escapes = text.split('~').skip(1);
    (text.is_empty() || text.starts_with('/'))
        && escapes.all(|behind| behind.starts_with(['0', '1']))
}

/// Ways in which a reference is read: a name of a dependency may hold fewer dots and `#`.
pub(super) const READINGS_MAX: usize = 32;

/// The ways to read a reference, the shortest name of a dependency first. Cost: O(length), [`READINGS_MAX`] times at
/// worst.
pub(super) fn readings(text: &str) -> impl Iterator<Item = (&str, Place)> {
    let ends = text.match_indices(['.', '#']).filter(|(at, _)| *at > 0);
    let ends = ends.take(READINGS_MAX);
    ends.filter_map(|(at, _)| Some((&text[..at], Place::parse(&text[at..])?)))
}

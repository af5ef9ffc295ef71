//! Writes members: what is unset is left out.

use crate::read::{Named, Wire};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value};

/// The members of an object that is being written.
#[derive(Debug, Default)]
pub struct Members(Map<String, Value>);

impl Members {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the object that was written.
    #[must_use]
    pub fn done(self) -> Map<String, Value> {
        self.0
    }

    /// A member that is always written.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// A member, if it is set.
    #[must_use]
    pub fn set<V: Into<Value>>(self, name: &str, value: Option<V>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// A text, if it is not empty.
    #[must_use]
    pub fn text(self, name: &str, value: Option<&str>) -> Self {
        self.set(name, value.filter(|it| !it.is_empty()))
    }

    /// A list, if it is not empty.
    #[must_use]
    pub fn texts(self, name: &str, value: &[String]) -> Self {
        match value {
            [] => self,
            some => self.with(name, some.to_vec()),
        }
    }

    /// Free members, if they are set.
    #[must_use]
    pub fn map(self, name: &str, value: Option<&Map<String, Value>>) -> Self {
        self.set(name, value.cloned())
    }

    /// An object, if it is set.
    #[must_use]
    pub fn one<T: Wire>(self, name: &str, value: Option<&T>) -> Self {
        self.set(name, value.map(Wire::to_json))
    }

    /// Objects, if there are any.
    #[must_use]
    pub fn many<T: Wire>(self, name: &str, value: &[T]) -> Self {
        match value {
            [] => self,
            some => self.all(name, some),
        }
    }

    /// Objects, always.
    #[must_use]
    pub fn all<T: Wire>(self, name: &str, value: &[T]) -> Self {
        self.with(name, value.iter().map(Wire::to_json).collect::<Vec<_>>())
    }

    /// A flag, if it is not false.
    #[must_use]
    pub fn flag(self, name: &str, value: bool) -> Self {
        self.set(name, value.then_some(true))
    }

    /// A value of an enum.
    #[must_use]
    pub fn named<E: Named + PartialEq>(self, name: &str, value: E) -> Self {
        self.with(name, name_of(value))
    }
}

/// The name of a value of an enum.
pub fn name_of<E: Named + PartialEq>(value: E) -> &'static str {
    let named = E::ALL.iter().find(|(known, _, _)| *known == value);
    named.map_or(E::UNSPECIFIED, |(_, _, name)| name)
}

/// The number of a value of an enum.
pub fn number_of<E: Named + PartialEq>(value: E) -> i32 {
    let named = E::ALL.iter().find(|(known, _, _)| *known == value);
    named.map_or(0, |(_, number, _)| *number)
}

/// A time in the form of RFC 3339, in milliseconds, `Z`.
#[must_use]
pub fn time(value: DateTime<Utc>) -> String {
    value.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Bytes in base64.
#[must_use]
pub fn bytes(value: &[u8]) -> String {
    STANDARD.encode(value)
}

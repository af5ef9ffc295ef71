//! Calls as the commands make them: a method, its parameters, and how its result is shown.

use crate::output::Output;
use serde_json::{Map, Value};
use std::io;

/// A call, and how its result is shown to people.
pub struct Request {
    /// The method.
    pub method: &'static str,
    /// Its parameters.
    pub params: Value,
    /// Writes the result.
    pub show: fn(&Value, &mut Output) -> io::Result<()>,
}

/// Builds parameters; what was not given is left out.
#[derive(Debug, Default)]
pub struct Params(pub(crate) Map<String, Value>);

impl Params {
    /// With this one.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// With this one if it is given.
    #[must_use]
    pub fn maybe(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// With this one as true if it is set.
    pub(crate) fn flag(self, name: &str, set: bool) -> Self {
        if set { self.with(name, true) } else { self }
    }

    /// The object.
    #[must_use]
    pub fn build(self) -> Value {
        Value::Object(self.0)
    }
}

/// A JSON object on the command line.
#[derive(Debug, Clone)]
pub(crate) struct Object(pub(crate) Map<String, Value>);

pub(crate) fn json_object(text: &str) -> Result<Object, String> {
    serde_json::from_str(text)
        .map(Object)
        .map_err(|error| format!("expected a JSON object: {error}"))
}

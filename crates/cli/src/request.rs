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

/// A principal, as entries name it: with its kind, unless there is only one of it.
///
/// # Errors
/// What would be accepted.
pub fn principal(text: &str) -> Result<String, String> {
    const ALONE: [&str; 3] = ["anonymous", "engine", "server"];
    match text.split_once(':') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => Ok(text.to_owned()),
        None if ALONE.contains(&text) => Ok(text.to_owned()),
        None if !text.is_empty() => Err(format!(
            "expected the kind too: `user:{text}` or `service:{text}`; without one there are {}",
            ALONE.join(", ")
        )),
        Some(_) | None => Err("expected user:NAME, service:NAME or anonymous".to_owned()),
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

#[cfg(test)]
mod tests {
    use super::principal;

    #[test]
    fn a_principal_has_a_kind() {
        for good in ["user:ann", "service:ci", "anonymous", "server", "user:a:b"] {
            assert_eq!(principal(good).as_deref(), Ok(good));
        }
        let said = principal("ann").unwrap_err();
        assert!(
            said.starts_with("expected the kind too: `user:ann` or `service:ann`"),
            "{said}"
        );
        for bad in ["", "user:", ":ann"] {
            assert!(principal(bad).is_err(), "{bad}");
        }
    }
}

//! Calls as the commands make them: a method, its parameters, and how its result is shown.

use crate::nothing::shown_or_said;
use crate::output::{Output, member};
use crate::{Api, CliError, Remote};
use serde_json::{Map, Value};
use std::io;
use taskledger_domain::json;

/// A call, and how its result is shown to people.
pub struct Request {
    /// The JSON-RPC method, such as `tasks.get`.
    pub method: &'static str,
    /// The `params` of the call.
    pub params: Value,
    /// Writes the result.
    pub show: fn(&Value, &mut Output) -> io::Result<()>,
}

/// Calls that take something away: the member of the result that says whether it was there, the parameter that names
/// it, and what is said if it was not. The methods may be repeated; somebody who names what is not there has mistyped
/// it.
const TAKEN_AWAY: [(&str, &str, &str, &str); 3] = [
    (
        "secrets.delete",
        "deleted",
        "name",
        "there is no such secret",
    ),
    (
        "workers.undeclare",
        "removed",
        "method",
        "the method is not declared",
    ),
    (
        "workflows.delete",
        "deleted",
        "name",
        "there is no such workflow",
    ),
];

/// Why a call had nothing to take away.
fn absent(method: &str, params: &Value, result: &Value) -> Option<String> {
    let (_, was_there, name, text) = TAKEN_AWAY.iter().find(|(it, ..)| *it == method)?;
    let is_absent = result.get(*was_there) == Some(&Value::Bool(false));
    is_absent.then(|| format!("{text}: `{}`", member(params, name)))
}

impl Request {
    /// Makes the call, and shows the result.
    ///
    /// # Errors
    /// [`CliError`]; `Usage`: what was to be taken away is not there.
    pub(crate) async fn answered(
        self,
        remote: &Remote,
        out: &mut Output,
    ) -> Result<Value, CliError> {
        let api = remote.api()?;
        out.calls_with(api.options().to_owned());
        let result = api.call(self.method, self.params.clone()).await?;
        if let Some(text) = absent(self.method, &self.params, &result) {
            return Err(CliError::Usage(text));
        }
        let asked = (&self.params, &self.params);
        shown_or_said(self.method, asked, &result, self.show, out)?;
        Ok(result)
    }
}

/// Builds parameters; what was not given is left out.
#[derive(Debug, Clone, Default)]
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

    /// Returns the JSON object of the parameters.
    #[must_use]
    pub fn build(self) -> Value {
        Value::Object(self.0)
    }
}

/// A principal, as entries of the audit log name it.
///
/// # Errors
/// What would be accepted.
pub fn principal(text: &str) -> Result<String, String> {
    of_kind(text, &["anonymous", "operator", "server"])
}

/// A principal, as events name it.
///
/// # Errors
/// What would be accepted.
pub fn actor(text: &str) -> Result<String, String> {
    of_kind(text, &["anonymous", "engine"])
}

/// A principal with its kind, or one of these, of which there is only one each.
fn of_kind(text: &str, alone: &[&str]) -> Result<String, String> {
    let listed = |word: &str| match alone {
        [others @ .., last] => format!("{} {word} {last}", others.join(", ")),
        [] => String::new(),
    };
    match text.split_once(':') {
        Some(("user" | "service", name)) if !name.is_empty() => Ok(text.to_owned()),
        None if alone.contains(&text) => Ok(text.to_owned()),
        None if !text.is_empty() => Err(format!(
            "expected the kind too: `user:{text}` or `service:{text}`; without one there are {}",
            listed("and")
        )),
        Some(_) | None => Err(format!(
            "expected user:NAME, service:NAME, {}",
            listed("or")
        )),
    }
}

/// A JSON object on the command line.
#[derive(Debug, Clone)]
pub(crate) struct Object(pub(crate) Map<String, Value>);

pub(crate) fn json_object(text: &str) -> Result<Object, String> {
    json::read(text.as_bytes())
        .map(Object)
        .map_err(|error| format!("expected a JSON object: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{absent, actor, principal};
    use serde_json::json;

    #[test]
    fn what_is_not_there_cannot_be_taken_away() {
        let named = json!({"name": "n", "method": "m"});
        let of = |method, result| absent(method, &named, &result);
        let secret = of("secrets.delete", json!({"deleted": false}));
        assert_eq!(secret.as_deref(), Some("there is no such secret: `n`"));
        let method = of("workers.undeclare", json!({"removed": false}));
        assert_eq!(method.as_deref(), Some("the method is not declared: `m`"));
        let workflow = of("workflows.delete", json!({"deleted": false}));
        assert_eq!(workflow.as_deref(), Some("there is no such workflow: `n`"));
        assert_eq!(of("secrets.delete", json!({"deleted": true})), None);
        assert_eq!(of("tasks.delete", json!({"deleted": false})), None);
    }

    #[test]
    fn a_principal_has_a_kind() {
        for good in ["user:ann", "service:ci", "anonymous", "user:a:b"] {
            assert_eq!(principal(good).as_deref(), Ok(good));
            assert_eq!(actor(good).as_deref(), Ok(good));
        }
        assert!(principal("server").is_ok() && actor("engine").is_ok());
        for (said, alone) in [
            (principal("engine"), "anonymous, operator and server"),
            (actor("server"), "anonymous and engine"),
        ] {
            let said = said.unwrap_err();
            assert!(said.starts_with("expected the kind too: `user:"), "{said}");
            assert!(said.ends_with(alone), "{said}");
        }
        for bad in ["", "user:", ":ann", "usr:ann", "anonymous:ann"] {
            assert_eq!(
                principal(bad).unwrap_err(),
                "expected user:NAME, service:NAME, anonymous, operator or server"
            );
        }
    }
}

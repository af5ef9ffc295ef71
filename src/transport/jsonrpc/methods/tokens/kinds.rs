//! Kinds of values that only tokens have.

use crate::transport::jsonrpc::params::work::kinds::{DISTINCT, fault_of};
use crate::transport::jsonrpc::reader::{Choice, Fault, Kind, Refusal, choice};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_auth::tokens::{AGENTS_MAX, METHODS_MAX};
use taskledger_auth::{
    ID_CHARS, Kind as CallerKind, NAME_CHARS_MAX, Name, PREFIX, Scope, Scopes, TokenId,
};
use taskledger_domain::Violation;
use taskledger_domain::limits::KEY_CHARS_MAX;
use taskledger_domain::text::name_pattern;

/// The kinds of owners that tokens have.
pub(super) const KIND: Choice<CallerKind> = choice(
    "not a kind",
    &[("user", CallerKind::User), ("service", CallerKind::Service)],
);

/// The id of a token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Id;

impl Kind for Id {
    type Out = TokenId;

    fn schema(&self) -> Value {
        json!({"type": "string", "pattern": format!("^[a-z2-7]{{{ID_CHARS}}}$")})
    }

    /// A whole token at this place is not repeated.
    fn parse(&self, value: &Value) -> Result<TokenId, Refusal> {
        let text = value.as_str();
        if let Some(id) = text.and_then(TokenId::parse) {
            return Ok(id);
        }
        let expected = format!("{ID_CHARS} characters of `a` to `z` and `2` to `7`");
        let reason = "not the id of a token";
        if text.is_some_and(|text| text.starts_with(PREFIX)) {
            let hidden = Violation::new(&["id".into()], reason, expected, &"***".into());
            return Err(Refusal::Inside(vec![hidden]));
        }
        Err(Fault::new(reason, expected).into())
    }
}

/// The name of a user or service.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameOf;

impl Kind for NameOf {
    type Out = Name;

    fn schema(&self) -> Value {
        json!({"type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX,
            "not": {"pattern": "^(user|service):"},
            "pattern": name_pattern()})
    }

    fn parse(&self, value: &Value) -> Result<Name, Refusal> {
        let expected = "a string of 1 to 255 characters";
        let text = value
            .as_str()
            .ok_or_else(|| Fault::new("not a string", expected))?;
        Name::new(text).map_err(|reason| Fault::new(reason.to_string(), expected).into())
    }
}

/// The name of whom a token is made for: people read it in lists and in the audit log.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewNameOf;

impl Kind for NewNameOf {
    type Out = Name;

    fn schema(&self) -> Value {
        json!({"type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX,
            "not": {"pattern": "^(user|service):"}, "pattern": name_pattern()})
    }

    fn parse(&self, value: &Value) -> Result<Name, Refusal> {
        let name = NameOf.parse(value)?;
        match fault_of(name.as_str()) {
            None => Ok(name),
            Some(fault) => {
                let expected = format!("1 to {NAME_CHARS_MAX} characters {DISTINCT}");
                Err(Fault::new(fault, expected).into())
            }
        }
    }
}

/// Scopes, not empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScopeList;

impl Kind for ScopeList {
    type Out = Scopes;

    fn schema(&self) -> Value {
        let names: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
        json!({"type": "array", "minItems": 1, "maxItems": names.len(),
            "items": {"type": "string", "enum": names}})
    }

    fn parse(&self, value: &Value) -> Result<Scopes, Refusal> {
        let expected = || {
            let names: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
            format!("1 to {} of {}", names.len(), names.join(", "))
        };
        let scopes = each(value, "scopes", Scope::ALL.len(), expected, |item| {
            let scope = item.as_str().and_then(|text| text.parse().ok());
            scope.ok_or(("not a scope", expected()))
        })?;
        Ok(Scopes::of(scopes))
    }
}

/// Methods to which a worker is narrowed, not empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct Methods;

impl Kind for Methods {
    type Out = Arc<[Arc<str>]>;

    fn schema(&self) -> Value {
        json!({"type": "array", "minItems": 1, "maxItems": METHODS_MAX,
            "items": {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX}})
    }

    fn parse(&self, value: &Value) -> Result<Self::Out, Refusal> {
        let expected = || format!("1 to {METHODS_MAX} names of methods");
        let methods = each(value, "methods", METHODS_MAX, expected, |item| {
            let text = item.as_str().filter(|text| {
                !text.is_empty()
                    && (text.len() <= KEY_CHARS_MAX || text.chars().count() <= KEY_CHARS_MAX)
            });
            let expected = || format!("a string of 1 to {KEY_CHARS_MAX} characters");
            text.map(Arc::from)
                .ok_or_else(|| ("not the name of a method", expected()))
        })?;
        Ok(Arc::from(methods))
    }
}

/// Agents of the broker, not empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct Agents;

impl Kind for Agents {
    type Out = Arc<[Arc<str>]>;

    fn schema(&self) -> Value {
        json!({"type": "array", "minItems": 1, "maxItems": AGENTS_MAX,
            "items": {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX,
                "pattern": r"^[^\x00-\x1f\x7f-\x9f]+$"}})
    }

    fn parse(&self, value: &Value) -> Result<Self::Out, Refusal> {
        let expected = || format!("1 to {AGENTS_MAX} names of agents");
        let agents = each(value, "agents", AGENTS_MAX, expected, |item| {
            let text = item
                .as_str()
                .filter(|text| !text.is_empty() && text.chars().count() <= KEY_CHARS_MAX);
            let text = text.filter(|text| !text.chars().any(char::is_control));
            let expected = || {
                format!("a string of 1 to {KEY_CHARS_MAX} characters without control characters")
            };
            text.map(Arc::from)
                .ok_or_else(|| ("not the name of an agent", expected()))
        })?;
        Ok(Arc::from(agents))
    }
}

/// The members of a list, or all that is wrong with them.
pub(in crate::transport::jsonrpc) fn each<T>(
    value: &Value,
    name: &'static str,
    max: usize,
    expected: impl Fn() -> String,
    parse: impl Fn(&Value) -> Result<T, (&'static str, String)>,
) -> Result<Vec<T>, Refusal> {
    let list = match value.as_array() {
        Some(list) if (1..=max).contains(&list.len()) => list,
        Some(_) => return Err(Fault::new("empty or too long", expected()).into()),
        None => return Err(Fault::new("not a list", expected()).into()),
    };
    let (mut parsed, mut violations) = (Vec::new(), Vec::new());
    for (index, item) in list.iter().enumerate() {
        match parse(item) {
            Ok(item) => parsed.push(item),
            Err((reason, expected)) => {
                let path = [name.into(), index.into()];
                violations.push(Violation::new(&path, reason, expected, item));
            }
        }
    }
    if violations.is_empty() {
        Ok(parsed)
    } else {
        Err(Refusal::Inside(violations))
    }
}

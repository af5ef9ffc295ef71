//! One fault of an input, in the form in which the protocol reports it.
//! spec: validation / Validation Error Reporting

use crate::limits;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// A step of the path from the call's parameters to the faulty value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PathSegment {
    /// A member's name.
    Key(String),
    /// A position in an array, from 0.
    Index(usize),
}

impl From<&str> for PathSegment {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}
impl From<usize> for PathSegment {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// A fault in one field, and what would be accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The last named member of `path`, for people.
    pub field: String,
    /// What is wrong.
    pub reason: String,
    /// What would be accepted.
    pub expected: String,
    /// The value found, shortened to [`Violation::ACTUAL_BYTES_MAX`]; null when it is absent.
    pub actual: Value,
    /// From the call's parameters to the value.
    pub path: Vec<PathSegment>,
}

impl Violation {
    /// Bytes of text of `actual`.
    pub const ACTUAL_BYTES_MAX: usize = 256;

    /// Bytes of a name in `path`, and so of `field`. Names may come from the caller, a fault repeats
    /// them twice, and there may be a hundred faults below one name.
    pub const NAME_BYTES_MAX: usize = 256;

    /// A violation at `path`; `field` is the last name in it. Names that are too long are cut.
    #[must_use]
    pub fn new(
        path: &[PathSegment],
        reason: impl Into<String>,
        expected: impl Into<String>,
        actual: &Value,
    ) -> Self {
        let path: Vec<_> = path.iter().map(shorten_name).collect();
        let field = path
            .iter()
            .rev()
            .find_map(|s| match s {
                PathSegment::Key(k) => Some(k.clone()),
                PathSegment::Index(_) => None,
            })
            .unwrap_or_else(|| "params".to_owned());
        Self {
            field,
            reason: reason.into(),
            expected: expected.into(),
            actual: shown(&path, actual),
            path,
        }
    }

    /// A violation of the top-level member `field`.
    #[must_use]
    pub fn of(
        field: &str,
        reason: impl Into<String>,
        expected: impl Into<String>,
        actual: &Value,
    ) -> Self {
        Self::new(&[field.into()], reason, expected, actual)
    }

    /// Adds a violation to a list that is not full yet ([`limits::VIOLATIONS_MAX`]), so that hostile
    /// input cannot make the answer larger than itself.
    pub fn report(list: &mut Vec<Self>, make: impl FnOnce() -> Self) {
        if list.len() < limits::VIOLATIONS_MAX {
            list.push(make());
        }
    }

    /// The same violation with its path moved below `prefix`.
    #[must_use]
    pub fn below(mut self, prefix: &[PathSegment]) -> Self {
        let mut path = prefix.to_vec();
        path.append(&mut self.path);
        self.path = path;
        self
    }
}

fn shorten_name(segment: &PathSegment) -> PathSegment {
    match segment {
        PathSegment::Key(name) if name.len() > Violation::NAME_BYTES_MAX => {
            PathSegment::Key(cut(name, Violation::NAME_BYTES_MAX))
        }
        PathSegment::Key(_) | PathSegment::Index(_) => segment.clone(),
    }
}

/// The beginning of `text`, and how long it is.
fn cut(text: &str, bytes_max: usize) -> String {
    let beginning = limits::cut(text, bytes_max);
    format!("{beginning}… ({} bytes)", text.len())
}

/// Words in the names of members whose values no answer repeats.
const SECRET_WORDS: [&str; 13] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "cookie",
    "bearer",
    "accesskey",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
];

/// What stands for the value of such a member.
const REDACTED: &str = "[redacted]";

/// Whether a member of this name holds a secret. `max_tokens` and the like count tokens.
fn is_secret(name: &str) -> bool {
    let mut plain = name.to_ascii_lowercase();
    plain.retain(|c| c.is_ascii_alphanumeric());
    let plain = plain.replace("tokens", "");
    SECRET_WORDS.iter().any(|word| plain.contains(word))
}

/// The value as an answer may show it: shortened, without secrets.
fn shown(path: &[PathSegment], actual: &Value) -> Value {
    let below_secret = path
        .iter()
        .any(|segment| matches!(segment, PathSegment::Key(name) if is_secret(name)));
    if below_secret && !actual.is_null() {
        return Value::from(REDACTED);
    }
    shorten(&redacted(actual))
}

/// A text without the credentials of a URL that it holds: the user, and members of the query with secret names. Cost:
/// O(length).
fn without_credentials(text: &str) -> Cow<'_, str> {
    let Some((before, behind)) = text.split_once("://") else {
        return Cow::Borrowed(text);
    };
    let authority_end = behind.find(['/', '?', '#']).unwrap_or(behind.len());
    let (authority, rest) = behind.split_at(authority_end);
    let user = authority.rsplit_once('@');
    let authority = user.map_or(Cow::Borrowed(authority), |(_, host)| {
        Cow::Owned(format!("{REDACTED}@{host}"))
    });
    let rest = rest.split_inclusive(['?', '&', '#', ';']).map(|piece| {
        let (pair, separator) = match piece.strip_suffix(['?', '&', '#', ';']) {
            Some(pair) => (pair, &piece[pair.len()..]),
            None => (piece, ""),
        };
        match pair.split_once('=') {
            Some((name, value)) if is_secret(name) && !value.is_empty() => {
                format!("{name}={REDACTED}{separator}")
            }
            Some(_) | None => piece.to_owned(),
        }
    });
    Cow::Owned(format!(
        "{before}://{authority}{}",
        rest.collect::<String>()
    ))
}

/// A copy without secrets. Cost: O(size); recurses as deep as the parser lets a body be.
fn redacted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(redacted).collect(),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, value)| {
                    let hidden = is_secret(name) && !value.is_null();
                    let value = if hidden {
                        Value::from(REDACTED)
                    } else {
                        redacted(value)
                    };
                    (name.clone(), value)
                })
                .collect(),
        ),
        Value::String(text) => Value::from(without_credentials(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// The value itself when its text is short, else the beginning of its text. Cost: O(size) at worst.
fn shorten(value: &Value) -> Value {
    let cut = |text: &str| cut(text, Violation::ACTUAL_BYTES_MAX);
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(s) if s.len() <= Violation::ACTUAL_BYTES_MAX => value.clone(),
        Value::String(s) => Value::String(cut(s)),
        Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            if text.len() <= Violation::ACTUAL_BYTES_MAX {
                value.clone()
            } else {
                Value::String(cut(&text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PathSegment, Violation};
    use serde_json::json;

    #[test]
    fn secrets_are_not_repeated_wherever_they_stand() {
        for name in [
            "password",
            "API-Key",
            "api_key",
            "x-auth-token",
            "clientSecret",
        ] {
            let fault = Violation::new(
                &["inputs".into(), name.into()],
                "is wrong",
                "a text",
                &json!("hunter2"),
            );
            assert_eq!(fault.actual, "[redacted]", "{name}");
            let whole = json!({"user": "u", name: "hunter2", "list": [{name: 7}]});
            let fault = Violation::of("inputs", "is wrong", "another object", &whole);
            assert_eq!(
                fault.actual,
                json!({"user": "u", name: "[redacted]", "list": [{name: "[redacted]"}]})
            );
            let missing = Violation::of(name, "is required", "a text", &json!(null));
            assert_eq!(missing.actual, json!(null));
        }
        let counted = Violation::of("max_tokens", "is wrong", "a number", &json!("many"));
        assert_eq!(counted.actual, "many");
    }

    #[test]
    fn credentials_in_urls_are_not_repeated() {
        for (given, expected) in [
            (
                "https://me:hunter2@example.com/a?b=1",
                "https://[redacted]@example.com/a?b=1",
            ),
            ("postgres://me@db", "postgres://[redacted]@db"),
            (
                "http://h/?token=x&a=2#b",
                "http://h/?token=[redacted]&a=2#b",
            ),
            ("http://h?a=1&api_key=x", "http://h?a=1&api_key=[redacted]"),
            ("http://h/@x", "http://h/@x"),
            ("a@b.example", "a@b.example"),
        ] {
            let fault = Violation::of("url", "is wrong", "another URL", &json!(given));
            assert_eq!(fault.actual, expected);
            let inside = json!({"list": [given]});
            let fault = Violation::of("inputs", "is wrong", "another object", &inside);
            assert_eq!(fault.actual, json!({"list": [expected]}));
        }
    }

    #[test]
    fn a_long_name_is_cut_wherever_it_is_told() {
        let name = "é".repeat(500_000);
        let path = ["inputs".into(), name.as_str().into(), 7.into()];
        let fault = Violation::new(&path, "is wrong", "something else", &json!(name));
        let shown = format!("{}… (1000000 bytes)", "é".repeat(128));
        assert_eq!(fault.field, shown);
        let told = ["inputs".into(), PathSegment::Key(shown), 7.into()];
        assert_eq!(fault.path, told);
        assert!(json!(fault).to_string().len() < 1500);
        let longest = "n".repeat(Violation::NAME_BYTES_MAX);
        let fault = Violation::of(&longest, "is wrong", "something else", &json!(1));
        assert_eq!(fault.field, longest);
    }
}

//! `configuration.push_notification_config` of `tasks.execute`. spec: interface / Push Notifications

use super::kinds::{HIDDEN, headers_at, headers_schema, own_secret};
use crate::application::api::webhooks::{Callback, URL_CHARS_MAX};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_domain::Violation;
use taskledger_domain::limits::VIOLATIONS_MAX;
use taskledger_domain::suggestion::known_member;
use taskledger_domain::violation::PathSegment;

/// The member of `configuration`.
pub const MEMBER: &str = "push_notification_config";
const MEMBERS: [&str; 4] = ["url", "headers", "method", "secret"];

/// The JSON Schema of the member.
#[must_use]
pub fn schema() -> Value {
    json!({
        "type": ["object", "null"],
        "description": "With `tasks.execute`: where to send notices of this run, by POST, until it has ended.",
        "required": ["url"],
        "additionalProperties": false,
        "properties": {
            "url": {"type": "string", "minLength": 1, "maxLength": URL_CHARS_MAX},
            "headers": headers_schema(),
            "method": {"type": ["string", "null"], "enum": ["POST", null]},
            "secret": {"type": ["string", "null"], "description": "The signing secret, `whsec_...` or `whsk_...`. Without it the notices are not signed, and a receiver cannot know who sent them: give a secret, or a header that only you know."},
        },
    })
}

/// Where the caller of an execution wants to be told of it.
///
/// # Errors
/// Every violation; the paths begin at the call.
pub fn read(configuration: Option<&Value>) -> Result<Option<Callback>, Vec<Violation>> {
    let Some(config) = configuration
        .and_then(|configuration| configuration.get(MEMBER))
        .filter(|config| !config.is_null())
    else {
        return Ok(None);
    };
    let path = |member: &str| -> Vec<PathSegment> {
        ["configuration", MEMBER, member].map(Into::into).to_vec()
    };
    let Some(map) = config.as_object() else {
        let path = ["configuration".into(), MEMBER.into()];
        let expected = "an object with `url`";
        return Err(vec![Violation::new(
            &path,
            "not an object",
            expected,
            config,
        )]);
    };
    let mut violations = Vec::new();
    let given = |member: &str| map.get(member).filter(|value| !value.is_null());
    let url = given("url").and_then(Value::as_str).map(Arc::from);
    if url.is_none() {
        let (reason, actual) = match given("url") {
            Some(given) => ("not a string", without_texts(given)),
            None => ("missing", Value::Null),
        };
        let expected = "the URL of the receiver";
        violations.push(Violation::new(&path("url"), reason, expected, &actual));
    }
    let headers = given("headers").map(|headers| headers_at(headers, &path("headers")));
    let headers = headers.unwrap_or_else(|| Ok(Vec::new()));
    let headers = headers.map_err(|mut faults| violations.append(&mut faults));
    if let Some(method) = given("method").filter(|method| *method != "POST") {
        let fault = Violation::new(&path("method"), "not supported", "`POST`", method);
        violations.push(fault);
    }
    let secret = given("secret").map(|secret| own_secret(secret, &path("secret")));
    let secret = secret
        .transpose()
        .map_err(|mut faults| violations.append(&mut faults));
    let unknown = map.keys().filter(|name| !MEMBERS.contains(&name.as_str()));
    for name in unknown.take(VIOLATIONS_MAX) {
        let expected = known_member(name, &MEMBERS);
        let actual = without_texts(&map[name]);
        let fault = Violation::new(&path(name), "unknown parameter", expected, &actual);
        violations.push(fault);
    }
    match (url, headers, secret) {
        (Some(url), Ok(headers), Ok(secret)) if violations.is_empty() => Ok(Some(Callback {
            url,
            headers,
            secret,
            reported: None,
        })),
        _ => Err(violations),
    }
}

/// What was given, as far as it cannot be a token.
fn without_texts(given: &Value) -> Value {
    match given {
        Value::Null | Value::Bool(_) | Value::Number(_) => given.clone(),
        Value::String(_) | Value::Array(_) | Value::Object(_) => HIDDEN.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(config: Value) -> Result<Option<Callback>, Vec<Violation>> {
        read(Some(&json!({MEMBER: config})))
    }

    #[test]
    fn the_example_of_the_protocol_is_taken() {
        let callback = of(json!({"url": "https://callback.url",
            "headers": {"Authorization": "Bearer token"}, "method": "POST"}));
        let callback = callback.unwrap().unwrap();
        assert_eq!(&*callback.headers[0].0, "authorization");
        assert_eq!(callback.secret, None);
        assert_eq!(read(None), Ok(None));
        assert_eq!(read(Some(&json!({"other": 1}))), Ok(None));
        assert_eq!(of(Value::Null), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_said_at_once_and_no_secret_is_repeated() {
        let violations = of(
            json!({"headers": {"webhook-id": "hunter2"}, "method": "GET",
            "token": "hunter2", "secret": "hunter2"}),
        )
        .unwrap_err();
        let found: Vec<_> = violations.iter().map(|v| v.field.as_str()).collect();
        assert_eq!(found, ["url", "webhook-id", "method", "secret", "token"]);
        assert!(!format!("{violations:?}").contains("hunter2"));
        assert_eq!(violations[0].path.len(), 3);
        let shown = |n: usize| violations[n].actual.clone();
        // A violation hides what is named like a secret by itself.
        assert_eq!((shown(2), shown(4)), (json!("GET"), json!("[redacted]")));
        let odd = of(json!({"url": 7, "retries": 3})).unwrap_err();
        let shown: Vec<_> = odd.iter().map(|v| v.actual.clone()).collect();
        assert_eq!(shown, [json!(7), json!(3)]);
    }
}

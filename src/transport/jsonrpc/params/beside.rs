//! Members beside `params` in calls that begin a run: `metadata.stream` and `configuration`.
//!
//! The protocol leaves `metadata` open, so what is not known there is ignored. `configuration` says how a
//! call is carried out: a wish in it that nobody reads would be a promise that nobody keeps.
//! spec: interface / A2A Protocol Methods

use super::super::methods::webhooks::callback;
use super::super::stream_request::STREAM;
use crate::application::api::webhooks::Callback;
use serde_json::{Map, Value};
use taskledger_domain::Violation;
use taskledger_domain::limits::VIOLATIONS_MAX;
use taskledger_domain::suggestion::known_member;

/// The member of a call.
const CONFIGURATION: &str = "configuration";

/// Where the caller wants to be told of the run, if it says so.
///
/// # Errors
/// Every violation; the paths begin at the call.
pub fn read(
    metadata: Option<&Map<String, Value>>,
    configuration: Option<&Value>,
) -> Result<Option<Callback>, Vec<Violation>> {
    let mut faults = Vec::new();
    // A boolean was taken out of the call before.
    let stream = metadata.and_then(|metadata| metadata.get(STREAM));
    if let Some(stream) = stream.filter(|stream| !stream.is_null() && !stream.is_boolean()) {
        let path = ["metadata".into(), STREAM.into()];
        faults.push(Violation::new(
            &path,
            "not a boolean",
            "true or false",
            stream,
        ));
    }
    match configuration {
        None | Some(Value::Null) => {}
        Some(Value::Object(members)) => {
            let unknown = members.keys().filter(|name| *name != callback::MEMBER);
            faults.extend(unknown.take(VIOLATIONS_MAX).map(|name| {
                let path = [CONFIGURATION.into(), name.as_str().into()];
                let expected = known_member(name, &[callback::MEMBER]);
                // It may be a secret under a name that we do not know.
                Violation::new(&path, "unknown member", expected, &Value::Null)
            }));
        }
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_))) => {
            let expected = format!("an object with `{}`", callback::MEMBER);
            faults.push(Violation::of(
                CONFIGURATION,
                "not an object",
                expected,
                other,
            ));
        }
    }
    match callback::read(configuration) {
        Ok(callback) if faults.is_empty() => Ok(callback),
        Ok(_) => Err(faults),
        Err(more) => {
            faults.extend(more);
            Err(faults)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(metadata: Value, configuration: Value) -> Vec<(String, String)> {
        let read = read(metadata.as_object(), Some(&configuration));
        super::super::testing::faults(read)
    }

    fn fault(field: &str, reason: &str) -> (String, String) {
        (field.to_owned(), reason.to_owned())
    }

    #[test]
    fn what_asks_for_nothing_is_taken() {
        for metadata in [json!({}), json!({"stream": null, "user_id": 7, "x": {}})] {
            for configuration in [json!({}), json!(null), json!({callback::MEMBER: null})] {
                assert_eq!(found(metadata.clone(), configuration), []);
            }
        }
        assert!(read(None, None).is_ok_and(|callback| callback.is_none()));
    }

    #[test]
    fn a_wish_that_nobody_would_keep_is_refused_with_all_others() {
        let stream = fault("stream", "not a boolean");
        assert_eq!(
            found(
                json!({"stream": "maybe"}),
                json!({"pushNotificationConfig": {"url": "u"}, callback::MEMBER: {}})
            ),
            [
                stream.clone(),
                fault("pushNotificationConfig", "unknown member"),
                fault("url", "missing"),
            ]
        );
        for configuration in [json!(7), json!([]), json!("push"), json!(true)] {
            assert_eq!(
                found(json!({"stream": 1}), configuration),
                [stream.clone(), fault("configuration", "not an object")]
            );
        }
    }
}

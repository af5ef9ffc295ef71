//! The fingerprint of a call as earlier builds kept it under an idempotency key; its records live for a day,
//! and are compared by it. Newer records have one that the application takes of the typed request.
//!
//! Equal if and only if method, parameters and configuration are equal, whatever the
//! order of members and the white space in which they were sent.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::sync::Arc;

/// SHA-256 of method, canonical parameters and configuration in lower-case hex; no configuration is
/// the same as none at all. Cost: O(size).
pub(super) fn fingerprint(
    method: &str,
    params: &Map<String, Value>,
    configuration: Option<&Value>,
) -> Arc<str> {
    let mut hash = Sha256::new();
    string(method, &mut hash);
    object(params, &mut hash);
    if let Some(configuration) = configuration.filter(|c| !c.is_null()) {
        value(configuration, &mut hash);
    }
    let mut hex = String::with_capacity(64);
    for byte in hash.finalize() {
        write!(hex, "{byte:02x}").expect("a string can always be written to");
    }
    Arc::from(hex)
}

/// Every value begins with a tag and its length, so that no two values have the same bytes.
/// Recursion is as deep as the parser allowed: 128.
fn value(value: &Value, hash: &mut Sha256) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(b) => hash.update(if *b { b"t" } else { b"f" }),
        Value::Number(number) => {
            let text = number.to_string();
            hash.update(b"#");
            sized(text.as_bytes(), hash);
        }
        Value::String(text) => string(text, hash),
        Value::Array(items) => {
            hash.update(b"[");
            hash.update((items.len() as u64).to_le_bytes());
            for item in items {
                self::value(item, hash);
            }
        }
        Value::Object(map) => object(map, hash),
    }
}

fn object(map: &Map<String, Value>, hash: &mut Sha256) {
    // Sorted here, not by trust in the map: a dependency may switch it to insertion order.
    let mut members: Vec<_> = map.iter().collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    hash.update(b"{");
    hash.update((members.len() as u64).to_le_bytes());
    for (name, member) in members {
        string(name, hash);
        value(member, hash);
    }
}

fn string(text: &str, hash: &mut Sha256) {
    hash.update(b"s");
    sized(text.as_bytes(), hash);
}

fn sized(bytes: &[u8], hash: &mut Sha256) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::fingerprint;
    use serde_json::{Map, Value};

    fn of(method: &str, params: &str) -> String {
        let map: Map<String, Value> = serde_json::from_str(params).unwrap();
        fingerprint(method, &map, None).to_string()
    }

    #[test]
    fn order_of_members_and_white_space_do_not_matter() {
        assert_eq!(
            of("m", r#"{"a":1,"b":{"c":[1,2],"d":null}}"#),
            of("m", r#"{ "b" : {"d":null, "c":[1, 2]}, "a":1 }"#)
        );
    }

    #[test]
    fn the_configuration_matters_and_none_is_none() {
        let with = |configuration: Option<Value>| {
            fingerprint("m", &Map::new(), configuration.as_ref()).to_string()
        };
        assert_eq!(with(None), with(Some(Value::Null)));
        assert_ne!(with(None), with(Some(serde_json::json!({}))));
        let (a, b) = (
            serde_json::json!({"url": "a"}),
            serde_json::json!({"url": "b"}),
        );
        assert_ne!(with(Some(a)), with(Some(b)));
    }

    #[test]
    fn method_and_every_value_matter() {
        let all = [
            of("m", r#"{"a":1}"#),
            of("n", r#"{"a":1}"#),
            of("m", r#"{"a":"1"}"#),
            of("m", r#"{"a":[1]}"#),
            of("m", r#"{"a":null}"#),
            of("m", r#"{"a":{}}"#),
            of("m", r#"{"a":[]}"#),
            of("m", r#"{"ab":1}"#),
            of("m", r#"{}"#),
        ];
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(all[0].len(), 64);
    }
}

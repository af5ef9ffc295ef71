//! The canonical text of a document, and its digest: equal for equal documents.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// SHA-256 of a value's canonical JSON, in lower-case hexadecimal digits. Cost: O(size); recursion: the value's levels.
pub(crate) fn of(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    let digest = Sha256::digest(text.as_bytes());
    digest
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("memory can be written to");
            hex
        })
}

/// Keys are sorted here, whatever order the map of `serde_json` was built with.
fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                text.push_str(if i > 0 { "," } else { "" });
                write_value(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => write_map(members, text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            write!(text, "{value}").expect("memory can be written to");
        }
    }
}

fn write_map(members: &Map<String, Value>, text: &mut String) {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by_key(|(key, _)| *key);
    text.push('{');
    for (i, (key, value)) in sorted.into_iter().enumerate() {
        text.push_str(if i > 0 { "," } else { "" });
        write!(text, "{}:", Value::from(key.as_str())).expect("memory can be written to");
        write_value(value, text);
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use super::of;
    use serde_json::json;

    #[test]
    fn the_hash_is_that_of_the_text_with_sorted_keys() {
        let hash = of(&json!({"b": [1, "x"], "a": null}));
        // printf '{"a":null,"b":[1,"x"]}' | sha256sum
        let expected = "c22cb7b0353770e2b38094af641143ebf008ddf2d1f2dedb9d875996fcf245fa";
        assert_eq!(hash, expected);
    }
}

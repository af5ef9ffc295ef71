//! Answers without what differs each time: ids become numbers in the order in which they are first
//! seen, times and positions become words.

use serde_json::{Map, Value};
use std::collections::HashMap;

/// Characters of an id.
const ID_CHARS: usize = 36;
/// Members that hold a place in the log, or a duration.
const NUMBERS: [&str; 4] = ["position", "at_position", "duration_ms", "since"];
/// What sockets name behind the methods that all doors have.
const METHODS_OF_SOCKETS: &str = ", subscribe, unsubscribe, work";
/// What stands before the executors of the node that answers: nodes may have others.
const EXECUTORS: &str = "the name of an executor: ";
/// Members whose text only the server reads.
const OPAQUE: [&str; 3] = ["cursor", "next_cursor", "last_event_id"];

/// Replaces, for one case.
pub(crate) struct Normal {
    user: String,
    ids: HashMap<String, usize>,
}

impl Normal {
    pub(crate) fn new(user: &str) -> Self {
        Self {
            user: user.to_owned(),
            ids: HashMap::new(),
        }
    }

    pub(crate) fn value(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                // Ids as names come in an order of chance.
                let members = members.into_iter();
                let mut members: Vec<_> = members.map(|(name, v)| (self.text(&name), v)).collect();
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                let members = members.into_iter().map(|(name, value)| {
                    let value = match name.as_str() {
                        name if NUMBERS.contains(&name) && value.is_number() => "<n>".into(),
                        name if OPAQUE.contains(&name) && value.is_string() => "<opaque>".into(),
                        _ => self.value(value),
                    };
                    (name, value)
                });
                Value::Object(members.collect::<Map<_, _>>())
            }
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain,
        }
    }

    fn text(&mut self, text: &str) -> String {
        let text = text.replace(&self.user, "<user>");
        let text = text.strip_suffix(METHODS_OF_SOCKETS).unwrap_or(&text);
        let text = match text.find(EXECUTORS) {
            Some(at) => &text[..at + EXECUTORS.len()],
            None => text,
        };
        let words: Vec<_> = text.split(' ').collect();
        let replaced = words.iter().enumerate().map(|(at, word)| {
            let bare = word.trim_end_matches([',', ';', '.', ':']);
            let is_duration = words.get(at + 1).is_some_and(|next| next.starts_with("ms"));
            if chrono::DateTime::parse_from_rfc3339(bare).is_ok() {
                word.replace(bare, "<time>")
            } else if is_duration && bare.parse::<f64>().is_ok() {
                word.replace(bare, "<n>")
            } else {
                self.without_ids(word)
            }
        });
        replaced.collect::<Vec<_>>().join(" ")
    }

    fn without_ids(&mut self, text: &str) -> String {
        let mut rest = text.to_owned();
        let mut replaced = String::new();
        while !rest.is_empty() {
            if let Some(id) = rest.get(..ID_CHARS).filter(|id| is_id(id)) {
                let next = self.ids.len() + 1;
                let number = *self.ids.entry(id.to_owned()).or_insert(next);
                replaced.push_str(&format!("<id {number}>"));
                rest.drain(..ID_CHARS);
            } else {
                replaced.push(rest.remove(0));
            }
        }
        replaced
    }
}

fn is_id(text: &str) -> bool {
    text.chars().enumerate().all(|(at, c)| match at {
        8 | 13 | 18 | 23 => c == '-',
        _ => c.is_ascii_hexdigit(),
    })
}

#[test]
fn ids_times_and_positions_are_replaced_and_nothing_else() {
    let (one, two) = (
        "0f8fad5b-d9cb-469f-a165-70867728950e",
        "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    );
    let told = serde_json::json!({
        "id": one, "other": format!("`{two}` waits for `{one}`"), "at": "2026-01-15T10:30:00.5Z",
        "position": 17, "user_id": "u-1", "count": 17, "name": "cafe",
        "message": "ended at 2026-01-15T10:30:00Z, after 3.5 ms",
    });
    let expected = serde_json::json!({
        "id": "<id 1>", "other": "`<id 2>` waits for `<id 1>`", "at": "<time>",
        "position": "<n>", "user_id": "<user>", "count": 17, "name": "cafe",
        "message": "ended at <time>, after <n> ms",
    });
    let mut normal = Normal::new("u-1");
    assert_eq!(normal.value(serde_json::json!(one)), "<id 1>");
    assert_eq!(normal.value(told), expected);
}

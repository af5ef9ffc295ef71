//! What JSON-RPC demands of a body, told from its members as they stand in the text.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;

pub(super) enum Body<'a> {
    /// No UTF-8, no JSON, or nested too deeply.
    NotJson,
    /// JSON with a number that no value can hold.
    OutOfRange,
    /// An array, by elements.
    Batch(Vec<&'a RawValue>),
    /// Anything else.
    Single(&'a RawValue),
}

/// What an element is answered.
#[derive(Debug)]
pub(super) enum Expected<'a> {
    /// It is a notification.
    Silence,
    /// -32600 to this id.
    Invalid { id: &'a str },
    /// Whatever the method says, to this id.
    Called { id: &'a str, method: String },
}

pub(super) fn read(bytes: &[u8]) -> Body<'_> {
    // RFC 8259, 8.1
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Body::NotJson;
    };
    if let Err(error) = serde_json::from_str::<Value>(text) {
        let range = error.to_string().starts_with("number out of range");
        return if range {
            Body::OutOfRange
        } else {
            Body::NotJson
        };
    }
    match serde_json::from_str::<Vec<&RawValue>>(text) {
        Ok(elements) => Body::Batch(elements),
        Err(_) => Body::Single(serde_json::from_str(text).expect("it was read as a value")),
    }
}

/// Whether nothing in the body is to be answered.
pub(super) fn silent(bytes: &[u8]) -> bool {
    match read(bytes) {
        Body::NotJson => false,
        Body::OutOfRange => false,
        Body::Single(element) => matches!(judge(element), Expected::Silence),
        Body::Batch(elements) => {
            let mut all = elements.iter().map(|e| judge(e));
            !elements.is_empty() && all.all(|e| matches!(e, Expected::Silence))
        }
    }
}

/// The members of an object with those of equal names, in order.
struct Members<'a>(Vec<Member<'a>>);

/// A name and the text of its value.
pub(super) struct Member<'a> {
    name: String,
    text: &'a str,
}

impl Member<'_> {
    /// Whether this is the text of a string, a number or null.
    pub(super) fn is_id(text: &str) -> bool {
        !matches!(text.bytes().next(), None | Some(b'[' | b'{' | b't' | b'f'))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Vec<Member<'de>>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    let text = value.get();
                    members.push(Member { name, text });
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Each).map(Self)
    }
}

/// What the rules say of one element.
pub(super) fn judge(element: &RawValue) -> Expected<'_> {
    let Ok(Members(members)) = serde_json::from_str(element.get()) else {
        return Expected::Invalid { id: "null" };
    };
    let all = |name: &str| -> Vec<&str> {
        let named = members.iter().filter(|m| m.name == name);
        named.map(|m| m.text).collect()
    };
    let starts = |text: &str, with: &[char]| text.starts_with(with);
    let (ids, methods) = (all("id"), all("method"));
    let method = methods
        .first()
        .and_then(|m| serde_json::from_str::<String>(m).ok());
    let version = all("jsonrpc");
    let fine = [
        version.len() == 1 && serde_json::from_str::<String>(version[0]).is_ok_and(|v| v == "2.0"),
        methods.len() == 1 && method.is_some(),
        ids.len() <= 1 && ids.iter().all(|id| Member::is_id(id)),
        all("params").len() <= 1 && all("params").iter().all(|p| starts(p, &['{', '['])),
        all("metadata").len() <= 1 && all("metadata").iter().all(|m| starts(m, &['{', 'n'])),
        all("configuration").len() <= 1,
    ];
    let id = match ids.as_slice() {
        [id] if Member::is_id(id) => id,
        _ => "null",
    };
    match method {
        Some(_) if fine.iter().all(|f| *f) && ids.is_empty() => Expected::Silence,
        Some(method) if fine.iter().all(|f| *f) => Expected::Called { id, method },
        Some(_) | None => Expected::Invalid { id },
    }
}

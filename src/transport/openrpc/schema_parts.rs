//! Building blocks of JSON Schemas.

use serde_json::{Value, json};

/// A reference to a component.
pub(in crate::transport) fn at(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// An object with these members, all of them always there.
pub(in crate::transport) fn object(members: Value) -> Value {
    let names: Vec<&String> = members
        .as_object()
        .map(|members| members.keys().collect())
        .unwrap_or_default();
    json!({"type": "object", "required": names, "properties": members})
}

/// The same with members that are not always there.
pub(in crate::transport) fn with_optional(mut object: Value, members: Value) -> Value {
    if let (Some(Value::Object(all)), Value::Object(members)) =
        (object.get_mut("properties"), members)
    {
        all.extend(members);
    }
    object
}

pub(in crate::transport) fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// A text that is not always there.
pub(in crate::transport) fn text_or_null(description: &str) -> Value {
    json!({"type": ["string", "null"], "description": description})
}

/// One warning about a run.
pub(in crate::transport) fn warning() -> Value {
    with_optional(
        object(json!({
            "field": text("The name of what it is about: a key, a secret."),
            "reason": text("Why it is probably a mistake."),
        })),
        json!({
            "suggestion": text("How to mend it."),
            "command": text("The command that mends it."),
        }),
    )
}

/// Warnings in an answer that has none if there are none.
pub(in crate::transport) fn warnings() -> Value {
    json!({"warnings": {"type": "array", "items": warning(), "description": "What is probably a mistake; absent if there is none."}})
}

/// A list of texts.
pub(in crate::transport) fn names(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

/// A time of which its name says enough.
pub(in crate::transport) fn date_time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

pub(in crate::transport) fn time(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

/// A time that is not always known.
pub(in crate::transport) fn time_or_null(description: &str) -> Value {
    json!({"type": ["string", "null"], "format": "date-time", "description": description})
}

/// A count, from 0.
pub(in crate::transport) fn count(description: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": description})
}

/// A number, from 1.
pub(in crate::transport) fn number(description: &str) -> Value {
    json!({"type": "integer", "minimum": 1, "description": description})
}

/// The members of both objects.
pub(in crate::transport) fn merged(mut one: Value, other: Value) -> Value {
    if let (Some(members), Value::Object(more)) = (one.as_object_mut(), other) {
        members.extend(more);
    }
    one
}

/// A page of a list, under its name.
pub(in crate::transport) fn page(name: &str, rows: Value) -> Value {
    let page = object(json!({name: {"type": "array", "items": rows}}));
    let more = json!({"next_cursor": {"type": "string", "minLength": 1, "description": "For the next page, when there is one."}});
    with_optional(page, more)
}

//! What schemas are put together from.

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

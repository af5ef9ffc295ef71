//! The one place where declarations of types are judged.

use serde_json::{Map, Value};

/// What is wrong with a declared type, which may name members of `types`. So far only its form is looked at: a text,
/// a map or a list; what a type expression means is decided where values are checked.
pub(crate) fn check_types(
    _types: Option<&Map<String, Value>>,
    declaration: &Value,
) -> Option<String> {
    match declaration {
        Value::String(_) | Value::Object(_) | Value::Array(_) => None,
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            Some("a type must be a type name, a map or a list".to_owned())
        }
    }
}

/// Whether an output with this declaration may be absent. spec: RFC-0024 1.3
pub(crate) fn is_optional(declaration: &Value) -> bool {
    declaration.get("required") == Some(&Value::Bool(false))
}

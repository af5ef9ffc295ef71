//! The one place where declarations of types are judged, by the rules that check values.

use serde_json::{Map, Value};
use taskledger_domain::contract::{FormFault, Type, Types};

/// The types of a document by name, compiled once.
pub(crate) struct Named(Option<Types>);

impl Named {
    /// Compiles `types`. When that has faults, nothing that may name them is looked at, so that one mistake is told once.
    pub(crate) fn of(types: Option<&Map<String, Value>>) -> (Self, Vec<FormFault>) {
        let types = types.map(|types| Value::from(types.clone()));
        match Types::parse(types.as_ref()) {
            Ok(types) => (Self(Some(types)), Vec::new()),
            Err(faults) => (Self(None), faults),
        }
    }

    /// Compiles a declared output or input type; `None` while `types` has faults.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn type_of(&self, declaration: &Value) -> Result<Option<Type>, Vec<FormFault>> {
        let types = self.0.as_ref();
        let compiled = types.map(|types| types.type_of(without_modifier(declaration)));
        compiled.transpose()
    }
}

/// The type in `{type, required}`. spec: RFC-0024 1.3
fn without_modifier(declaration: &Value) -> &Value {
    let modifier = declaration.as_object().filter(|map| {
        let known = |key: &String| key == "type" || key == "required";
        map.keys().all(known)
    });
    let inner = modifier.and_then(|map| map.get("type"));
    inner.unwrap_or(declaration)
}

/// One fault in words.
pub(crate) fn reason(fault: &FormFault) -> String {
    let FormFault {
        path,
        reason,
        expected,
        ..
    } = fault;
    match path.join(".") {
        place if place.is_empty() => format!("{reason}: expected {expected}"),
        place => format!("{reason} at `{place}`: expected {expected}"),
    }
}

/// Whether an output with this declaration may be absent. spec: RFC-0024 1.3
pub(crate) fn is_optional(declaration: &Value) -> bool {
    declaration.get("required") == Some(&Value::Bool(false))
}

//! Checks declarations of types, by the same rules that check values.

use serde_json::{Map, Value};
use taskledger_domain::contract::{FormFault, Type, Types};

use crate::members::Members;
use crate::node::{Entry, short};
use crate::path::Path;

/// The types of a document by name, compiled once.
pub(crate) struct Named(Option<Types>);

impl Named {
    /// Compiles `types`. What needs a type with a fault is not compared with anything, so that one mistake is told
    /// once.
    pub(crate) fn of(types: Option<&Map<String, Value>>) -> (Self, Vec<FormFault>) {
        let types = types.map(|types| Value::from(types.clone()));
        let (types, faults) = Types::parse_partly(types.as_ref());
        (Self(types), faults)
    }

    /// Compiles the type of an input, or of an output without faults; `None` while `types` has faults that it needs
    /// mended.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn type_of(&self, declaration: &Value) -> Result<Option<Type>, Vec<FormFault>> {
        let types = self.0.as_ref();
        let compiled = types.map(|types| types.type_of(without_modifier(declaration)));
        Ok(compiled.transpose()?.filter(|of| !of.rests_on_fault()))
    }

    /// Compiles a member of `outputs`; `None` as for [`Named::type_of`].
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn output_of(
        &self,
        key: &str,
        declaration: &Value,
    ) -> Result<Option<Type>, Vec<FormFault>> {
        let types = self.0.as_ref();
        let compiled = types.map(|types| types.output_of(key, declaration));
        let compiled = compiled.transpose()?.map(|(of, _)| of);
        Ok(compiled.filter(|of| !of.rests_on_fault()))
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

/// Reports what is wrong with a declaration, each fault at its own place. `path` and `entry`: the declaration.
/// `skipped`: steps that lead to it.
pub(crate) fn report(
    members: &Members<'_>,
    path: &Path,
    entry: &Entry,
    faults: Vec<FormFault>,
    skipped: usize,
) {
    for fault in faults {
        let steps = fault.path.iter().skip(skipped).map(String::as_str);
        let place = entry.place(path, steps);
        let found = match &fault.found {
            Value::Null => place.node.shown(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                format!("`{}`", short(&fault.found.to_string()))
            }
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "a map".to_owned(),
        };
        let reason = format!(
            "{}: expected {}, found {found}",
            fault.reason, fault.expected
        );
        let any = place.node.is_null() && fault.reason == "Invalid type";
        let any = any.then_some("write `any` for a value of any type");
        // A named type is told at its name.
        let is_name = skipped > 0 && fault.path.len() == skipped + 1;
        let at = if is_name { place.key } else { place.at };
        let told = members.fault(&place.path, at, reason);
        members.faults.error(told.suggest(any));
    }
}

/// Whether an output with this declaration may be absent. spec: RFC-0024 1.3
pub(crate) fn is_optional(declaration: &Value) -> bool {
    declaration.get("required") == Some(&Value::Bool(false))
}

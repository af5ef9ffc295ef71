//! Checks an answer against a stored question. It was read with all its faults when it was asked, maybe by an earlier
//! version with other rules: here is read no more than an answer needs, and nothing is refused.

use super::{Choice, Expected};
use crate::contract::{Type, Types};
use serde_json::{Map, Value, json};

/// `None`: no version has asked this.
pub(super) fn read(members: &Map<String, Value>) -> Option<Expected> {
    match members
        .get("response_type")
        .map_or(Some("text"), Value::as_str)?
    {
        "text" => Some(Expected::Text),
        "confirm" => Some(Expected::Confirm),
        "choice" => Some(Expected::Choice(choices(members.get("choices")?)?)),
        "form" => form(members).map(Expected::Form),
        _ => None,
    }
}

fn choices(choices: &Value) -> Option<Vec<Choice>> {
    let choice = |item: &Value| {
        let label = item.get("label").and_then(Value::as_str);
        Some(Choice {
            value: item.get("value")?.clone(),
            label: label.map(str::to_owned),
        })
    };
    choices.as_array()?.iter().map(choice).collect()
}

/// Earlier versions took any type for `fields`, and anything for `schema`.
fn form(members: &Map<String, Value>) -> Option<Type> {
    let types = Types::stored(None).ok()?;
    match (members.get("schema"), members.get("fields")) {
        (Some(schema), _) => types.type_of(&json!({"schema": schema})).ok(),
        (None, Some(fields)) => {
            let shape = types.shape_of(fields.as_object()?);
            shape.or_else(|_| types.type_of(fields)).ok()
        }
        (None, None) => None,
    }
}

//! A parameter of a method, as the document describes it.

use crate::transport::jsonrpc::reader::Question;
use serde_json::{Value, json};

/// The content descriptor of the parameter that a question asks for.
pub(super) fn param(question: &Question) -> Value {
    let mut schema = question.schema.clone();
    if let Some(default) = &question.default {
        schema["default"] = default.clone();
    }
    json!({
        "name": question.name,
        "description": question.description,
        "required": question.required,
        "schema": schema,
    })
}

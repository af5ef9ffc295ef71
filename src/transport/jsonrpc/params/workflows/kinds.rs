//! Kinds of values that only workflows have.

use super::super::super::reader::{Fault, Kind, Reader, Refusal};
use crate::application::api::workflows::Document;
use serde_json::{Map, Value, json};

/// A document: its text, or JSON in place.
pub(super) struct DocumentKind;

impl Kind for DocumentKind {
    type Out = Document;

    fn schema(&self) -> Value {
        json!({"type": ["string", "object"]})
    }

    fn parse(&self, value: &Value) -> Result<Document, Refusal> {
        match value {
            Value::String(text) => Ok(Document::Text(text.clone())),
            Value::Object(_) => Ok(Document::Json(value.clone())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                let expected =
                    "the text of a document in YAML or JSON, or the document as an object";
                Err(Fault::new("neither a string nor an object", expected).into())
            }
        }
    }
}

/// An object with any members.
pub(super) struct ObjectKind;

impl Kind for ObjectKind {
    type Out = Map<String, Value>;

    fn schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn parse(&self, value: &Value) -> Result<Map<String, Value>, Refusal> {
        let object = value.as_object().cloned();
        object.ok_or_else(|| Fault::new("not an object", "a JSON object").into())
    }
}

/// The document of a call.
pub(super) fn document(reader: &mut Reader<'_>) -> Option<Document> {
    reader.required(
        "document",
        DocumentKind,
        "The workflow document: its text in YAML 1.2 or JSON, or the document itself as an object.",
    )
}

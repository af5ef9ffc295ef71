//! Kinds of values that only workflows have, and members that several of their methods take.

use super::super::super::reader::{
    BOOLEAN, Fault, Integer, Kind, OwnLabels, Reader, Refusal, integer, text,
};
use crate::application::api::workflows::{Document, VERSIONS_MAX};
use crate::transport::jsonrpc::params::owner::OwnerKind;
use crate::transport::jsonrpc::params::work::kinds::NameText;
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_domain::Payload;
use taskledger_domain::limits::KEY_CHARS_MAX;
use taskledger_domain::task::Labels;

/// Entries in a page unless the caller says otherwise.
const LIMIT_DEFAULT: u32 = 100;
/// Entries in a page at most.
const LIMIT_MAX: u64 = 1000;

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
            Value::Object(members) => Ok(Document::Json(Payload::from_map(members))),
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
    type Out = Payload;

    fn schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn parse(&self, value: &Value) -> Result<Payload, Refusal> {
        let object = value.as_object().map(Payload::from_map);
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

/// Whether warnings are errors.
pub(super) fn strict(reader: &mut Reader<'_>) -> bool {
    reader.with_default(
        "strict",
        BOOLEAN,
        false,
        "Whether unknown keys and what is probably a mistake are errors.",
    )
}

/// What the run is started with.
pub(super) fn trigger(reader: &mut Reader<'_>) -> Payload {
    let given = reader.optional(
        "trigger",
        ObjectKind,
        "What the run is started with: `$trigger.key` in the document names members of it.",
    );
    given.unwrap_or_else(Payload::empty)
}

/// Reads the user that will own the run.
pub(super) fn user_id(reader: &mut Reader<'_>) -> Option<String> {
    reader.optional(
        "user_id",
        text(KEY_CHARS_MAX),
        "Whose run it is; without it the caller's.",
    )
}

/// What the run is found by.
pub(super) fn labels(reader: &mut Reader<'_>) -> Labels {
    let about = "Labels of the root of the run.";
    reader
        .optional("labels", OwnLabels, about)
        .unwrap_or_default()
}

/// Reads the owner of documents.
pub(super) fn owner(reader: &mut Reader<'_>) -> Option<Arc<str>> {
    reader.optional(
        "owner",
        OwnerKind,
        "The owner of the workflows; needs `users:any` unless it is the caller. Empty: no owner; this is also the default without authentication.",
    )
}

/// Reads the name of a saved document.
pub(super) fn name(reader: &mut Reader<'_>) -> Option<Arc<str>> {
    reader.required(
        "name",
        NameText,
        "The workflow: `info.name` of its document.",
    )
}

/// The number of a version.
pub(super) const fn version() -> Integer {
    integer(1..=VERSIONS_MAX as u64)
}

/// Which version the caller takes for the newest.
pub(super) fn expected_version(reader: &mut Reader<'_>, about: &'static str) -> Option<u32> {
    let range = 0..=u64::from(VERSIONS_MAX);
    let version = reader.optional("expected_version", integer(range), about)?;
    u32::try_from(version).ok()
}

/// Entries of a page.
pub(super) fn limit(reader: &mut Reader<'_>) -> u32 {
    let about = "Entries in the page, at most.";
    let limit = reader.with_default(
        "limit",
        integer(1..=LIMIT_MAX),
        u64::from(LIMIT_DEFAULT),
        about,
    );
    u32::try_from(limit).unwrap_or(LIMIT_DEFAULT)
}

//! `workflows.schemas`.

use super::super::super::reader::{Fault, Parameters, Reader, text};
use super::super::work::kinds::NameText;
use super::kinds::{DocumentKind, owner, version};
use crate::application::api::workflows::{Kept, Which};
use serde_json::Value;
use taskledger_domain::Violation;
use taskledger_domain::limits::NAME_CHARS_MAX;

/// Of what.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// The document.
    pub which: Which,
    /// The phase; default: all.
    pub phase: Option<String>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let document = reader.optional(
            "document",
            DocumentKind,
            "The workflow document: its text in YAML 1.2 or JSON, or the document itself as an object.",
        );
        let about = "A saved workflow, instead of `document`: `info.name` of its document.";
        let name = reader.optional("name", NameText, about);
        let about = "The version of `name`; without it the newest.";
        let version = reader.optional("version", version(), about);
        let owner = owner(&mut reader);
        let about = "The phase; without it all of them.";
        let phase = reader.optional("phase", text(NAME_CHARS_MAX), about);
        let version = version.and_then(|version| u32::try_from(version).ok());
        let which = match (document, name) {
            (Some(_), Some(name)) => {
                let fault = Fault::new("given beside `document`", "only one of them");
                reader.report("name", fault, &Value::from(&*name));
                None
            }
            (Some(document), None) => Some(Which::Given(document)),
            (None, Some(name)) => Some(Which::Kept(Kept { owner, name }, version)),
            (None, None) => {
                let fault = Fault::new("missing", "a document, or `name` of one that is kept");
                reader.report("document", fault, &Value::Null);
                None
            }
        };
        reader.finish(|| {
            Some(Self {
                which: which?,
                phase,
            })
        })
    }
}

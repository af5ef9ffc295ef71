//! `workflows.diff`.

use super::super::super::reader::{Fault, Parameters, Reader};
use super::kinds::{DocumentKind, name, owner, version};
use crate::application::api::workflows::{Kept, Newer};
use serde_json::Value;
use taskledger_domain::Violation;

/// What to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Name and owner of the document.
    pub kept: Kept,
    /// The older version, if that was said.
    pub from: Option<u32>,
    /// What it is compared with.
    pub newer: Newer,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let about =
            "The older version; without it the one before `to`, or the newest with `document`.";
        let from = reader.optional("from", version(), about);
        let about = "The newer version; without it the newest.";
        let to = reader.optional("to", version(), about);
        let document = reader.optional(
            "document",
            DocumentKind,
            "A document to compare with, instead of `to`: its text in YAML 1.2 or JSON, or the document itself as an object.",
        );
        if let (Some(to), Some(_)) = (to, &document) {
            let fault = Fault::new("given beside `document`", "only one of them");
            reader.report("to", fault, &Value::from(to));
        }
        let owner = owner(&mut reader);
        let number = |version: u64| u32::try_from(version).ok();
        reader.finish(|| {
            Some(Self {
                kept: Kept { owner, name: name? },
                from: from.and_then(number),
                newer: match document {
                    Some(document) => Newer::Document(document),
                    None => Newer::Version(to.and_then(number)),
                },
            })
        })
    }
}

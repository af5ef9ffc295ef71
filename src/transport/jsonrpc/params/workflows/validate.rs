//! `workflows.validate`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::{document, strict};
use crate::application::api::workflows::Document;
use taskledger_domain::Violation;

/// What to check.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// The document.
    pub document: Document,
    /// Most warnings are errors.
    pub strict: bool,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let document = document(&mut reader);
        let strict = strict(&mut reader);
        reader.finish(|| {
            Some(Self {
                document: document?,
                strict,
            })
        })
    }
}

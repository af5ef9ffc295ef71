//! `workflows.save`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::{document, owner, strict};
use crate::application::api::workflows::Document;
use std::sync::Arc;
use taskledger_domain::Violation;

/// What to keep.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// The document.
    pub document: Document,
    /// Most warnings are errors.
    pub strict: bool,
    /// Whose, if that was said.
    pub owner: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let document = document(&mut reader);
        let strict = strict(&mut reader);
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                document: document?,
                strict,
                owner,
            })
        })
    }
}

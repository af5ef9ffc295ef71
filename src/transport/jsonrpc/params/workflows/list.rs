//! `workflows.list`.

use super::super::super::reader::{Parameters, Reader};
use super::super::work::kinds::NameText;
use super::kinds::{limit, owner};
use std::sync::Arc;
use taskledger_domain::Violation;

/// Which documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Names in the page, at most.
    pub limit: u32,
    /// The last name of the page before.
    pub after: Option<Arc<str>>,
    /// Whose, if that was said.
    pub owner: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let limit = limit(&mut reader);
        let after = reader.optional(
            "after",
            NameText,
            "`next_after` of the previous page: only names after this one.",
        );
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                limit,
                after,
                owner,
            })
        })
    }
}

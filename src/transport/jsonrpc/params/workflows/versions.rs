//! `workflows.versions`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::{limit, name, owner, version};
use crate::application::api::workflows::Kept;
use taskledger_domain::Violation;

/// Which events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Name and owner of the document.
    pub kept: Kept,
    /// Events in the page, at most.
    pub limit: u32,
    /// The last version of the page before.
    pub before: Option<u32>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let limit = limit(&mut reader);
        let about = "`next_before` of the page before: versions before this one.";
        let before = reader.optional("before", version(), about);
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                kept: Kept { owner, name: name? },
                limit,
                before: before.and_then(|before| u32::try_from(before).ok()),
            })
        })
    }
}

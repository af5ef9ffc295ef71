//! `workflows.delete`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::{expected_version, name, owner};
use crate::application::api::workflows::Kept;
use taskledger_domain::Violation;

/// Which document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Name and owner.
    pub kept: Kept,
    /// The newest version, if it may be no other.
    pub expected_version: Option<u32>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let owner = owner(&mut reader);
        let about = "The newest version that the caller expects: if another version is the newest, nothing is deleted.";
        let expected_version = expected_version(&mut reader, about);
        reader.finish(|| {
            Some(Self {
                kept: Kept { owner, name: name? },
                expected_version,
            })
        })
    }
}

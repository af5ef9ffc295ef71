//! `workflows.get`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::{name, owner, version};
use crate::application::api::workflows::Kept;
use taskledger_domain::Violation;

/// Which document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Its name and owner.
    pub kept: Kept,
    /// Which version; absent for the newest.
    pub version: Option<u32>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let version = reader.optional("version", version(), "The version; without it the newest.");
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                kept: Kept { owner, name: name? },
                version: version.and_then(|version| u32::try_from(version).ok()),
            })
        })
    }
}

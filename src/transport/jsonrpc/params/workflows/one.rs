//! `workflows.delete`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::{name, owner};
use crate::application::api::workflows::Kept;
use taskledger_domain::Violation;

/// Which document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params(pub Kept);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let owner = owner(&mut reader);
        reader.finish(|| Some(Self(Kept { owner, name: name? })))
    }
}

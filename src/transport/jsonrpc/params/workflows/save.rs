//! `workflows.save`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::{document, expected_version, owner, strict};
use crate::application::api::workflows::SaveWorkflow;
use taskledger_domain::Violation;

/// What to keep.
#[derive(Debug, Clone, PartialEq)]
pub struct Params(pub SaveWorkflow);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let document = document(&mut reader);
        let strict = strict(&mut reader);
        let owner = owner(&mut reader);
        let about = "The newest version that the caller expects, 0 for none: if another version is the newest, nothing is saved, unless it is equal to the document.";
        let expected_version = expected_version(&mut reader, about);
        reader.finish(|| {
            Some(Self(SaveWorkflow {
                document: document?,
                strict,
                owner,
                expected_version,
            }))
        })
    }
}

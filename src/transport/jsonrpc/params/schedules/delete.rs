//! `schedules.delete`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::{expected_version, named};
use crate::application::api::schedules::Named;
use taskledger_domain::Violation;

/// Which schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Name and owner.
    pub named: Named,
    /// Its version, if it may be no other.
    pub expected_version: Option<u32>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let named = named(&mut reader);
        let about = "The version that the caller expects: if the schedule has another version, nothing is deleted.";
        let expected_version = expected_version(&mut reader, about);
        reader.finish(|| {
            Some(Self {
                named: named?,
                expected_version,
            })
        })
    }
}

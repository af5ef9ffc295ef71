//! `schedules.update`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::{expected_version, name, owner};
use super::what::changes;
use crate::application::api::schedules::{Named, ScheduleChanges};
use taskledger_domain::Violation;

/// What to change.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Name and owner.
    pub named: Named,
    /// What becomes different.
    pub changes: ScheduleChanges,
    /// Its version, if it may be no other.
    pub expected_version: Option<u32>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let changes = changes(&mut reader, false);
        let about = "The version that the caller expects: if the schedule has another version, nothing is changed.";
        let expected_version = expected_version(&mut reader, about);
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                named: Named { owner, name: name? },
                changes,
                expected_version,
            })
        })
    }
}

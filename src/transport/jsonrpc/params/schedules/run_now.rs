//! `schedules.run_now`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::{OVERLAP, name, owner};
use crate::application::api::schedules::{Named, Overlap};
use taskledger_domain::Violation;

/// Which schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Name and owner.
    pub named: Named,
    /// What to do while a run is in progress; default: as the schedule says.
    pub overlap: Option<Overlap>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let about =
            "What to do while a run of the schedule is in progress; default: as the schedule says.";
        let overlap = reader.optional("overlap", OVERLAP, about);
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                named: Named { owner, name: name? },
                overlap,
            })
        })
    }
}

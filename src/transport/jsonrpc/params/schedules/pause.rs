//! `schedules.pause`.

use super::super::super::reader::{BOOLEAN, Parameters, Reader};
use super::kinds::{name, note, owner};
use crate::application::api::schedules::Named;
use std::sync::Arc;
use taskledger_domain::Violation;

/// Which schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Name and owner.
    pub named: Named,
    /// Whether it is to be paused.
    pub paused: bool,
    /// Why.
    pub note: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let about = "Whether its times pass without runs from now on; false resumes it.";
        let paused = reader.with_default("paused", BOOLEAN, true, about);
        let note = note(&mut reader);
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                named: Named { owner, name: name? },
                paused,
                note,
            })
        })
    }
}

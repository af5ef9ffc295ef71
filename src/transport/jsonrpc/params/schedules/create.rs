//! `schedules.create`.

use super::super::super::reader::{BOOLEAN, Parameters, Reader};
use super::kinds::{name, note, owner};
use super::what::{changes, definition};
use crate::application::api::schedules::{CreateSchedule, Named};
use taskledger_domain::Violation;

/// What to make.
#[derive(Debug, Clone, PartialEq)]
pub struct Params(pub CreateSchedule);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let said = changes(&mut reader, true);
        let about = "Whether its times pass without runs at first.";
        let is_paused = reader.with_default("paused", BOOLEAN, false, about);
        let note = note(&mut reader);
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self(CreateSchedule {
                named: Named { owner, name: name? },
                definition: definition(said)?,
                is_paused,
                note,
            }))
        })
    }
}

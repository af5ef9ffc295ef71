//! `schedules.get`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::named;
use crate::application::api::schedules::Named;
use taskledger_domain::Violation;

/// Which schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params(pub Named);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let named = named(&mut reader);
        reader.finish(|| named.map(Self))
    }
}

//! `schedules.list`.

use super::super::super::reader::{Parameters, Reader, integer};
use super::super::work::kinds::NameText;
use super::kinds::owner;
use std::sync::Arc;
use taskledger_domain::Violation;

/// Schedules in a page unless the caller says otherwise.
const LIMIT_DEFAULT: u32 = 100;
/// Schedules in a page at most.
const LIMIT_MAX: u64 = 1000;

/// Which schedules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Schedules in the page, at most.
    pub limit: u32,
    /// The last name of the page before.
    pub after: Option<Arc<str>>,
    /// Whose, if that was said.
    pub owner: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let about = "Schedules in the page, at most.";
        let range = integer(1..=LIMIT_MAX);
        let limit = reader.with_default("limit", range, u64::from(LIMIT_DEFAULT), about);
        let about = "`next_after` of the previous page: only names after this one.";
        let after = reader.optional("after", NameText, about);
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                limit: u32::try_from(limit).unwrap_or(LIMIT_DEFAULT),
                after,
                owner,
            })
        })
    }
}

//! `secrets.list`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::owner;
use std::sync::Arc;
use taskledger_domain::Violation;

/// Whose secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Whose, if that was said.
    pub owner: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let owner = owner(&mut reader);
        reader.finish(|| Some(Self { owner }))
    }
}

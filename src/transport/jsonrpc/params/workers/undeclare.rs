//! `workers.undeclare`.

use super::super::super::reader::{Parameters, Reader};
use super::super::work::kinds::NameText;
use std::sync::Arc;
use taskledger_domain::Violation;

/// Which method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Its name.
    pub method: Arc<str>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let method = reader.required("method", NameText, "The declared method.");
        reader.finish(|| Some(Self { method: method? }))
    }
}

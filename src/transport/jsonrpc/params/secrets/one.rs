//! `secrets.delete`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::{NameOfSecret, owner};
use std::sync::Arc;
use taskledger_auth::SecretName;
use taskledger_domain::Violation;

/// Which secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Its name.
    pub name: SecretName,
    /// Whose, if that was said.
    pub owner: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = reader.required("name", NameOfSecret, "The secret.");
        let owner = owner(&mut reader);
        reader.finish(|| Some(Self { name: name?, owner }))
    }
}

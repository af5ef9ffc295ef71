//! `tokens.revoke`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::Id;
use taskledger_auth::TokenId;
use taskledger_domain::Violation;

/// Which token.
#[derive(Debug, Clone)]
pub struct Params {
    /// Its id.
    pub id: TokenId,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let id = reader.required("id", Id, "The token: the part between the first two `_`.");
        reader.finish(|| Some(Self { id: id? }))
    }
}

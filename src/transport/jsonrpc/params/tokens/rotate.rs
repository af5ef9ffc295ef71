//! `tokens.rotate`.

use super::super::super::reader::{Parameters, Reader, integer};
use super::kinds::Id;
use taskledger_auth::TokenId;
use taskledger_auth::tokens::{GRACE_DEFAULT_S, GRACE_MAX_S};
use taskledger_domain::Violation;

/// Which token gets a new secret.
#[derive(Debug, Clone)]
pub struct Params {
    /// Its id.
    pub id: TokenId,
    /// For how many seconds the old secret is accepted too.
    pub grace_s: u64,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let id = reader.required("id", Id, "The token: the part between the first two `_`.");
        let grace_s = reader.with_default(
            "grace_seconds",
            integer(0..=GRACE_MAX_S),
            GRACE_DEFAULT_S,
            "For how long the old secret is accepted too.",
        );
        reader.finish(|| Some(Self { id: id?, grace_s }))
    }
}

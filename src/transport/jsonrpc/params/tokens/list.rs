//! `tokens.list`.

use super::super::super::reader::{Parameters, Reader};
use super::super::webhooks::list::{cursor, limit};
use super::kinds::{KIND, NameOf};
use taskledger_auth::{Kind, Name};
use taskledger_domain::Violation;

/// Which tokens.
#[derive(Debug, Clone)]
pub struct Params {
    /// Whose; `None`: all that the caller may see.
    pub owner: Option<(Kind, Name)>,
    /// Tokens in the page, at most.
    pub limit: usize,
    /// `next_cursor` of the previous page.
    pub after: i64,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = reader.optional("name", NameOf, "Only tokens of this user or service.");
        let kind = reader.with_default("kind", KIND, Kind::User, "What the name is the name of.");
        let limit = limit(&mut reader, "Tokens in the page, at most.");
        let after = cursor(&mut reader);
        reader.finish(|| {
            Some(Self {
                owner: name.map(|name| (kind, name)),
                limit,
                after: after.unwrap_or(0),
            })
        })
    }
}

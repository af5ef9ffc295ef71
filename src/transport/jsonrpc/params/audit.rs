//! `audit.list`.

use super::super::reader::{Parameters, Reader, TIMESTAMP, choice, text};
use super::webhooks::list::{cursor, limit};
use crate::application::api::AuditSearch;
use std::sync::Arc;
use taskledger_auth::Action;
use taskledger_domain::Violation;

/// Characters of a principal or an object: more than any has.
const CHARS_MAX: usize = 512;

/// Which rows.
#[derive(Debug, Clone)]
pub struct Params {
    /// Those that match.
    pub filter: AuditSearch,
    /// Rows in the page, at most.
    pub limit: usize,
    /// `next_cursor` of the previous page.
    pub before: Option<i64>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let words = text(CHARS_MAX);
        let principal = reader.optional(
            "principal",
            words,
            "Only actions of this principal, for example `user:ann`, `service:ci`, `anonymous`, `operator` or `server`.",
        );
        let action = reader.optional(
            "action",
            choice("not an action of the audit log", Action::WORDS),
            "Only this action.",
        );
        let object = reader.optional("object", words, "Only actions on this object.");
        let since = reader.optional("since", TIMESTAMP, "Not before this time.");
        let until = reader.optional("until", TIMESTAMP, "Before this time.");
        let limit = limit(&mut reader, "Entries in the page, at most.");
        let before = cursor(&mut reader);
        reader.finish(|| {
            Some(Self {
                filter: AuditSearch {
                    principal: principal.map(Arc::from),
                    action: action.map(|it| Arc::from(it.as_str())),
                    object: object.map(Arc::from),
                    since,
                    until,
                },
                limit,
                before,
            })
        })
    }
}

//! A row of the audit log, and the reader of its columns.

use super::Error;
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_sql::Columns;

/// A row of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// Its number, rising in the order in which rows were committed; with gaps.
    pub seq: i64,
    /// When it happened.
    pub at: Timestamp,
    /// Who did it: `user:ann`, `service:ci`, `anonymous`, `operator`, `server`.
    pub principal: Arc<str>,
    /// The id of the credential.
    pub token: Option<Arc<str>>,
    /// The address that the call came from, if it is known.
    pub address: Option<Arc<str>>,
    /// The id of the call.
    pub request: Option<Arc<str>>,
    /// What was done, one of the names of [`crate::Action`].
    pub action: Arc<str>,
    /// The object that the action was about.
    pub object: Option<Arc<str>>,
    /// How it ended, one of the names of [`crate::Outcome`].
    pub outcome: Arc<str>,
    /// More about it, a JSON object.
    pub detail: Option<Arc<str>>,
}

impl AuditRow {
    /// From the columns `seq, at, principal, token, address, request, action, object, outcome, detail`.
    pub(super) fn read(c: &mut Columns<'_>) -> Result<Self, Error> {
        Ok(Self {
            seq: c.int()?,
            at: c.time()?,
            principal: c.text()?,
            token: c.opt_text()?,
            address: c.opt_text()?,
            request: c.opt_text()?,
            action: c.text()?,
            object: c.opt_text()?,
            outcome: c.text()?,
            detail: c.opt_text()?,
        })
    }
}

//! Tokens and the audit log, as pages.

use taskledger_auth::store::{AuditRow, TokenRow};

/// Tokens, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenPage {
    /// At most as many as were asked for.
    pub tokens: Vec<TokenRow>,
    /// Where the next page begins, if there is one.
    pub next: Option<i64>,
}

/// Rows of the audit log, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// At most as many as were asked for.
    pub entries: Vec<AuditRow>,
    /// Where the next page begins, if there is one.
    pub next: Option<i64>,
}

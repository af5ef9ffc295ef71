//! Authentication and authorization: callers with their scopes, the credentials that prove them, and the audit log of
//! their actions.
//!
//! Knows no protocol and no task. Doors hand credentials in and get a [`Caller`]; the application asks the
//! caller what he may do.

mod audit;
mod caller;
mod failures;
pub mod jwt;
mod name;
mod scopes;
mod secret;
pub mod store;
mod token;
pub mod tokens;
mod vault;

pub use audit::{AUDIT_KEPT_DAYS, Action, AuditLog, By, Entry, Origin, Outcome, SERVER, Seen};
pub use caller::{ANONYMOUS, Caller, Kind, MAIN_TENANT, OPERATOR, Reach, owner_of};
pub use failures::{FAILURES_MAX, Failures, TooManyFailures, WINDOW_MS};
pub use name::{InvalidName, NAME_CHARS_MAX, Name};
pub use scopes::{Scope, Scopes, UnknownScope};
pub use secret::{
    InvalidSecretName, SECRET_BYTES, SECRET_NAME_CHARS_MAX, SECRETS_PER_OWNER_MAX, SecretName,
};
pub use store::{AuthStore, DeniedJwt};
pub use token::{Digest, ID_CHARS, Malformed, PREFIX, TOKEN_CHARS, Token, TokenId};
pub use tokens::{AdminTokens, Denial, Tokens};
pub use vault::{Vault, VaultError};

/// Whether a text looks like a whole credential: a token of this server, or a JWT. Cost: O(length).
#[must_use]
pub fn is_credential(text: &str) -> bool {
    text.starts_with(PREFIX) || jwt::is_compact(text)
}

//! Who calls, and what the caller may do: callers with their scopes, and the credentials that prove them.
//!
//! Knows no protocol and no task. Doors hand credentials in and get a [`Caller`]; the application asks the
//! caller what he may do.

mod caller;
mod scopes;
mod secret;

pub use caller::{ANONYMOUS, Caller, InvalidName, Kind, MAIN_TENANT, NAME_CHARS_MAX, Name, Reach};
pub use scopes::{Scope, Scopes, UnknownScope};
pub use secret::{
    InvalidSecretName, SECRET_BYTES, SECRET_NAME_CHARS_MAX, SECRETS_PER_OWNER_MAX, SecretName,
};

//! Who calls, and what the caller may do: callers with their scopes, and the credentials that prove them.
//!
//! Knows no protocol and no task. Doors hand credentials in and get a [`Caller`]; the application asks the
//! caller what he may do.

mod caller;
mod failures;
mod scopes;

pub use caller::{ANONYMOUS, Caller, InvalidName, Kind, MAIN_TENANT, NAME_CHARS_MAX, Name, Reach};
pub use failures::{FAILURES_MAX, Failures, TooManyFailures, WINDOW_MS};
pub use scopes::{Scope, Scopes, UnknownScope};

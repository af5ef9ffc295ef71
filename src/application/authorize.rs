//! Decides whether a caller may carry out a use case. Stands before every use case: commands, reads, streams, webhooks
//! and what the server says of itself.
//!
//! Each use case names the scope that it needs ([`UseCase`]). Whose flow or webhook it may concern is checked where the
//! owner is known.

pub use super::api::UseCase;
use super::context::Context;
use super::error::Error;

/// Refuses what the credentials of the caller do not allow. Cost: O(1).
///
/// # Errors
/// `Forbidden` with the scope that is missing.
pub fn authorize(context: &Context, use_case: UseCase) -> Result<(), Error> {
    match use_case.scope() {
        Some(scope) if !context.caller.may(scope) => Err(Error::Forbidden { scope, field: None }),
        Some(_) | None => Ok(()),
    }
}

//! The sealing of secrets: the keys of a key file, and values that only open with them.
//!
//! Owns: [`Keyring`] (key files, sealing, opening), [`Secret`], a text that `Debug` does not show, and [`Scrubber`],
//! which removes secrets from what others repeat of them. May not: know SQL, or what the secrets are for. Used for
//! the secrets of webhooks and for those of users.

mod keyring;
mod scrubber;

pub use keyring::{KEYS_FILE, Keyring, KeysError, Sealed};
pub use scrubber::Scrubber;

use std::fmt;
use std::sync::Arc;

/// A text that must not be shown. Its `Debug` is `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub Arc<str>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

//! Secrets that tasks name in their inputs instead of holding them: `{"$secret": "name"}`.
//!
//! Owns: where inputs may name them ([`Places`]), the texts that an attempt is given ([`SecretTexts`]), and
//! removing those texts from whatever the attempt says ([`Scrubber`]). The texts come through the port
//! `application::ports::Secrets` when an attempt starts, and are gone with it: they are in no event and
//! in no read model. Progress is a number and needs no scrubbing.

mod reference;
mod stored;

pub use crate::sealing::Scrubber;
pub use reference::Places;
pub use stored::StoredSecrets;

use crate::sealing::Secret;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use taskledger_auth::SecretName;

/// The member that makes an object a reference.
pub const MEMBER: &str = "$secret";
/// Secrets that the inputs of one task may name.
pub const NAMES_MAX: usize = 32;
/// Bytes of all secrets of one attempt. What finds them takes some hundred bytes of memory for each.
pub const BYTES_MAX: usize = 32 * 1024;

/// The secrets of an attempt, by name. `Debug` shows the names.
#[derive(Clone, Default)]
pub struct SecretTexts {
    texts: Arc<BTreeMap<SecretName, Secret>>,
    scrubber: Scrubber,
}

impl fmt::Debug for SecretTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.texts.keys()).finish()
    }
}

impl SecretTexts {
    /// These secrets. Cost: O(bytes), some hundred nanoseconds for each.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub fn new(secrets: impl IntoIterator<Item = (SecretName, Secret)>) -> Result<Self, TooLarge> {
        let texts: BTreeMap<_, _> = secrets.into_iter().collect();
        let bytes: usize = texts.values().map(|secret| secret.0.len()).sum();
        if texts.len() > NAMES_MAX || bytes > BYTES_MAX {
            return Err(TooLarge);
        }
        let scrubber = Scrubber::new(texts.iter().map(|(name, secret)| (name, &*secret.0)));
        Ok(Self {
            texts: Arc::new(texts),
            scrubber,
        })
    }

    /// The text of a secret; `None`: the attempt was not given it.
    #[must_use]
    pub fn get(&self, name: &SecretName) -> Option<&str> {
        self.texts.get(name).map(|secret| &*secret.0)
    }

    /// What removes the texts from other texts.
    #[must_use]
    pub const fn scrubber(&self) -> &Scrubber {
        &self.scrubber
    }
}

/// More secrets than one attempt can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the inputs name more than {NAMES_MAX} secrets, or secrets of more than {BYTES_MAX} bytes together"
)]
pub struct TooLarge;

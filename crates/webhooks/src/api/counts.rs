//! Counts the webhooks and callbacks of an owner.

use super::{Error, Webhooks};
use std::sync::Arc;

impl Webhooks {
    /// How many lasting webhooks are this owner's.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn count_of(&self, owner: &Arc<str>) -> Result<u64, Error> {
        Ok(self.store.count_of(owner).await?)
    }

    /// How many callbacks this owner has for runs that go on, at most `most`.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn callbacks_of(&self, owner: &Arc<str>, most: u32) -> Result<u64, Error> {
        Ok(self.store.callbacks_of(owner, most).await?)
    }
}

//! How much somebody has.

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
}

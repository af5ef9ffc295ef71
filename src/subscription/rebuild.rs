//! Makes the read models anew from the log, on purpose (`taskledger projections rebuild`).

use super::feed::Feed;
use crate::store::{self, EventStore};
use std::sync::Arc;
use taskledger_domain::Position;
use taskledger_projections::ReadModels;

/// Why a rebuild stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log could not be read.
    #[error("the log cannot be read")]
    Store(#[from] store::Error),
    /// The rows could not be written, or an event cannot be projected.
    #[error("the read models cannot be written")]
    ReadModels(#[from] taskledger_projections::Error),
}

/// Empties the read models and folds the whole log into them. `progress` is told, after each
/// batch, the position reached and the position of the last event when the rebuild began. Nothing
/// else may write the log or the read models meanwhile. A rebuild that is broken off leaves read
/// models that the next start continues. Returns the position reached. Cost: O(log).
///
/// # Errors
/// [`Error`]; repeating starts from the beginning.
pub async fn rebuild(
    store: Arc<dyn EventStore>,
    read_models: &ReadModels,
    mut progress: impl FnMut(Position, Position) + Send,
) -> Result<Position, Error> {
    let head = store.head().await?;
    read_models.clear().await?;
    let mut feed = Feed::new(store, 0);
    let mut reached = 0;
    while let Some(events) = feed.ready().await? {
        reached = read_models.apply(&events).await?;
        progress(reached, head.max(reached));
    }
    Ok(reached)
}

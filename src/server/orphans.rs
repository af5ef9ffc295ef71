//! Cleans up what an ungraceful stop has left behind.

use crate::engine::executor::command;
use std::path::Path;

/// Stops programs that an earlier server on this data folder has left running. Before any attempt begins.
pub(super) async fn stop_orphans(folder: &Path) {
    if let Err(error) = command::stop_orphans(&folder.join(command::FOLDER)).await {
        tracing::warn!(%error, "programs that an earlier server has left cannot be looked for");
    }
}

//! Ends a flow in the log after it has been copied to the archive.

use super::error::{Error, Failure};
use super::flows::Flows;
use super::mailbox::Answer;
use std::sync::Arc;
use taskledger_domain::flow::{Archive, Command};
use taskledger_domain::{FlowId, Metadata, Position};

/// Who archives.
pub const ACTOR: &str = "retention";

impl Flows {
    /// Ends a flow, and answers where. Cost: O(tasks).
    ///
    /// # Errors
    /// [`Error::Refused`]: it has changed since it was copied, or is not at rest; else as
    /// [`Self::ask`].
    pub async fn archive(
        self: &Arc<Self>,
        flow: FlowId,
        archive: Archive,
    ) -> Result<Position, Error> {
        let metadata = Metadata {
            actor: Arc::from(ACTOR),
            correlation: Arc::from(archive.copy.file.as_str()),
            causation: None,
            trace: None,
        };
        let order = self.order(Some(Command::Archive(archive)), None, metadata, true);
        match self.ask(flow, order).await? {
            Answer::Done { position, .. } => Ok(position),
            Answer::Repeated(_) => {
                Err(Failure::Broken("an archiving has no idempotency key".to_owned()).into())
            }
        }
    }
}

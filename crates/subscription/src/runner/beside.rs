//! Rows that the runner builds beside those that serve, instead of following the log: those of another version, or of a
//! long log from its beginning.

use super::{Service, State, Step};

use crate::rebuild;
use taskledger_domain::Position;
use taskledger_projections::{self as projections, Error as ReadError};

impl Service {
    /// Fills empty rows from a long log. Returns the position reached; 0 when there is an event that
    /// cannot be folded: following the log shows all rows before it.
    pub(super) async fn fill(&self, head: Position) -> Result<Position, Step> {
        tracing::info!(head, "the read models are empty, filling them from the log");
        let progress = |position, of| self.show(State::Filling { position, of });
        let filled = rebuild::beside(self.store.clone(), &self.read_models, progress).await;
        self.show(State::Running);
        match filled {
            Ok(position) => {
                tracing::info!(position, "the read models are filled");
                Ok(position)
            }
            Err(
                rebuild::Error::Store(taskledger_log::Error::Corrupt { .. })
                | rebuild::Error::ReadModels(ReadError::Poison { .. }),
            ) => Ok(0),
            Err(rebuild::Error::ReadModels(error)) if error.is_contradiction() => Ok(0),
            Err(error) => Err(Step::Again(projections::with_sources(&error))),
        }
    }

    /// Makes rows of this version beside those that others may be reading still.
    pub(super) async fn replace(&self, found: i64) -> Step {
        tracing::warn!(
            found,
            "the read models are of an older version, rebuilding them beside"
        );
        let rebuilt = rebuild::beside(self.store.clone(), &self.read_models, |_, _| ()).await;
        Step::Again(match rebuilt {
            Ok(position) => {
                format!("they were of version {found} and are now rebuilt to {position}")
            }
            Err(error) => projections::with_sources(&error),
        })
    }
}

//! Counts readers that wait for the rows: while there are any, the runner gathers less.

use std::time::Duration;
use taskledger_domain::Position;
use tokio::time::Instant;

/// When readers have waited.
#[derive(Debug, Default)]
pub(super) struct Readers {
    /// The furthest position that one has waited for.
    wanted: Position,
    waited_at: Option<Instant>,
}

impl Readers {
    pub(super) fn note(&mut self, wanted: Position) {
        if wanted > self.wanted {
            (self.wanted, self.waited_at) = (wanted, Some(Instant::now()));
        }
    }

    /// For how long none has waited.
    pub(super) fn away(&self) -> Option<Duration> {
        self.waited_at.map(|at| at.elapsed())
    }
}

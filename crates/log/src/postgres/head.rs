//! The head of the log as this process knows it.
//!
//! Owns: the watch. It is moved by our own commits, by notifications, by the poll and by whoever
//! asks the database; it never moves backwards.

use taskledger_domain::Position;
use tokio::sync::watch;

/// The head as far as it is known.
#[derive(Debug)]
pub(super) struct Head(watch::Sender<Position>);

impl Default for Head {
    fn default() -> Self {
        Self(watch::channel(0).0)
    }
}

impl Head {
    /// The log has at least `position`.
    pub(super) fn note(&self, position: Position) {
        self.0.send_if_modified(|known| {
            let moved = position > *known;
            *known = position.max(*known);
            moved
        });
    }

    pub(super) fn known(&self) -> Position {
        *self.0.borrow()
    }

    pub(super) fn watch(&self) -> watch::Receiver<Position> {
        self.0.subscribe()
    }
}

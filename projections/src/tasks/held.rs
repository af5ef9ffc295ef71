//! A task in memory, and what of it is still to be written.

use super::rows::Placed;

/// How much of a row must be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Write {
    Nothing,
    Figures,
    State,
    Definition,
    New,
}

/// A task in memory.
pub(crate) struct Task {
    pub(crate) placed: Placed,
    pub(super) write: Write,
    pub(super) dependencies_changed: bool,
    pub(super) specification_changed: bool,
    pub(super) labels_changed: bool,
}

impl Task {
    pub(super) const fn of(placed: Placed, write: Write) -> Self {
        Self {
            placed,
            write,
            dependencies_changed: false,
            specification_changed: false,
            labels_changed: false,
        }
    }
}

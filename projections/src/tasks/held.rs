//! A task in memory, and which parts of it and of its output are still to be written.

use super::rows::Placed;
use taskledger_domain::Version;

/// The place of a part of an output: number of the run, ordinal of the task, number of the part in its attempt.
pub(super) type Place = (i64, u32, u32);

/// A part, as it is written. A later attempt takes the places of an earlier one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(super) attempt: u32,
    pub(super) version: Version,
    pub(super) bytes: usize,
}

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

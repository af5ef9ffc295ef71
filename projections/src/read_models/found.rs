//! What is found where read models are kept, and what became of a swap.

use crate::Projector;
use crate::tasks::TaskProjector;
use taskledger_domain::Position;

/// What was found when the place was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Read models that can be continued.
    Usable,
    /// No read models: they are filled from the beginning of the log.
    Nothing,
    /// Read models that had to be thrown away: they are filled from the beginning of the log.
    Unusable(String),
    /// Read models of another version, which others may be using: reads are
    /// [`crate::Error::OtherVersion`] until a rebuild has put new ones in their place.
    Foreign(String),
}

/// How a swap ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swap {
    /// The new rows serve; the old ones are gone.
    Done,
    /// The serving rows contain more events, up to this one: fold them and try again.
    Behind(Position),
    /// Somebody is reading for a long time: try again soon. Nothing changed.
    InUse,
}

pub(super) fn other_version(found: i64) -> String {
    format!(
        "they are of version {found}, this program makes version {}",
        TaskProjector::VERSION
    )
}

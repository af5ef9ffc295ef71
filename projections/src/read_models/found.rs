//! Describes the tables that are found at start, and the outcome of a swap.

use crate::Projector;
use crate::tasks::TaskProjector;
use std::fmt;
use std::path::PathBuf;
use taskledger_domain::Position;

/// The state of the tables when they were opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Read models that can be continued.
    Usable,
    /// No read models: they are filled from the beginning of the log.
    Nothing,
    /// Read models that had to be thrown away: they are filled from the beginning of the log.
    Unusable(String),
    /// A file that could not be read, and is kept under another name: new read models are filled from the beginning of
    /// the log.
    Damaged {
        /// Why it could not be read.
        reason: String,
        /// Its new name.
        kept: PathBuf,
    },
    /// Read models of another version, which others may be using: reads are
    /// [`crate::Error::OtherVersion`] until a rebuild has put new ones in their place.
    Foreign(String),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usable => f.write_str("usable"),
            Self::Nothing => f.write_str("none yet, they are filled from the log"),
            Self::Unusable(why) => write!(f, "unusable, they are filled from the log: {why}"),
            Self::Damaged { reason, kept } => write!(
                f,
                "damaged, new ones are filled from the log: {reason}; the damaged file is kept as `{}`",
                kept.display()
            ),
            Self::Foreign(why) => write!(f, "of another version, reads wait for a rebuild: {why}"),
        }
    }
}

/// The outcome of a swap.
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

#[cfg(test)]
mod tests {
    use super::Found;

    #[test]
    fn what_was_found_is_told_in_words() {
        assert_eq!(
            Found::Nothing.to_string(),
            "none yet, they are filled from the log"
        );
        let old = Found::Unusable("they are old".to_owned()).to_string();
        assert_eq!(old, "unusable, they are filled from the log: they are old");
        let damaged = Found::Damaged {
            reason: "no database".to_owned(),
            kept: "rows.db.set-aside-1".into(),
        };
        assert_eq!(
            damaged.to_string(),
            "damaged, new ones are filled from the log: no database; the damaged file is kept as `rows.db.set-aside-1`"
        );
    }
}

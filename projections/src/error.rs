//! What can go wrong with the read models. All of it is failure, except a bad cursor.

use sqlx::migrate::MigrateError;
use taskledger_domain::Position;

/// The read models could not do their work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database did not answer; retry.
    #[error("the read models are not available")]
    Unavailable(#[source] sqlx::Error),
    /// An event that cannot be folded. The projection stops before it; nothing is skipped.
    #[error("the event at position {position} cannot be projected: {reason}")]
    Poison {
        /// The event.
        position: Position,
        /// Why.
        reason: String,
    },
    /// Another writer has moved the checkpoint; nothing was written. Start again from its position.
    #[error("the checkpoint is no longer at {expected}")]
    CheckpointMoved {
        /// Where this writer had left it.
        expected: Position,
    },
    /// A stored value cannot be read; delete the file, it is rebuilt.
    #[error("the read models are damaged: {0}")]
    Damaged(String),
    /// The schema cannot be brought to this program's version; delete the file, it is rebuilt.
    #[error("the read models cannot be migrated")]
    Migration(#[source] MigrateError),
    /// The file cannot be created, replaced or opened.
    #[error("cannot use `{path}`")]
    File {
        /// The file.
        path: String,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// An answer would exceed its limit in bytes; ask for less.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// A cursor that this program did not give for this order. The caller can mend it.
    #[error("not a cursor of this list")]
    BadCursor,
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        if let sqlx::Error::ColumnDecode { index, source } = &error {
            return Self::Damaged(format!("column {index}: {source}"));
        }
        Self::Unavailable(error)
    }
}

/// Primary result codes of SQLite that matter here.
mod code {
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const NOT_A_DATABASE: i32 = 26;
}

impl Error {
    /// Whether the file itself is at fault, so that only a rebuild helps.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged(_) => true,
            Self::Unavailable(e)
            | Self::Migration(MigrateError::Execute(e) | MigrateError::ExecuteMigration(e, _)) => {
                matches!(primary_code(e), Some(code::CORRUPT | code::NOT_A_DATABASE))
            }
            Self::Migration(_) => true,
            Self::Poison { .. }
            | Self::CheckpointMoved { .. }
            | Self::File { .. }
            | Self::TooLarge { .. }
            | Self::BadCursor => false,
        }
    }

    /// Whether the rows broke a rule of the schema: an event contradicts an earlier one.
    pub(crate) fn is_contradiction(&self) -> bool {
        match self {
            Self::Unavailable(e) => primary_code(e) == Some(code::CONSTRAINT),
            Self::Poison { .. }
            | Self::CheckpointMoved { .. }
            | Self::Damaged(_)
            | Self::Migration(_)
            | Self::File { .. }
            | Self::TooLarge { .. }
            | Self::BadCursor => false,
        }
    }
}

fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

//! The errors of the read models. All of it is failure, except a bad cursor.

use sqlx::migrate::MigrateError;
use sqlx::postgres::PgDatabaseError;
use taskledger_domain::Position;

/// The read models could not do their work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database did not answer; retry.
    #[error("the read models are not available")]
    Unavailable(#[source] sqlx::Error),
    /// The file did not take or give rows; retry.
    #[error("the read models are not available")]
    Sqlite(#[from] rusqlite::Error),
    /// An event that cannot be folded. The projection stops before it; nothing is skipped.
    #[error("the event at position {position} cannot be projected: {reason}")]
    Poison {
        /// Position of the event that cannot be folded.
        position: Position,
        /// Why it cannot be folded, in words for people.
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
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The place cannot hold read models; the operator can mend it.
    #[error("the read models cannot be kept there: {0}")]
    Place(String),
    /// The rows were made by another version of the program, and a rebuild has not replaced them yet.
    #[error("the read models are of version {found}, which this program does not read")]
    OtherVersion {
        /// Their version.
        found: i64,
    },
    /// One rebuild at a time.
    #[error("the read models are being rebuilt already")]
    RebuildUnderWay,
    /// Another process has the file open.
    #[error("another process uses the read models")]
    InUse,
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

impl From<taskledger_sql::Error> for Error {
    fn from(error: taskledger_sql::Error) -> Self {
        match error {
            taskledger_sql::Error::Unavailable(source) => Self::Unavailable(source),
            taskledger_sql::Error::Sqlite(source) => Self::Sqlite(source),
            taskledger_sql::Error::Damaged(reason) => Self::Damaged(reason),
        }
    }
}

/// Codes of the databases that matter here, both engines' in one list: SQLite's are primary result
/// codes, PostgreSQL's are SQLSTATEs or, with two characters, classes of them. A SQLSTATE has five
/// characters, so [`Error::has_code`] takes no code of one engine for one of the other.
///
/// | meaning | SQLite | PostgreSQL |
/// |---|---|---|
/// | an event contradicts the rows | CONSTRAINT | class 23 |
/// | only a rebuild helps | CORRUPT, NOTADB | XX001, XX002 (damaged pages), 42P01, 3F000 (tables are gone) |
/// | waiting helps | BUSY, LOCKED | 08 (connection), 40 (rollback), 53 (resources), 55P03 (lock), 57 (ended by an operator or a time-out), 25P03 (idle too long) |
mod code {
    pub(super) const CONTRADICTION: [&str; 2] = ["19", "23"];
    pub(super) const DAMAGE: [&str; 6] = ["11", "26", "XX001", "XX002", "42P01", "3F000"];
    pub(super) const PASSING: [&str; 8] = ["5", "6", "08", "40", "53", "55P03", "57", "25P03"];
    pub(super) const LOCK_NOT_AVAILABLE: [&str; 1] = ["55P03"];
}

impl Error {
    /// Whether the rows themselves are at fault, so that only a rebuild helps.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        let unreadable = match self.cause() {
            Some(_) => false,
            None => matches!(self, Self::Damaged(_) | Self::Migration(_)),
        };
        unreadable || self.has_code(&code::DAMAGE)
    }

    /// Whether the same may work a moment later: nothing is wrong but the time.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        let state = matches!(
            self,
            Self::OtherVersion { .. }
                | Self::RebuildUnderWay
                | Self::InUse
                | Self::CheckpointMoved { .. }
        );
        let away = matches!(
            self.cause(),
            Some(
                sqlx::Error::PoolTimedOut
                    | sqlx::Error::PoolClosed
                    | sqlx::Error::Io(_)
                    | sqlx::Error::Tls(_)
                    | sqlx::Error::BeginFailed
            )
        );
        state || away || self.has_code(&code::PASSING)
    }

    /// Whether the rows broke a rule of the schema: an event contradicts an earlier one.
    #[must_use]
    pub fn is_contradiction(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Sqlite(_))
            && self.has_code(&code::CONTRADICTION)
    }

    /// Whether somebody else held a lock for longer than the statement would wait.
    pub(crate) fn is_lock_timeout(&self) -> bool {
        self.has_code(&code::LOCK_NOT_AVAILABLE)
    }

    fn cause(&self) -> Option<&sqlx::Error> {
        let (Self::Unavailable(error)
        | Self::Migration(
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _),
        )) = self
        else {
            return None;
        };
        Some(error)
    }

    fn has_code(&self, codes: &[&str]) -> bool {
        if let Self::Sqlite(rusqlite::Error::SqliteFailure(failure, _)) = self {
            let primary = (failure.extended_code & 0xff).to_string();
            return codes.contains(&primary.as_str());
        }
        let Some(error) = self.cause().and_then(sqlx::Error::as_database_error) else {
            return false;
        };
        let Some(code) = error.code() else {
            return false;
        };
        if error.try_downcast_ref::<PgDatabaseError>().is_some() {
            return codes
                .iter()
                .any(|wanted| *wanted == code || code.get(..2) == Some(wanted) && code.len() == 5);
        }
        // The primary code is the lowest byte.
        let primary = code.parse::<i32>().map(|code| (code & 0xff).to_string());
        primary.is_ok_and(|primary| codes.contains(&primary.as_str()))
    }
}

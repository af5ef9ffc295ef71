//! A row of an answer, of whatever engine.

use crate::values::Values;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

/// A row of an answer.
pub enum Row {
    /// A row of SQLite, read through `sqlx`.
    Sqlite(SqliteRow),
    /// A row of SQLite, read on the calling thread.
    Direct(Values),
    /// A row of PostgreSQL.
    Postgres(PgRow),
}

impl std::fmt::Debug for Row {
    /// Without its values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Row").finish_non_exhaustive()
    }
}

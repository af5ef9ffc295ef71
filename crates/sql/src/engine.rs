//! The database engine in use.

/// The database that holds the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// SQLite, in a file of this server.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

//! Where read models are stored, and their limits.

use crate::Error;
use sqlx::postgres::PgConnectOptions;
use std::path::PathBuf;
use std::time::Duration;

/// Connections that queries share: as many as a small machine can use at once.
const READERS_DEFAULT: u32 = 4;
/// Connections of a server to PostgreSQL for queries: a query waits on the network more than it
/// computes, and long answers hold two of them.
const POSTGRES_READERS_DEFAULT: u32 = 8;
/// Connections for queries that there are at least: one may be held by a long answer.
pub const READERS_MIN: u32 = 2;
/// The PostgreSQL schema of the serving tables.
pub const SCHEMA_DEFAULT: &str = "taskledger_rows";
/// How long a query waits for a free connection to PostgreSQL: as long as a read waits for the rows.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long one statement of a query may run: the shape of the largest tree takes a second.
const READ_STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long one statement of the fold may run: a run over 100,000 tasks takes some seconds.
const WRITE_STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a statement waits for a lock: a fold of another server that is about to end.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The place of the read models, and the number of connections that read.
#[derive(Debug, Clone)]
pub struct Options {
    /// A file of SQLite, or a schema in PostgreSQL.
    pub place: Place,
    /// Connections for queries; never fewer than [`READERS_MIN`].
    pub readers: u32,
}

/// The place of the read models.
#[derive(Debug, Clone)]
pub enum Place {
    /// A file of SQLite; created when it is missing.
    File(PathBuf),
    /// A schema of a PostgreSQL database; created when it is missing.
    Postgres(Box<Postgres>),
}

/// Read models in PostgreSQL. Servers that name the same schema share them.
#[derive(Debug, Clone)]
pub struct Postgres {
    /// How to reach the database, without a pooler between: sessions listen and hold locks.
    pub connect: PgConnectOptions,
    /// The schema of the tables: lower case letters, digits and `_`, at most 40.
    pub schema: String,
    /// How long a query waits for a free connection.
    pub acquire_timeout: Duration,
    /// How long one statement of a query may run.
    pub read_statement_timeout: Duration,
    /// How long one statement of the fold may run.
    pub write_statement_timeout: Duration,
    /// How long a statement waits for a lock.
    pub lock_timeout: Duration,
}

impl Options {
    /// The file with the usual number of readers.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            place: Place::File(path.into()),
            readers: READERS_DEFAULT,
        }
    }

    /// The usual schema of a PostgreSQL database, with the usual bounds.
    #[must_use]
    pub fn postgres(connect: PgConnectOptions) -> Self {
        Self {
            place: Place::Postgres(Box::new(Postgres {
                connect,
                schema: SCHEMA_DEFAULT.to_owned(),
                acquire_timeout: ACQUIRE_TIMEOUT,
                read_statement_timeout: READ_STATEMENT_TIMEOUT,
                write_statement_timeout: WRITE_STATEMENT_TIMEOUT,
                lock_timeout: LOCK_TIMEOUT,
            })),
            readers: POSTGRES_READERS_DEFAULT,
        }
    }
}

impl Postgres {
    /// Characters of a schema's name; `_next` is added to it, and PostgreSQL cuts off at 63.
    const SCHEMA_CHARS_MAX: usize = 40;

    /// The schema, which goes into texts as it is.
    pub(super) fn checked_schema(&self) -> Result<&str, Error> {
        let name = self.schema.as_str();
        let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        let fits = name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if begins && fits && name.len() <= Self::SCHEMA_CHARS_MAX && !name.starts_with("pg_") {
            Ok(name)
        } else {
            Err(Error::Place(format!(
                "schema `{name}`: lower case letters, digits and `_` are allowed, at most {}, \
                 not beginning with a digit or `pg_`",
                Self::SCHEMA_CHARS_MAX
            )))
        }
    }

    /// Where a rebuild works.
    pub(super) fn next_schema(&self) -> String {
        format!("{}_next", self.schema)
    }

    /// Connections of the fold to `schema`.
    pub(super) fn writer(&self, schema: &str) -> PgConnectOptions {
        self.connect
            .clone()
            .application_name("taskledger read models")
            .statement_cache_capacity(WRITER_STATEMENTS)
            .options([
                ("search_path", schema.to_owned()),
                ("lock_timeout", millis(self.lock_timeout)),
                ("statement_timeout", millis(self.write_statement_timeout)),
                // Whoever folds and stands still must not keep the next one out.
                (
                    "idle_in_transaction_session_timeout",
                    millis(WRITER_IDLE_IN_TRANSACTION),
                ),
                // Rows that were shown must not be taken back by a crash, of which nobody is told. The
                // database's own default may be otherwise.
                ("synchronous_commit", "on".to_owned()),
                // Its statements are for any number of rows, so their plan is made once.
                ("plan_cache_mode", "force_generic_plan".to_owned()),
            ])
            .options(BY_INDEX)
    }

    /// Connections of queries.
    pub(super) fn reader(&self) -> PgConnectOptions {
        self.connect
            .clone()
            .application_name("taskledger queries")
            .statement_cache_capacity(READER_STATEMENTS)
            .options([
                ("search_path", self.schema.clone()),
                ("lock_timeout", millis(self.lock_timeout)),
                ("statement_timeout", millis(self.read_statement_timeout)),
                (
                    "idle_in_transaction_session_timeout",
                    millis(READER_IDLE_IN_TRANSACTION),
                ),
            ])
            .options(BY_INDEX)
    }
}

/// Prepared statements kept by the writer: all of its statements.
const WRITER_STATEMENTS: usize = 128;
/// Prepared statements kept by each reader: the combinations of list filters are many.
const READER_STATEMENTS: usize = 48;
/// How long a fold may stand still between two statements.
const WRITER_IDLE_IN_TRANSACTION: Duration = Duration::from_secs(5);
/// How long a query may stand still between two statements: longer than a long answer may be sent.
const READER_IDLE_IN_TRANSACTION: Duration = Duration::from_secs(180);

/// Every statement here has an index that gives its rows in its order. Without statistics (a table
/// that was just filled) the planner would not find that out, and a plan lives as long as its
/// connection.
const BY_INDEX: [(&str, &str); 6] = [
    ("enable_seqscan", "off"),
    ("enable_sort", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
];

fn millis(time: Duration) -> String {
    time.as_millis().to_string()
}

//! Statements on either engine: transactions, parameters, rows, and statements that carry many rows.
//!
//! Owns everything in which SQLite and PostgreSQL differ below the texts: a [`Tx`] is a transaction
//! on one of them, and whoever works with it cannot tell which. SQLite is reached in two ways: small
//! stores through `sqlx`, the fold and its readers directly (`direct`). Texts are shared where they can
//! be (`$1` works in both, in ascending order); where not, both stand beside each other where they are
//! used.

mod columns;
mod direct;
mod multi_row;
mod postgres;
mod sqlite;

pub use columns::Columns;
pub(crate) use columns::json;
use direct::Direct;
pub use direct::Values;
pub(crate) use direct::{Param, fetch_all};
pub use multi_row::MultiRow;

use crate::Error;
use crate::read_models::Reader;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Postgres, Row as _, SqlSafeStr, Sqlite, Transaction};
use std::sync::Arc;
use taskledger_domain::{Payload, Position, Timestamp};
use uuid::Uuid;

/// Which database holds the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

/// A transaction on either engine.
pub struct Tx<'t> {
    inner: Inner<'t>,
}

enum Inner<'t> {
    Sqlite(Transaction<'t, Sqlite>),
    Direct(Direct<'t>),
    Reading(Reader),
    Postgres(Transaction<'t, Postgres>),
}

/// A row of an answer.
pub enum Row {
    /// Of SQLite.
    Sqlite(SqliteRow),
    /// Of SQLite, read without a thread between.
    Direct(Values),
    /// Of PostgreSQL.
    Postgres(PgRow),
}

impl std::fmt::Debug for Row {
    /// Without its values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Row").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Tx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tx")
            .field("engine", &self.engine())
            .finish_non_exhaustive()
    }
}

impl<'t> Tx<'t> {
    /// A transaction on SQLite.
    #[must_use]
    pub fn sqlite(tx: Transaction<'t, Sqlite>) -> Self {
        Self {
            inner: Inner::Sqlite(tx),
        }
    }

    /// A transaction of the fold, on a connection of its own: its statements run, and may wait for the
    /// disk, on the thread that asks for them.
    pub(crate) fn direct(connection: &'t mut rusqlite::Connection) -> Result<Self, Error> {
        Ok(Self {
            inner: Inner::Direct(Direct::begin(connection)?),
        })
    }

    /// A transaction of a reader.
    pub(crate) const fn reading(reader: Reader) -> Self {
        Self {
            inner: Inner::Reading(reader),
        }
    }

    /// A transaction on PostgreSQL.
    #[must_use]
    pub fn postgres(tx: Transaction<'t, Postgres>) -> Self {
        Self {
            inner: Inner::Postgres(tx),
        }
    }

    /// On which of them.
    #[must_use]
    pub fn engine(&self) -> Engine {
        match &self.inner {
            Inner::Sqlite(_) | Inner::Direct(_) | Inner::Reading(_) => Engine::Sqlite,
            Inner::Postgres(_) => Engine::Postgres,
        }
    }

    /// Room for the parameters of one statement.
    #[must_use]
    pub fn args(&self) -> Args {
        match &self.inner {
            Inner::Sqlite(_) => Args(Bound::Sqlite(sqlx::sqlite::SqliteArguments::default())),
            Inner::Direct(_) | Inner::Reading(_) | Inner::Postgres(_) => Args::of(self.engine()),
        }
    }

    /// Ends it with effect.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn commit(self) -> Result<(), Error> {
        match self.inner {
            Inner::Sqlite(tx) => tx.commit().await?,
            Inner::Direct(tx) => tx.commit()?,
            Inner::Reading(tx) => drop(tx),
            Inner::Postgres(tx) => tx.commit().await?,
        }
        Ok(())
    }

    /// Ends it without effect, at once: a transaction that is only dropped keeps its locks until its
    /// connection is used again.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn rollback(self) -> Result<(), Error> {
        match self.inner {
            Inner::Sqlite(tx) => tx.rollback().await?,
            Inner::Direct(tx) => tx.rollback()?,
            Inner::Reading(tx) => drop(tx),
            Inner::Postgres(tx) => tx.rollback().await?,
        }
        Ok(())
    }

    /// Runs a statement and tells how many rows it changed.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn execute(&mut self, sql: impl SqlSafeStr, args: Args) -> Result<u64, Error> {
        let sql = sql.into_sql_str();
        Ok(match (&mut self.inner, args.0) {
            (Inner::Sqlite(tx), Bound::Sqlite(args)) => sqlx::query_with(sql, args)
                .execute(&mut **tx)
                .await?
                .rows_affected(),
            (Inner::Direct(tx), Bound::Direct(params)) => tx.execute(sql.as_str(), &params)?,
            (Inner::Postgres(tx), Bound::Postgres(columns)) => {
                sqlx::query_with(sql, columns.into_single()?)
                    .execute(&mut **tx)
                    .await?
                    .rows_affected()
            }
            // Readers do not write.
            (Inner::Reading(_), _) => return Err(mismatch()),
            (Inner::Sqlite(_) | Inner::Direct(_) | Inner::Postgres(_), _) => return Err(mismatch()),
        })
    }

    /// All rows that a statement returns.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn fetch_all(&mut self, sql: impl SqlSafeStr, args: Args) -> Result<Vec<Row>, Error> {
        let sql = sql.into_sql_str();
        match (&mut self.inner, args.0) {
            (Inner::Sqlite(tx), Bound::Sqlite(args)) => {
                let rows = sqlx::query_with(sql, args).fetch_all(&mut **tx).await?;
                Ok(rows.into_iter().map(Row::Sqlite).collect())
            }
            (Inner::Direct(tx), Bound::Direct(params)) => {
                let rows = tx.fetch_all(sql.as_str(), &params)?;
                Ok(rows.into_iter().map(Row::Direct).collect())
            }
            (Inner::Postgres(tx), Bound::Postgres(columns)) => {
                let rows = sqlx::query_with(sql, columns.into_single()?)
                    .fetch_all(&mut **tx)
                    .await?;
                Ok(rows.into_iter().map(Row::Postgres).collect())
            }
            (Inner::Reading(reader), Bound::Direct(params)) => {
                let rows = reader.fetch(vec![(sql.as_str().into(), params)]).await?;
                Ok(rows.into_iter().map(Row::Direct).collect())
            }
            (Inner::Sqlite(_) | Inner::Direct(_) | Inner::Reading(_) | Inner::Postgres(_), _) => {
                Err(mismatch())
            }
        }
    }

    /// The first row that a statement returns.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn fetch_optional(
        &mut self,
        sql: impl SqlSafeStr,
        args: Args,
    ) -> Result<Option<Row>, Error> {
        Ok(self.fetch_all(sql, args).await?.into_iter().next())
    }

    /// The row of a statement that always returns one.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn fetch_one(&mut self, sql: impl SqlSafeStr, args: Args) -> Result<Row, Error> {
        let row = self.fetch_optional(sql, args).await?;
        row.ok_or_else(|| Error::Damaged("a sum has no row".to_owned()))
    }

    /// The database's plan for a statement, one line for each step.
    pub(crate) async fn plan(&mut self, sql: &str, args: Args) -> Result<Vec<String>, Error> {
        let (explain, column) = match self.engine() {
            Engine::Sqlite => ("EXPLAIN QUERY PLAN", 3),
            Engine::Postgres => ("EXPLAIN", 0),
        };
        let sql = AssertSqlSafe(format!("{explain} {sql}"));
        let rows = self.fetch_all(sql, args).await?;
        rows.iter()
            .map(|row| {
                let step: &str = match row {
                    Row::Sqlite(row) => row.try_get(column)?,
                    Row::Direct(row) => row.get(column)?,
                    Row::Postgres(row) => row.try_get(column)?,
                };
                Ok(step.to_owned())
            })
            .collect()
    }

    /// Runs texts without parameters, one after the other.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn execute_all(&mut self, sql: &'static str) -> Result<(), Error> {
        match &mut self.inner {
            Inner::Sqlite(tx) => _ = sqlx::Executor::execute(&mut **tx, sql).await?,
            Inner::Direct(tx) => tx.execute_all(sql)?,
            Inner::Reading(_) => return Err(mismatch()),
            Inner::Postgres(tx) => _ = sqlx::Executor::execute(&mut **tx, sql).await?,
        }
        Ok(())
    }
}

pub(crate) fn mismatch() -> Error {
    Error::Damaged("parameters of one engine met a statement of the other".to_owned())
}

/// Collects the parameters of a statement, row by row.
pub struct Args(Bound);

impl std::fmt::Debug for Args {
    /// Without the values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Args").finish_non_exhaustive()
    }
}

enum Bound {
    Sqlite(sqlx::sqlite::SqliteArguments),
    Direct(Vec<Param>),
    Postgres(postgres::Columns),
}

/// A text, owned or shared.
#[derive(Debug, Clone)]
pub(crate) enum Text {
    Shared(Arc<str>),
    Name(&'static str),
    Owned(String),
    Payload(Payload),
}

impl Text {
    fn as_str(&self) -> &str {
        match self {
            Self::Shared(text) => text,
            Self::Name(text) => text,
            Self::Owned(text) => text,
            Self::Payload(payload) => payload.as_str(),
        }
    }
}

impl Args {
    /// The parameters of one row, for a reader.
    pub(crate) fn of(engine: Engine) -> Self {
        Self(match engine {
            Engine::Sqlite => Bound::Direct(Vec::new()),
            Engine::Postgres => Bound::Postgres(postgres::Columns::single()),
        })
    }

    /// An integer or null.
    pub fn int(&mut self, value: impl Into<Option<i64>>) {
        match &mut self.0 {
            Bound::Sqlite(args) => sqlite::add(args, value.into()),
            Bound::Postgres(columns) => columns.int(value.into()),
            Bound::Direct(params) => params.push(value.into().map_or(Param::Null, Param::Int)),
        }
    }
    /// A text that a caller chose: it may hold any character.
    pub fn text(&mut self, value: impl Into<Option<Arc<str>>>) {
        match &mut self.0 {
            Bound::Sqlite(args) => sqlite::add(args, value.into()),
            Bound::Postgres(columns) => columns.text(value.into().map(postgres::storable)),
            Bound::Direct(params) => params.push(text(value.into().map(Text::Shared))),
        }
    }
    /// A word of this program.
    pub fn name(&mut self, value: impl Into<Option<&'static str>>) {
        match &mut self.0 {
            Bound::Sqlite(args) => sqlite::add(args, value.into()),
            Bound::Postgres(columns) => columns.text(value.into().map(Text::Name)),
            Bound::Direct(params) => params.push(text(value.into().map(Text::Name))),
        }
    }
    /// JSON text.
    pub fn owned(&mut self, value: String) {
        match &mut self.0 {
            Bound::Sqlite(args) => sqlite::add(args, value),
            Bound::Postgres(columns) => columns.text(Some(Text::Owned(value))),
            Bound::Direct(params) => params.push(text(Some(Text::Owned(value)))),
        }
    }
    pub(crate) fn payload(&mut self, value: Option<&Payload>) {
        match &mut self.0 {
            Bound::Sqlite(args) => sqlite::add(args, value.map(Payload::as_str)),
            Bound::Postgres(columns) => columns.text(value.cloned().map(Text::Payload)),
            Bound::Direct(params) => params.push(text(value.cloned().map(Text::Payload))),
        }
    }
    /// Bytes or null.
    pub fn bytes(&mut self, value: impl Into<Option<Vec<u8>>>) {
        match &mut self.0 {
            Bound::Sqlite(args) => sqlite::add(args, value.into()),
            Bound::Postgres(columns) => columns.bytes(value.into()),
            Bound::Direct(params) => params.push(value.into().map_or(Param::Null, Param::Bytes)),
        }
    }
    /// An id.
    pub fn id(&mut self, value: Uuid) {
        self.opt_id(Some(value));
    }
    /// An id or null.
    pub fn opt_id(&mut self, value: Option<Uuid>) {
        match &mut self.0 {
            Bound::Sqlite(args) => sqlite::add(args, value.map(|id| id.as_bytes().to_vec())),
            Bound::Postgres(columns) => columns.id(value),
            Bound::Direct(params) => {
                params.push(value.map_or(Param::Null, |id| Param::Id(id.into_bytes())))
            }
        }
    }
    /// A place in the log.
    pub fn position(&mut self, value: Position) {
        self.int(int(value));
    }
    /// A time or null.
    pub fn time(&mut self, value: impl Into<Option<Timestamp>>) {
        self.int(value.into().map(|t| t.0));
    }
    /// Parameters so far: the number of the last one.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Bound::Sqlite(args) => sqlx::Arguments::len(args),
            Bound::Direct(params) => params.len(),
            Bound::Postgres(columns) => columns.len(),
        }
    }
}

impl Args {
    /// Whether there are none yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn text(text: Option<Text>) -> Param {
    text.map_or(Param::Null, Param::Text)
}

/// The text of which PostgreSQL's `stored` was made.
pub(crate) fn original(stored: &str) -> Arc<str> {
    Arc::from(postgres::original(stored))
}

/// A log position as a column value.
pub fn int(position: Position) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

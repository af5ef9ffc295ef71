//! A transaction on either engine.

use crate::args::{Args, Bound};
use crate::calls;
use crate::direct::Direct;
use crate::engine::Engine;
use crate::error::{Error, mismatch};
use crate::readers::Reader;
use crate::row::Row;
use sqlx::{AssertSqlSafe, Postgres, Row as _, SqlSafeStr, Sqlite, Transaction};

/// A transaction on either engine.
pub struct Tx<'t> {
    pub(crate) inner: Inner<'t>,
}

pub(crate) enum Inner<'t> {
    Sqlite(Transaction<'t, Sqlite>),
    Direct(Direct<'t>),
    Reading(Reader),
    Postgres(Transaction<'t, Postgres>),
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

    /// A transaction that will write, on a connection of its own: its statements run, and may wait for the
    /// disk, on the thread that asks for them.
    ///
    /// # Errors
    /// [`Error::Sqlite`]: it cannot begin.
    pub fn direct(connection: &'t mut rusqlite::Connection) -> Result<Self, Error> {
        Ok(Self {
            inner: Inner::Direct(Direct::begin(connection)?),
        })
    }

    /// A transaction of a reader.
    #[must_use]
    pub const fn reading(reader: Reader) -> Self {
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

    /// The engine that the transaction runs on.
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
            Inner::Sqlite(tx) => calls::commit_on_sqlite(tx).await?,
            Inner::Direct(tx) => tx.commit()?,
            Inner::Reading(tx) => drop(tx),
            Inner::Postgres(tx) => calls::commit_on_postgres(tx).await?,
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
            Inner::Sqlite(tx) => calls::rollback_on_sqlite(tx).await?,
            Inner::Direct(tx) => tx.rollback()?,
            Inner::Reading(tx) => drop(tx),
            Inner::Postgres(tx) => calls::rollback_on_postgres(tx).await?,
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
            (Inner::Sqlite(tx), Bound::Sqlite(args)) => {
                calls::execute_on_sqlite(tx, sql, args).await?
            }
            (Inner::Direct(tx), Bound::Direct(params)) => tx.execute(sql.as_str(), &params)?,
            (Inner::Postgres(tx), Bound::Postgres(columns)) => {
                calls::execute_on_postgres(tx, sql, columns.into_single()?).await?
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
                let rows = calls::fetch_from_sqlite(tx, sql, args).await?;
                Ok(rows.into_iter().map(Row::Sqlite).collect())
            }
            (Inner::Direct(tx), Bound::Direct(params)) => {
                let rows = tx.fetch_all(sql.as_str(), &params)?;
                Ok(rows.into_iter().map(Row::Direct).collect())
            }
            (Inner::Postgres(tx), Bound::Postgres(columns)) => {
                let rows = calls::fetch_from_postgres(tx, sql, columns.into_single()?).await?;
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
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn plan(&mut self, sql: &str, args: Args) -> Result<Vec<String>, Error> {
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
            Inner::Sqlite(tx) => calls::execute_all_on_sqlite(tx, sql).await?,
            Inner::Direct(tx) => tx.execute_all(sql)?,
            Inner::Reading(_) => return Err(mismatch()),
            Inner::Postgres(tx) => calls::execute_all_on_postgres(tx, sql).await?,
        }
        Ok(())
    }
}

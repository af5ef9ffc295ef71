//! SQLite connections that run statements on the calling thread.
//!
//! A statement through `sqlx` is a hop to a thread of the connection and back, about 20 µs on a small
//! machine, so rows had to travel in large statements, which SQLite runs with a journal of their own.
//! Here a statement carries one row and costs what SQLite needs for it (measured: a third). Whoever
//! uses it must not be where waiting for a disk holds up others.

use crate::args::{Args, Bound};
use crate::error::Error;
use crate::values::{Param, Values, fetch_all, prepare};
use rusqlite::{Connection, params_from_iter};

/// A transaction on a connection of its own; undone when it is dropped.
pub(crate) struct Direct<'t> {
    connection: &'t mut Connection,
}

impl<'t> Direct<'t> {
    /// Begins a transaction that will write.
    pub(crate) fn begin(connection: &'t mut Connection) -> Result<Self, Error> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self { connection })
    }

    pub(crate) fn commit(self) -> Result<(), Error> {
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    pub(crate) fn rollback(self) -> Result<(), Error> {
        self.connection.execute_batch("ROLLBACK")?;
        Ok(())
    }

    pub(crate) fn execute(&mut self, sql: &str, params: &[Param]) -> Result<u64, Error> {
        let mut statement = prepare(self.connection, sql)?;
        Ok(statement.execute(params_from_iter(params))? as u64)
    }

    pub(crate) fn fetch_all(&mut self, sql: &str, params: &[Param]) -> Result<Vec<Values>, Error> {
        fetch_all(self.connection, sql, params)
    }

    /// Runs one statement for every row.
    pub(crate) fn execute_each<T>(
        &mut self,
        sql: &str,
        rows: &[T],
        bind: impl Fn(&T, &mut Args),
    ) -> Result<(), Error> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut args = Args(Bound::Direct(Vec::new()));
        for row in rows {
            bind(row, &mut args);
            if let Args(Bound::Direct(params)) = &mut args {
                statement.execute(params_from_iter(params.drain(..)))?;
            }
        }
        Ok(())
    }

    pub(crate) fn execute_all(&mut self, sql: &str) -> Result<(), Error> {
        Ok(self.connection.execute_batch(sql)?)
    }
}

impl Drop for Direct<'_> {
    fn drop(&mut self) {
        if !self.connection.is_autocommit() {
            // What cannot be undone is found by whoever uses the connection next.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

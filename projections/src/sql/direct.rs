//! SQLite without a thread between: connections that are used where they are called.
//!
//! A statement through `sqlx` is a hop to a thread of the connection and back, about 20 µs on a small
//! machine, so rows had to travel in large statements, which SQLite runs with a journal of their own.
//! Here a statement carries one row and costs what SQLite needs for it (measured: a third). Whoever
//! uses it must not be where waiting for a disk holds up others.

use super::{Args, Bound, Text};
use crate::Error;
use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{CachedStatement, Connection, params_from_iter};

/// A transaction on a connection of its own; undone when it is dropped.
pub(super) struct Direct<'t> {
    connection: &'t mut Connection,
}

/// A parameter, owned or shared.
#[derive(Debug)]
pub(crate) enum Param {
    Null,
    Int(i64),
    Text(Text),
    Id([u8; 16]),
    Bytes(Vec<u8>),
}

/// A row of an answer.
#[derive(Debug)]
pub struct Values(Vec<Value>);

impl Values {
    /// From the first column on.
    pub(crate) fn values(&self) -> &[Value] {
        &self.0
    }

    pub(super) fn get<'v, T: FromValue<'v>>(&'v self, index: usize) -> Result<T, Error> {
        let value = self.0.get(index).and_then(T::from_value);
        value.ok_or_else(|| Error::Damaged(format!("column {index} holds something else")))
    }
}

/// What a column can be read as; `None`: it holds something else.
pub(super) trait FromValue<'v>: Sized {
    fn from_value(value: &'v Value) -> Option<Self>;
}

impl FromValue<'_> for i64 {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Integer(value) = value {
            Some(*value)
        } else {
            None
        }
    }
}

impl<'v> FromValue<'v> for &'v [u8] {
    fn from_value(value: &'v Value) -> Option<Self> {
        if let Value::Blob(bytes) = value {
            Some(bytes)
        } else {
            None
        }
    }
}

impl<'v> FromValue<'v> for &'v str {
    fn from_value(value: &'v Value) -> Option<Self> {
        if let Value::Text(text) = value {
            Some(text)
        } else {
            None
        }
    }
}

impl<'v, T: FromValue<'v>> FromValue<'v> for Option<T> {
    fn from_value(value: &'v Value) -> Option<Self> {
        if *value == Value::Null {
            Some(None)
        } else {
            T::from_value(value).map(Some)
        }
    }
}

impl ToSql for Param {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Null => ValueRef::Null,
            Self::Int(value) => ValueRef::Integer(*value),
            Self::Text(text) => ValueRef::Text(text.as_str().as_bytes()),
            Self::Id(bytes) => ValueRef::Blob(bytes),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

impl<'t> Direct<'t> {
    /// Begins a transaction that will write.
    pub(super) fn begin(connection: &'t mut Connection) -> Result<Self, Error> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self { connection })
    }

    pub(super) fn commit(self) -> Result<(), Error> {
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    pub(super) fn rollback(self) -> Result<(), Error> {
        self.connection.execute_batch("ROLLBACK")?;
        Ok(())
    }

    pub(super) fn execute(&mut self, sql: &str, params: &[Param]) -> Result<u64, Error> {
        let mut statement = prepare(self.connection, sql)?;
        Ok(statement.execute(params_from_iter(params))? as u64)
    }

    pub(super) fn fetch_all(&mut self, sql: &str, params: &[Param]) -> Result<Vec<Values>, Error> {
        fetch_all(self.connection, sql, params)
    }

    /// Runs one statement for every row.
    pub(super) fn execute_each<T>(
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

    pub(super) fn execute_all(&mut self, sql: &str) -> Result<(), Error> {
        Ok(self.connection.execute_batch(sql)?)
    }
}

fn prepare<'c>(connection: &'c Connection, sql: &str) -> Result<CachedStatement<'c>, Error> {
    let statement = connection.prepare_cached(sql)?;
    debug_assert!(
        (1..=statement.parameter_count()).all(|n| {
            let name = statement.parameter_name(n);
            name.is_none_or(|name| !name.starts_with('$') || name == format!("${n}"))
        }),
        "SQLite numbers `$n` in the order in which they stand in `{sql}`"
    );
    Ok(statement)
}

/// All rows that a statement returns.
pub(crate) fn fetch_all(
    connection: &Connection,
    sql: &str,
    params: &[Param],
) -> Result<Vec<Values>, Error> {
    let mut statement = prepare(connection, sql)?;
    let columns = statement.column_count();
    let read = |row: &rusqlite::Row<'_>| (0..columns).map(|i| row.get(i)).collect();
    let rows = statement.query_map(params_from_iter(params), read)?;
    Ok(rows
        .map(|row| row.map(Values))
        .collect::<Result<Vec<_>, _>>()?)
}

impl Drop for Direct<'_> {
    fn drop(&mut self) {
        if !self.connection.is_autocommit() {
            // What cannot be undone is found by whoever uses the connection next.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

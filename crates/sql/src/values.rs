//! Parameters and rows of SQLite connections that do not use `sqlx`.

use crate::error::Error;
use crate::text::Text;
use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{CachedStatement, Connection, params_from_iter};

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
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.0
    }

    pub(crate) fn get<'v, T: FromValue<'v>>(&'v self, index: usize) -> Result<T, Error> {
        let value = self.0.get(index).and_then(T::from_value);
        value.ok_or_else(|| Error::Damaged(format!("column {index} holds something else")))
    }
}

/// What a column can be read as; `None`: it holds something else.
pub(crate) trait FromValue<'v>: Sized {
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

pub(crate) fn prepare<'c>(
    connection: &'c Connection,
    sql: &str,
) -> Result<CachedStatement<'c>, Error> {
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

//! All rows as text, for comparing read models with each other.

use crate::sql::{Row, mismatch, original};
use crate::{Error, ReadModels};
use sqlx::{AssertSqlSafe, Column, Database, Decode, Type, TypeInfo, ValueRef};
use std::fmt::Write;
use std::sync::Arc;

/// Each table with the order of its rows.
const TABLES: [(&str, &str); 10] = [
    ("tasks", "created_position"),
    ("task_bodies", "created_position"),
    ("attempts", "task_no, attempt"),
    ("runs", "run_no"),
    ("flow_summary", "flow_no"),
    ("rootless_flows", "flow_id"),
    ("open_runs", "flow_no"),
    ("task_counts", "user_key, bucket, status, priority, is_root"),
    ("created_buckets", "bucket"),
    ("checkpoints", "name"),
];

impl ReadModels {
    /// All tables, one line for each row, in an order that depends on nothing but the rows. Two
    /// read models of the same log at the same position give the same text, byte for byte. For
    /// tests and repair: the whole text is held in memory. Cost: O(rows).
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn dump(&self) -> Result<String, Error> {
        let mut tx = self.read().await?;
        let mut text = String::new();
        for (table, order) in TABLES {
            let sql = format!("SELECT * FROM {table} ORDER BY {order}");
            let args = tx.args();
            for row in tx.fetch_all(AssertSqlSafe(sql), args).await? {
                text.push_str(table);
                match &row {
                    Row::Sqlite(row) => write_row(row, &mut text, |stored| Arc::from(stored))?,
                    Row::Postgres(row) => write_row(row, &mut text, original)?,
                    // Readers have none.
                    Row::Direct(_) => return Err(mismatch()),
                }
                text.push('\n');
            }
        }
        Ok(text)
    }
}

/// Writes all columns; `original` gives the text of which a stored one was made.
fn write_row<'r, R>(
    row: &'r R,
    text: &mut String,
    original: impl Fn(&str) -> Arc<str>,
) -> Result<(), Error>
where
    R: sqlx::Row,
    usize: sqlx::ColumnIndex<R>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    &'r [u8]: Decode<'r, R::Database> + Type<R::Database>,
    &'r str: Decode<'r, R::Database> + Type<R::Database>,
    <R::Database as Database>::Column: Column,
{
    for (i, column) in row.columns().iter().enumerate() {
        let value = row.try_get_raw(i)?;
        let kind = value.type_info().name().to_owned();
        let written = match (value.is_null(), kind.as_str()) {
            (true, _) => "null".to_owned(),
            (false, "INTEGER" | "INT8") => row.try_get::<i64, _>(i)?.to_string(),
            (false, "BLOB" | "BYTEA") => hex(row.try_get(i)?),
            (false, _) => format!("{:?}", original(row.try_get(i)?)),
        };
        write!(text, " {}={written}", column.name()).expect("writing to a string cannot fail");
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}

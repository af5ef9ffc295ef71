//! All rows as text, for comparing read models with each other.

use crate::{Error, ReadModels};
use rusqlite::types::Value;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Column, Row as _, TypeInfo, ValueRef};
use std::fmt::Write;
use taskledger_sql::{Columns, Engine, Row, Tx, Values, original};

/// Each table with the order of its rows.
const TABLES: [(&str, &str); 16] = [
    ("tasks", "created_position"),
    ("task_bodies", "created_position"),
    ("task_labels", "task_no, term"),
    ("attempts", "task_no, attempt"),
    ("runs", "run_no"),
    ("run_status", "run_no"),
    ("run_said", "run_no, version"),
    ("run_past", "run_no, left_position"),
    ("run_output", "run_no, ordinal, number"),
    ("flow_summary", "flow_no"),
    ("rootless_flows", "flow_id"),
    ("open_runs", "flow_no"),
    (
        "task_counts",
        "user_key, role, bucket, status, priority, is_root",
    ),
    ("created_buckets", "bucket"),
    ("damaged_flows", "flow"),
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
            let rows = tx.fetch_all(AssertSqlSafe(sql), args).await?;
            let names = match tx.engine() {
                Engine::Sqlite => names(&mut tx, table).await?,
                Engine::Postgres => Vec::new(),
            };
            for row in rows {
                text.push_str(table);
                match &row {
                    Row::Direct(row) => write_values(&names, row, &mut text),
                    Row::Postgres(row) => write_row(row, &mut text)?,
                    Row::Sqlite(_) => {
                        let reason = "a reader gave a row of another kind";
                        return Err(Error::Damaged(reason.to_owned()));
                    }
                }
                text.push('\n');
            }
        }
        Ok(text)
    }
}

/// The columns of a table of SQLite, in order.
async fn names(tx: &mut Tx<'_>, table: &str) -> Result<Vec<String>, Error> {
    let sql = format!("SELECT name FROM pragma_table_info('{table}')");
    let args = tx.args();
    let rows = tx.fetch_all(AssertSqlSafe(sql), args).await?;
    rows.iter()
        .map(|row| Ok(Columns::of(row).word()?.to_owned()))
        .collect()
}

fn write_values(names: &[String], row: &Values, text: &mut String) {
    for (name, value) in names.iter().zip(row.values()) {
        let written = match value {
            Value::Null => "null".to_owned(),
            Value::Integer(n) => n.to_string(),
            Value::Real(n) => n.to_string(),
            Value::Text(stored) => format!("{stored:?}"),
            Value::Blob(bytes) => hex(bytes),
        };
        write_column(name, &written, text);
    }
}

fn write_row(row: &PgRow, text: &mut String) -> Result<(), Error> {
    for (i, column) in row.columns().iter().enumerate() {
        let value = row.try_get_raw(i)?;
        let kind = value.type_info().name().to_owned();
        let written = match (value.is_null(), kind.as_str()) {
            (true, _) => "null".to_owned(),
            (false, "INT8") => row.try_get::<i64, _>(i)?.to_string(),
            (false, "BYTEA") => hex(row.try_get(i)?),
            (false, _) => format!("{:?}", original(row.try_get(i)?)),
        };
        write_column(column.name(), &written, text);
    }
    Ok(())
}

fn write_column(name: &str, written: &str, text: &mut String) {
    write!(text, " {name}={written}").expect("writing to a string cannot fail");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}

//! All rows as text, for comparing read models with each other.

use crate::{Error, ReadModels};
use sqlx::{AssertSqlSafe, Column, Row, TypeInfo, ValueRef};
use std::fmt::Write;

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
        let mut tx = self.readers.begin().await?;
        let mut text = String::new();
        for (table, order) in TABLES {
            let sql = format!("SELECT * FROM {table} ORDER BY {order}");
            for row in sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut *tx).await? {
                text.push_str(table);
                for (i, column) in row.columns().iter().enumerate() {
                    let value = row.try_get_raw(i)?;
                    let kind = value.type_info().name().to_owned();
                    let written = match (value.is_null(), kind.as_str()) {
                        (true, _) => "null".to_owned(),
                        (false, "INTEGER") => row.try_get::<i64, _>(i)?.to_string(),
                        (false, "BLOB") => hex(row.try_get(i)?),
                        (false, _) => format!("{:?}", row.try_get::<&str, _>(i)?),
                    };
                    write!(text, " {}={written}", column.name())
                        .expect("writing to a string cannot fail");
                }
                text.push('\n');
            }
        }
        Ok(text)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}

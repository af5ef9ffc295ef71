//! Statements that carry many rows, and the conversions between our types and columns.
//!
//! Each statement is a hop to the connection's thread, so rows travel in groups. Only four group
//! sizes exist per statement: the cache of prepared statements stays small.

use crate::Error;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe, Row};
use std::sync::Arc;
use taskledger_domain::task::{Priority, Progress, Status};
use taskledger_domain::{Payload, Position, Timestamp};
use uuid::Uuid;

/// Rows in one statement, largest group first. 128 rows of 26 columns stay far below SQLite's
/// 32,766 parameters, and a hop of about 20 µs is shared by 128 rows.
const GROUPS: [usize; 4] = [128, 32, 8, 1];

/// Collects the parameters of a statement.
#[derive(Default)]
pub(crate) struct Args(SqliteArguments);

impl Args {
    pub(crate) fn int(&mut self, value: impl Into<Option<i64>>) {
        self.0.add(value.into()).expect("integers always encode");
    }
    pub(crate) fn text(&mut self, value: impl Into<Option<Arc<str>>>) {
        self.0.add(value.into()).expect("text always encodes");
    }
    pub(crate) fn name(&mut self, value: impl Into<Option<&'static str>>) {
        self.0.add(value.into()).expect("text always encodes");
    }
    pub(crate) fn owned(&mut self, value: String) {
        self.0.add(value).expect("text always encodes");
    }
    pub(crate) fn payload(&mut self, value: Option<&Payload>) {
        let text = value.map(Payload::as_str);
        self.0.add(text).expect("text always encodes");
    }
    pub(crate) fn id(&mut self, value: Uuid) {
        self.0
            .add(value.as_bytes().to_vec())
            .expect("bytes always encode");
    }
    pub(crate) fn opt_id(&mut self, value: Option<Uuid>) {
        match value {
            Some(id) => self.id(id),
            None => self.0.add(None::<Vec<u8>>).expect("null always encodes"),
        }
    }
    pub(crate) fn position(&mut self, value: Position) {
        self.int(int(value));
    }
    pub(crate) fn time(&mut self, value: impl Into<Option<Timestamp>>) {
        self.int(value.into().map(|t| t.0));
    }
    /// Parameters so far: the number of the last one.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
    pub(crate) fn into_inner(self) -> SqliteArguments {
        self.0
    }
}

/// A statement `head (?, ..), (?, ..) tail` in its group sizes.
pub(crate) struct MultiRow {
    sql: [Arc<str>; GROUPS.len()],
}

impl MultiRow {
    /// `columns` parameters for each row.
    pub(crate) fn new(head: &str, columns: usize, tail: &str) -> Self {
        let row = format!("({})", vec!["?"; columns].join(","));
        Self {
            sql: GROUPS
                .map(|n| format!("{head} {} {tail}", vec![row.as_str(); n].join(",")).into()),
        }
    }

    /// The text of its largest group.
    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        &self.sql[0]
    }

    /// Runs it for all `rows`; `bind` gives each row's parameters in order.
    pub(crate) async fn execute<T>(
        &self,
        db: &mut SqliteConnection,
        mut rows: &[T],
        bind: impl Fn(&T, &mut Args),
    ) -> Result<(), Error> {
        for (group, sql) in GROUPS.into_iter().zip(&self.sql) {
            while rows.len() >= group {
                let (now, later) = rows.split_at(group);
                rows = later;
                let mut args = Args::default();
                for row in now {
                    bind(row, &mut args);
                }
                sqlx::query_with(AssertSqlSafe(Arc::clone(sql)), args.into_inner())
                    .execute(&mut *db)
                    .await?;
            }
        }
        Ok(())
    }

    /// Runs it for all `rows` and collects what it returns.
    pub(crate) async fn fetch<T>(
        &self,
        db: &mut SqliteConnection,
        mut rows: &[T],
        bind: impl Fn(&T, &mut Args),
    ) -> Result<Vec<SqliteRow>, Error> {
        let mut found = Vec::new();
        for (group, sql) in GROUPS.into_iter().zip(&self.sql) {
            while rows.len() >= group {
                let (now, later) = rows.split_at(group);
                rows = later;
                let mut args = Args::default();
                for row in now {
                    bind(row, &mut args);
                }
                let part = sqlx::query_with(AssertSqlSafe(Arc::clone(sql)), args.into_inner())
                    .fetch_all(&mut *db)
                    .await?;
                found.extend(part);
            }
        }
        Ok(found)
    }
}

/// A log position as a column value.
pub(crate) fn int(position: Position) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

/// Reads a row's columns from left to right.
pub(crate) struct Columns<'r> {
    row: &'r SqliteRow,
    next: usize,
}

impl<'r> Columns<'r> {
    pub(crate) fn of(row: &'r SqliteRow) -> Self {
        Self { row, next: 0 }
    }

    fn get<T>(&mut self) -> Result<T, Error>
    where
        T: sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
    {
        let index = self.next;
        self.next += 1;
        Ok(self.row.try_get(index)?)
    }

    pub(crate) fn int(&mut self) -> Result<i64, Error> {
        self.get()
    }
    pub(crate) fn opt_int(&mut self) -> Result<Option<i64>, Error> {
        self.get()
    }
    pub(crate) fn number<T: TryFrom<i64>>(&mut self) -> Result<T, Error> {
        let value: i64 = self.get()?;
        T::try_from(value).map_err(|_| Error::Damaged(format!("`{value}` is out of range")))
    }
    pub(crate) fn text(&mut self) -> Result<&'r str, Error> {
        self.get()
    }
    pub(crate) fn opt_text(&mut self) -> Result<Option<Arc<str>>, Error> {
        Ok(self.get::<Option<&str>>()?.map(Arc::from))
    }
    pub(crate) fn id(&mut self) -> Result<Uuid, Error> {
        uuid(self.get()?)
    }
    pub(crate) fn opt_id(&mut self) -> Result<Option<Uuid>, Error> {
        self.get::<Option<&[u8]>>()?.map(uuid).transpose()
    }
    pub(crate) fn time(&mut self) -> Result<Timestamp, Error> {
        self.get().map(Timestamp)
    }
    pub(crate) fn opt_time(&mut self) -> Result<Option<Timestamp>, Error> {
        Ok(self.get::<Option<i64>>()?.map(Timestamp))
    }
    pub(crate) fn status(&mut self) -> Result<Status, Error> {
        let text = self.text()?;
        Status::parse(text).ok_or_else(|| Error::Damaged(format!("`{text}` is no status")))
    }
    pub(crate) fn priority(&mut self) -> Result<Priority, Error> {
        let value = self.number()?;
        Priority::new(value).ok_or_else(|| Error::Damaged(format!("`{value}` is no priority")))
    }
    pub(crate) fn progress(&mut self) -> Result<Progress, Error> {
        self.number().map(Progress::from_millionths)
    }
    pub(crate) fn payload(&mut self) -> Result<Payload, Error> {
        json(self.text()?)
    }
    pub(crate) fn opt_payload(&mut self) -> Result<Option<Payload>, Error> {
        self.get::<Option<&str>>()?.map(json).transpose()
    }
    /// A value that is stored under its serde name, such as `"running"`.
    pub(crate) fn named<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, Error> {
        let text = self.text()?;
        T::deserialize(serde::de::value::StrDeserializer::<serde::de::value::Error>::new(text))
            .map_err(|e| Error::Damaged(format!("`{text}`: {e}")))
    }
}

fn uuid(bytes: &[u8]) -> Result<Uuid, Error> {
    Uuid::from_slice(bytes).map_err(|e| Error::Damaged(format!("an id: {e}")))
}

/// JSON text of a column.
pub(crate) fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|e| Error::Damaged(format!("JSON text: {e}")))
}

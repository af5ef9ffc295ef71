//! Reads the values of a row as types.

use crate::error::Error;
use crate::postgres;
use crate::row::Row;
use crate::values::FromValue;
use sqlx::{Postgres, Row as _, Sqlite};
use std::sync::Arc;
use taskledger_domain::task::{Priority, Progress, Status};
use taskledger_domain::{Payload, Timestamp};
use uuid::Uuid;

/// Reads a row's columns from left to right.
#[derive(Debug)]
pub struct Columns<'r> {
    row: &'r Row,
    next: usize,
}

impl<'r> Columns<'r> {
    /// The columns of a row, from the first on.
    #[must_use]
    pub fn of(row: &'r Row) -> Self {
        Self { row, next: 0 }
    }

    fn get<T>(&mut self) -> Result<T, Error>
    where
        T: sqlx::Decode<'r, Sqlite>
            + sqlx::Type<Sqlite>
            + sqlx::Decode<'r, Postgres>
            + sqlx::Type<Postgres>
            + FromValue<'r>,
    {
        let index = self.next;
        self.next += 1;
        Ok(match self.row {
            Row::Sqlite(row) => row.try_get(index)?,
            Row::Direct(row) => row.get(index)?,
            Row::Postgres(row) => row.try_get(index)?,
        })
    }

    /// An integer.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn int(&mut self) -> Result<i64, Error> {
        self.get()
    }
    /// An integer or null.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn opt_int(&mut self) -> Result<Option<i64>, Error> {
        self.get()
    }
    /// An integer in the range of `T`.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn number<T: TryFrom<i64>>(&mut self) -> Result<T, Error> {
        let value: i64 = self.get()?;
        T::try_from(value).map_err(|_| Error::Damaged(format!("`{value}` is out of range")))
    }
    /// Bytes.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn bytes(&mut self) -> Result<&'r [u8], Error> {
        self.get()
    }
    /// Bytes or null.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn opt_bytes(&mut self) -> Result<Option<&'r [u8]>, Error> {
        self.get()
    }
    /// A text of this program: a word or JSON.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn word(&mut self) -> Result<&'r str, Error> {
        self.get()
    }
    /// A text of this program, or null.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn opt_word(&mut self) -> Result<Option<&'r str>, Error> {
        self.get()
    }
    /// A text that a caller chose.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn text(&mut self) -> Result<Arc<str>, Error> {
        let stored = self.get()?;
        Ok(self.original(stored))
    }
    /// Such a text or null.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn opt_text(&mut self) -> Result<Option<Arc<str>>, Error> {
        let stored = self.get::<Option<&str>>()?;
        Ok(stored.map(|text| self.original(text)))
    }
    fn original(&self, stored: &str) -> Arc<str> {
        match self.row {
            Row::Sqlite(_) | Row::Direct(_) => Arc::from(stored),
            Row::Postgres(_) => Arc::from(postgres::original(stored)),
        }
    }
    /// An id.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn id(&mut self) -> Result<Uuid, Error> {
        uuid(self.get()?)
    }
    /// An id or null.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn opt_id(&mut self) -> Result<Option<Uuid>, Error> {
        self.get::<Option<&[u8]>>()?.map(uuid).transpose()
    }
    /// A time.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn time(&mut self) -> Result<Timestamp, Error> {
        self.get().map(Timestamp)
    }
    /// A time or null.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn opt_time(&mut self) -> Result<Option<Timestamp>, Error> {
        Ok(self.get::<Option<i64>>()?.map(Timestamp))
    }
    /// A status.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn status(&mut self) -> Result<Status, Error> {
        let text = self.word()?;
        Status::parse(text).ok_or_else(|| Error::Damaged(format!("`{text}` is not a status")))
    }
    /// A priority.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn priority(&mut self) -> Result<Priority, Error> {
        let value = self.number()?;
        Priority::new(value).ok_or_else(|| Error::Damaged(format!("`{value}` is not a priority")))
    }
    /// A progress.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn progress(&mut self) -> Result<Progress, Error> {
        self.number().map(Progress::from_millionths)
    }
    /// JSON text of an object.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn payload(&mut self) -> Result<Payload, Error> {
        json(self.word()?)
    }
    /// The same or null.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn opt_payload(&mut self) -> Result<Option<Payload>, Error> {
        self.get::<Option<&str>>()?.map(json).transpose()
    }
    /// A value that is stored under its serde name, such as `"running"`.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the column holds something else.
    pub fn named<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, Error> {
        let text = self.word()?;
        T::deserialize(serde::de::value::StrDeserializer::<serde::de::value::Error>::new(text))
            .map_err(|e| Error::Damaged(format!("`{text}`: {e}")))
    }
}

fn uuid(bytes: &[u8]) -> Result<Uuid, Error> {
    Uuid::from_slice(bytes).map_err(|e| Error::Damaged(format!("an id: {e}")))
}

/// The text of which PostgreSQL's `stored` was made.
#[must_use]
pub fn original(stored: &str) -> Arc<str> {
    Arc::from(postgres::original(stored))
}

/// Reads JSON text of a column.
///
/// # Errors
/// [`Error::Damaged`]: it is something else.
pub fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|e| Error::Damaged(format!("JSON text: {e}")))
}

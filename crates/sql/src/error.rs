//! The errors of a statement. All of it is failure; the caller of the server can mend none.

/// A statement was not carried out, or its answer cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database did not answer, or refused; retry.
    #[error("the database is not available")]
    Unavailable(#[source] sqlx::Error),
    /// A file of SQLite did not take or give rows; retry.
    #[error("the database is not available")]
    Sqlite(#[from] rusqlite::Error),
    /// A stored value cannot be read.
    #[error("the database is damaged: {0}")]
    Damaged(String),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        if let sqlx::Error::ColumnDecode { index, source } = &error {
            return Self::Damaged(format!("column {index}: {source}"));
        }
        Self::Unavailable(error)
    }
}

/// Parameters of one engine met a transaction of another, or a reader was asked to write: a fault of ours.
pub(crate) fn mismatch() -> Error {
    Error::Damaged("parameters of one engine met a statement of the other".to_owned())
}

/// An error with all of its causes, for people.
#[must_use]
pub fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(": ");
        text.push_str(&source.to_string());
        next = source.source();
    }
    text
}

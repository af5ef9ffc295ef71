//! A connection that writes, to either engine.

use super::copier::Copier;
use crate::Error;
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use taskledger_sql::Tx;

/// A connection to either engine.
pub(super) enum Conn {
    File(Box<File>),
    Postgres(Box<PgConnection>),
}

/// A connection to a file.
pub(super) struct File {
    pub(super) connection: rusqlite::Connection,
    /// Absent for a file without a write-ahead log.
    copier: Option<Copier>,
}

impl Conn {
    pub(super) fn file(connection: rusqlite::Connection, copier: Option<Copier>) -> Self {
        Self::File(Box::new(File { connection, copier }))
    }

    pub(super) async fn begin(&mut self) -> Result<Tx<'_>, Error> {
        Ok(match self {
            Self::File(file) => Tx::direct(&mut file.connection)?,
            Self::Postgres(db) => Tx::postgres(
                db.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED")
                    .await?,
            ),
        })
    }

    /// Something was committed.
    pub(super) fn committed(&mut self) {
        if let Self::File(file) = self
            && let Some(copier) = &mut file.copier
        {
            copier.after_commit(&file.connection);
        }
    }

    pub(super) async fn close(self) -> Result<(), Error> {
        match self {
            Self::File(file) => {
                // The last one to close the file leaves no log beside it.
                let File { connection, copier } = *file;
                drop(copier);
                connection.close().map_err(|(_, error)| error)?;
            }
            Self::Postgres(db) => db.close().await?,
        }
        Ok(())
    }
}

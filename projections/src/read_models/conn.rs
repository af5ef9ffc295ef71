//! A connection that writes, to either engine.

use crate::Error;
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use taskledger_sql::Tx;

/// A connection to either engine.
pub(super) enum Conn {
    File(Box<rusqlite::Connection>),
    Postgres(Box<PgConnection>),
}

impl Conn {
    pub(super) async fn begin(&mut self) -> Result<Tx<'_>, Error> {
        Ok(match self {
            Self::File(db) => Tx::direct(db)?,
            Self::Postgres(db) => Tx::postgres(
                db.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED")
                    .await?,
            ),
        })
    }

    pub(super) async fn close(self) -> Result<(), Error> {
        match self {
            Self::File(db) => db.close().map_err(|(_, error)| error)?,
            Self::Postgres(db) => db.close().await?,
        }
        Ok(())
    }
}

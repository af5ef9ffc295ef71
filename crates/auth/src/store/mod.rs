//! The tables of tokens, secrets and audit, on SQLite (`auth.db` in the data folder) or PostgreSQL, under one code.
//!
//! Owns: connections, schema, and the rows of tokens, of JWTs that are refused, of sealed secrets and of the audit log. May not: decide
//! who may do what, or see a secret (it gets digests and sealed values). Whoever changes something calls [`AuthStore::change`], writes, adds its
//! row to the audit log in the same transaction ([`append`]) and commits: then nothing changes without a row.
//! It cannot be made again from the log, so it is never thrown away.

mod audit;
mod connect;
mod denied;
pub(crate) mod secrets;
mod tokens;

pub use audit::{AuditFilter, AuditRow, append};
pub use connect::{AUTH_FILE, STEPS};
pub use denied::{DENIED_MAX, DeniedJwt, DeniedRow};
pub(crate) use denied::{count_denied, deny};
pub use secrets::{SecretOwner, SecretRow};
pub use tokens::{NewToken, Owner, TOKENS_MAX, TokenRow, TokenState};
pub(crate) use tokens::{count, hold, insert, revoke, rotate};

use std::time::Duration;
use taskledger_beside::Connections;
use taskledger_domain::Timestamp;
use taskledger_sql::{Columns, Tx, in_slices, with_sources};
use tokio::time::timeout;

/// How long one order to the store may take: beyond it the connection is taken for dead.
const ORDER_WAIT: Duration = Duration::from_secs(10);

/// The store cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database does not answer; retry.
    #[error("the store of tokens is not available: {0}")]
    Database(#[from] sqlx::Error),
    /// No answer in time; retry.
    #[error("the store of tokens gave no answer within {ORDER_WAIT:?}")]
    Late,
    /// A stored value cannot be read.
    #[error("the store of tokens is damaged: {0}")]
    Damaged(String),
}

impl From<taskledger_sql::Error> for Error {
    fn from(error: taskledger_sql::Error) -> Self {
        match error {
            taskledger_sql::Error::Unavailable(source) => Self::Database(source),
            taskledger_sql::Error::Damaged(reason) => Self::Damaged(reason),
            // None of its statements runs on a connection of this kind.
            other @ taskledger_sql::Error::Sqlite(_) => Self::Damaged(with_sources(&other)),
        }
    }
}

/// The tables in one place. Lasts as long as the server; `close` lets go of the connections.
pub struct AuthStore {
    connections: Connections,
}

impl std::fmt::Debug for AuthStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthStore").finish_non_exhaustive()
    }
}

impl AuthStore {
    fn new(connections: Connections) -> Self {
        Self { connections }
    }

    /// Runs one order to its end or not at all, within a few seconds.
    ///
    /// # Errors
    /// Those of the order, and [`Error::Late`].
    pub async fn order<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        timeout(ORDER_WAIT, work).await.map_err(|_| Error::Late)?
    }

    /// A transaction that reads one consistent state.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn read(&self) -> Result<Tx<'static>, Error> {
        Ok(self.connections.read().await?)
    }

    /// A transaction that changes something, after all that began before it. It does not tell other servers.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn write(&self) -> Result<Tx<'static>, Error> {
        Ok(self.connections.write_in_turn().await?)
    }

    /// The same, and all servers forget what they know within a second of its commit.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn change(&self) -> Result<Tx<'static>, Error> {
        let mut tx = self.connections.write().await?;
        let args = tx.args();
        tx.execute(RAISE, args).await?;
        Ok(tx)
    }

    /// A number that rises with each change.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn generation(&self) -> Result<i64, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let args = tx.args();
            let generation = Columns::of(&tx.fetch_one(GENERATION, args).await?).int()?;
            tx.commit().await?;
            Ok(generation)
        };
        self.order(work).await
    }

    /// Removes what `statement` finds from before `old`, so many rows at a time. Returns how many.
    async fn sweep(
        &self,
        (statement, slice): (&'static str, i64),
        old: Timestamp,
    ) -> Result<u64, Error> {
        in_slices(slice, || {
            let work = async move {
                let mut tx = self.write().await?;
                let mut args = tx.args();
                args.time(old);
                args.int(slice);
                let removed = tx.execute(statement, args).await?;
                tx.commit().await?;
                Ok(removed)
            };
            self.order(work)
        })
        .await
    }

    /// Closes all connections.
    pub async fn close(&self) {
        if !self.connections.close().await {
            tracing::warn!("the connections to the tokens were not closed in time");
        }
    }
}

const GENERATION: &str = "SELECT generation FROM state WHERE one = 1";
const RAISE: &str = "UPDATE state SET generation = generation + 1 WHERE one = 1";

//! The pool that reads.
//!
//! Owns: its connections, and the rule that a read whose connection broke is asked once more, since
//! reading twice does no harm: a server that ends a session is no reason to fail a call.

use super::options::Options;
use super::queries::{Missing, Stopped};
use super::{failure, open, queries, row};
use crate::Error;
use crate::chain::Mark;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, PgPool, Postgres, Row as _};
use std::time::Duration;
use taskledger_domain::Position;

/// A statement with its arguments.
pub(super) type PgStatement<'q> = Query<'q, Postgres, PgArguments>;

/// The pool that reads.
#[derive(Debug)]
pub(super) struct Reads {
    pool: PgPool,
    /// The longest that a call may take, as seen from here.
    patience: Duration,
}

/// A connection while statements run on it. One whose statement was given up goes with it: the pool
/// would wait for its peer, which may be dead, for as long as TCP does, and keep its place meanwhile.
pub(super) struct Lent {
    connection: PoolConnection<Postgres>,
    /// The statement has come to its end.
    is_free: bool,
}

impl Lent {
    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// All that was asked has come to its end.
    pub(super) const fn came_back(&mut self) {
        self.is_free = true;
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.is_free {
            self.connection.close_on_drop();
        }
    }
}

impl Reads {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            pool: open::pool(options, options.connections),
            patience: options.acquire_timeout + options.statement_timeout + open::CLIENT_GRACE,
        }
    }

    #[cfg(test)]
    pub(super) const fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Closes the connections; those whose peers do not answer are left to the system.
    pub(super) async fn close(&self) {
        let _ = tokio::time::timeout(open::CLIENT_GRACE, self.pool.close()).await;
    }

    /// A connection for several statements.
    pub(super) async fn lend(&self) -> Result<Lent, sqlx::Error> {
        Ok(Lent {
            connection: self.pool.acquire().await?,
            is_free: false,
        })
    }

    /// How long an answer is waited for.
    pub(super) const fn patience(&self) -> Duration {
        self.patience
    }

    /// All rows of a statement that may be repeated.
    pub(super) async fn rows<'q>(
        &self,
        ask: impl Fn() -> PgStatement<'q> + Send,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        match self.once(ask()).await {
            Err(error) if failure::is_broken(&error) => self.once(ask()).await,
            answer => answer,
        }
    }

    async fn once(&self, asked: PgStatement<'_>) -> Result<Vec<PgRow>, sqlx::Error> {
        let mut lent = self.lend().await?;
        let asking = asked.fetch_all(&mut *lent.connection);
        // Silence is not an error of the connection: asking again would take as long again.
        let answer = open::within(self.patience, asking).await?;
        lent.is_free = true;
        answer
    }

    /// Bytes of the database.
    pub(super) async fn size_bytes(&self) -> Result<u64, Error> {
        let rows = self.rows(|| sqlx::query(queries::SIZE)).await;
        let size = rows.and_then(|rows| {
            let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
            Ok(row.try_get::<i64, _>(0)?.cast_unsigned())
        });
        size.map_err(|error| failure::of_read(&error, 0))
    }

    /// Connections that are open, and those of them that nobody uses.
    pub(super) fn connections(&self) -> (u64, u64) {
        (self.pool.size().into(), self.pool.num_idle() as u64)
    }

    /// Position and hash of the last event.
    pub(super) async fn chain_head(&self) -> Result<Option<Mark>, sqlx::Error> {
        let rows = self.rows(|| sqlx::query(queries::CHAIN_HEAD)).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let position = row.try_get::<i64, _>(0)?.cast_unsigned();
        let hash: Option<&[u8]> = row.try_get(1)?;
        let hash = hash.map(row::hash).transpose();
        let hash = hash.map_err(sqlx::Error::Protocol)?;
        Ok(hash.map(|hash| Mark { position, hash }))
    }

    /// The head in the database.
    pub(super) async fn head(&self) -> Result<Position, sqlx::Error> {
        let rows = self.rows(|| sqlx::query(queries::HEAD)).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(row.try_get::<i64, _>(0)?.cast_unsigned())
    }

    /// The error for a caller whose read of a stream gave nothing. Cost: a query if the stream lacks a version.
    pub(super) async fn error_of(&self, stopped: Stopped) -> Error {
        match stopped {
            Stopped::Sql(error) => failure::of_read(&error, 0),
            Stopped::Row(error) => error,
            Stopped::Missing(missing) => match self.next_after(&missing).await {
                Ok(next) => missing.before(next),
                Err(error) => failure::of_read(&error, 0),
            },
        }
    }

    /// The position of the first event of a stream behind the version that is missing.
    async fn next_after(&self, missing: &Missing) -> Result<Option<Position>, sqlx::Error> {
        let version = i64::try_from(missing.version).unwrap_or(i64::MAX);
        let rows = self.rows(|| {
            sqlx::query(queries::NEXT_OF_STREAM)
                .bind(missing.flow.0)
                .bind(version)
        });
        let position = |row: &PgRow| row.try_get::<i64, _>(0);
        let next = rows.await?.first().map(position).transpose()?;
        Ok(next.map(i64::cast_unsigned))
    }
}

//! The pool that reads.
//!
//! Owns: its connections, and the rule that a read whose connection broke is asked once more, since
//! reading twice does no harm: a server that ends a session is no reason to fail a call.

use super::{Options, failure, open, queries};
use crate::store::Error;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgPool, Postgres, Row as _};
use std::time::Duration;
use taskledger_domain::Position;

/// A statement with its arguments.
pub(super) type Asked<'q> = Query<'q, Postgres, PgArguments>;

/// The pool that reads.
#[derive(Debug)]
pub(super) struct Reads {
    pool: PgPool,
    /// The longest that a call may take, as seen from here.
    patience: Duration,
}

impl Reads {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            pool: open::pool(options, options.connections),
            patience: options.acquire_timeout + options.statement_timeout + open::CLIENT_GRACE,
        }
    }

    pub(super) const fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// All rows of a statement that may be repeated.
    pub(super) async fn rows<'q>(
        &self,
        ask: impl Fn() -> Asked<'q> + Send,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        match self.once(ask()).await {
            Err(error) if failure::is_broken(&error) => self.once(ask()).await,
            answer => answer,
        }
    }

    async fn once(&self, asked: Asked<'_>) -> Result<Vec<PgRow>, sqlx::Error> {
        let answer = tokio::time::timeout(self.patience, asked.fetch_all(&self.pool)).await;
        answer.unwrap_or_else(|_| {
            // Not `Io`: asking again would take as long again.
            Err(sqlx::Error::PoolTimedOut)
        })
    }

    /// The head in the database.
    pub(super) async fn head(&self) -> Result<Position, sqlx::Error> {
        let rows = self.rows(|| sqlx::query(queries::HEAD)).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(row.try_get::<i64, _>(0)?.cast_unsigned())
    }
}

/// What a caller is told.
pub(super) fn told(stopped: queries::Stopped, after: Position) -> Error {
    match stopped {
        queries::Stopped::Sql(error) => failure::of_read(&error, after),
        queries::Stopped::Row(error) => error,
    }
}

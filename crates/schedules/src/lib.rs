//! Schedules: when they are due, and their store beside the log.
//!
//! Owns the tables, on SQLite (`schedules.db` in the data folder) or PostgreSQL, under one code, and the times of cron
//! expressions and recurrence rules (`timing`, pure). A server that looks at a schedule holds its lease; what it
//! decides is recorded before it is done, and only under the newest lease. May not: start anything, or decide who may do
//! what. It cannot be made again from the log, so it is never thrown away.

mod changing;
mod connect;
mod definition;
mod key;
mod reading;
mod recurrence;
mod rows;
mod timing;
mod turns;

pub use changing::{Deleted, Refusal, SCHEDULES_MAX};
pub use connect::{SCHEDULES_FILE, STEPS};
pub use definition::{
    CATCH_UP_SECONDS_DEFAULT, CATCH_UP_SECONDS_MAX, CATCH_UP_SECONDS_MIN, Definition,
    JITTER_SECONDS_MAX, MAX_RUNS_MAX, Overlap, Work,
};
pub use key::{flow_of, jitter_ms, key_by_hand, key_of_time};
pub use recurrence::COUNT_MAX;
pub use rows::{Counters, NewSchedule, Run, Schedule, State};
pub use timing::{Calendar, EVERY_SECONDS_MAX, EXPRESSION_CHARS_MAX, Invalid, Timing};
pub use turns::{LOOK_AGAIN_MS, OPEN_MAX, Outcome, RUNS_KEPT, Step, Turn};

use std::time::Duration;
use taskledger_beside::Connections;
use taskledger_sql::{Tx, with_sources};
use tokio::time::timeout;

/// How long one order to the store may take: beyond it the connection is taken for dead.
const ORDER_WAIT: Duration = Duration::from_secs(10);

/// The store cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database does not answer; retry.
    #[error("the store of schedules is not available: {0}")]
    Database(#[from] sqlx::Error),
    /// No answer in time; retry.
    #[error("the store of schedules gave no answer within {ORDER_WAIT:?}")]
    Late,
    /// A stored value cannot be read.
    #[error("the store of schedules is damaged: {0}")]
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
pub struct ScheduleStore {
    connections: Connections,
}

impl std::fmt::Debug for ScheduleStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScheduleStore").finish_non_exhaustive()
    }
}

impl ScheduleStore {
    fn new(connections: Connections) -> Self {
        Self { connections }
    }

    /// Runs one order to its end or not at all, within a few seconds.
    async fn order<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        timeout(ORDER_WAIT, work).await.map_err(|_| Error::Late)?
    }

    /// A transaction that reads one consistent state.
    async fn read(&self) -> Result<Tx<'static>, Error> {
        Ok(self.connections.read().await?)
    }

    /// A transaction that changes something, after all that began before it.
    async fn write(&self) -> Result<Tx<'static>, Error> {
        Ok(self.connections.write_in_turn().await?)
    }

    /// Closes all connections.
    pub async fn close(&self) {
        if !self.connections.close().await {
            tracing::warn!("the connections to the store of schedules were not closed in time");
        }
    }
}

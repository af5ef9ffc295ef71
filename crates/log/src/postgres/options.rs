//! Options for opening the log in a Postgres database.

use super::place::place;
use sqlx::postgres::PgConnectOptions;
use std::fmt;
use std::time::Duration;
use taskledger_clock::SharedClock;

/// Connections of the pool that reads: reads are short, and a database has few cores for many
/// servers. Appending and waking take one connection each besides.
pub const CONNECTIONS: u32 = 8;
/// How long one statement may run: far above the largest append (64 MiB), and short enough that
/// callers learn of a database that has stopped moving.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a statement waits for a lock, the head row above all. Whoever holds that one for longer
/// is not one of us.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call waits for a connection, and an append for a database that is restarting.
pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Options for opening the log.
#[derive(Clone)]
pub struct Options {
    /// Where the database is and who asks.
    pub connect: PgConnectOptions,
    /// Connections of the pool that reads, at least 1.
    pub connections: u32,
    /// Limit on the time of one statement.
    pub statement_timeout: Duration,
    /// Limit on the time that a statement waits for a lock.
    pub lock_timeout: Duration,
    /// Limit on the time that a call waits for a connection.
    pub acquire_timeout: Duration,
    /// Gives `recorded_at`, unless another server's clock was ahead when it wrote the event before.
    pub clock: SharedClock,
}

impl Options {
    /// The defaults: [`CONNECTIONS`], [`STATEMENT_TIMEOUT`], [`LOCK_TIMEOUT`], [`ACQUIRE_TIMEOUT`].
    #[must_use]
    pub fn new(connect: PgConnectOptions, clock: SharedClock) -> Self {
        Self {
            connect,
            connections: CONNECTIONS,
            statement_timeout: STATEMENT_TIMEOUT,
            lock_timeout: LOCK_TIMEOUT,
            acquire_timeout: ACQUIRE_TIMEOUT,
            clock,
        }
    }
}

impl fmt::Debug for Options {
    /// Without `connect`, which holds a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("place", &place(&self.connect))
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

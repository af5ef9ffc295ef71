//! Waits of tests: longer than users would bear, since a busy machine is no fault.

use sqlx::postgres::PgConnectOptions;
use std::time::Duration;
use taskledger_projections::{Options, Place};

/// For a connection to the database that all tests share.
pub(crate) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(60);

/// Read models in a PostgreSQL database, opened by the test itself.
pub(crate) fn rows_in(connect: PgConnectOptions) -> Options {
    let mut options = Options::postgres(connect);
    if let Place::Postgres(place) = &mut options.place {
        place.acquire_timeout = ACQUIRE_TIMEOUT;
    }
    options
}

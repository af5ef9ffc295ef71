//! Connections to the database: how they are made, and which databases are refused.
//!
//! Owns: [`OpenError`], the settings of each session.

use super::options::Options;
pub(super) use super::place::place;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgConnection, PgPool};
use std::time::Duration;

/// PostgreSQL 14: what the server's developers still mend, and older ones are not tested.
const SERVER_VERSION_MIN: i32 = 140_000;
/// A session of ours is known by this name, unless the connection string has another one.
const APPLICATION_NAME: &str = "taskledger";
/// What a client waits beyond the server's own limit before it takes the connection for dead.
pub(super) const CLIENT_GRACE: Duration = Duration::from_secs(3);
/// SQLSTATEs of a database without our tables.
const UNDEFINED_TABLE: &str = "42P01";
const INVALID_SCHEMA_NAME: &str = "3F000";

/// Why the log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nobody answers there, or not to us; see to the address, the server, the password, TLS.
    #[error("the database {place} cannot be reached: {reason}")]
    Unreachable {
        /// Host, port and database.
        place: String,
        /// What went wrong.
        reason: String,
    },
    /// A newer taskledger uses the database; use that one.
    #[error(
        "the log in {place} has schema version {found}, this program knows versions up to {known}; \
         use the newer program"
    )]
    Newer {
        /// Host, port and database.
        place: String,
        /// The database's schema version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The server or the database cannot hold a log; choose another one.
    #[error("the database {place} cannot hold a log: {reason}")]
    Unfit {
        /// Host, port and database.
        place: String,
        /// What is missing.
        reason: String,
    },
    /// Nothing was ever logged there; see to the name of the database.
    #[error("there is no log in the database {place}")]
    NoLog {
        /// Host, port and database.
        place: String,
    },
    /// Schema steps are missing and this user may not take them; run `taskledger migrate` as the
    /// owner of the database.
    #[error(
        "the schema in {place} is not up to date and user `{user}` may not change it: {reason}; \
         run `taskledger migrate` once as a user who may, and grant this one what `taskledger migrate \
         --help` names",
        reason = said(.source)
    )]
    Forbidden {
        /// Host, port and database.
        place: String,
        /// Who asked.
        user: String,
        /// The error from the server.
        source: sqlx::Error,
    },
    /// Another process holds the lock under which schemas are changed; wait for it, or end it.
    #[error("another process has been changing the schema in {place} for {waited:?}: {}", said(.source))]
    Locked {
        /// Host, port and database.
        place: String,
        /// How long it was waited for.
        waited: Duration,
        /// The error from the server.
        source: sqlx::Error,
    },
    /// The database answers with errors.
    #[error("the log in {place} cannot be used: {}", said(.source))]
    Unusable {
        /// Host, port and database.
        place: String,
        /// The error from the server.
        source: sqlx::Error,
    },
}

/// What a database has said, without what only its developers need.
#[must_use]
pub fn said(error: &sqlx::Error) -> String {
    match error.as_database_error() {
        // The driver adds the line of the server's source.
        Some(database) => database.message().to_owned(),
        None => error.to_string(),
    }
}

impl OpenError {
    /// Nobody answers at this place.
    pub(super) fn unreachable(place: &str, error: &sqlx::Error) -> Self {
        Self::Unreachable {
            place: place.to_owned(),
            reason: said(error),
        }
    }

    /// Why the log, which is only to be read, cannot be.
    pub(super) fn of_reading(place: &str, source: sqlx::Error) -> Self {
        let place = place.to_owned();
        let code = source.as_database_error().and_then(|e| e.code());
        match code.as_deref() {
            Some(UNDEFINED_TABLE | INVALID_SCHEMA_NAME) => Self::NoLog { place },
            Some(_) | None => Self::Unusable { place, source },
        }
    }
}

/// What somebody who may have fallen silent answers in time.
pub(super) async fn within<T>(
    patience: Duration,
    asked: impl Future<Output = T>,
) -> Result<T, sqlx::Error> {
    let answer = tokio::time::timeout(patience, asked).await;
    answer.map_err(|_| sqlx::Error::Protocol(format!("no answer within {patience:?}")))
}

/// A connection with its session set up, within the time that a call may wait for one.
pub(super) async fn connect(options: &Options) -> Result<PgConnection, sqlx::Error> {
    let settings = settings(options);
    let connecting = async {
        let mut connection = named(&options.connect).connect().await?;
        set_up(&mut connection, settings).await?;
        Ok(connection)
    };
    match tokio::time::timeout(options.acquire_timeout, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(sqlx::Error::Io(std::io::Error::new(
            std::io::ErrorKind::TimedOut,
            format!("no answer within {:?}", options.acquire_timeout),
        ))),
    }
}

/// A pool of up to `connections`, all set up alike. Connects when it is first used.
pub(super) fn pool(options: &Options, connections: u32) -> PgPool {
    let settings = settings(options);
    PgPoolOptions::new()
        .max_connections(connections.max(1))
        .acquire_timeout(options.acquire_timeout)
        .after_connect(move |connection, _| Box::pin(set_up(connection, settings.clone())))
        .connect_lazy_with(named(&options.connect))
}

fn named(connect: &PgConnectOptions) -> PgConnectOptions {
    match connect.get_application_name() {
        Some(_) => connect.clone(),
        None => connect.clone().application_name(APPLICATION_NAME),
    }
}

/// By statements and not by startup parameters, which poolers in between may drop. What is answered
/// as written must be on disk, so a database that is set to answer earlier is overruled.
fn settings(options: &Options) -> String {
    format!(
        "SET statement_timeout = {}; SET lock_timeout = {}; \
         SET default_transaction_isolation = 'read committed'; SET client_encoding = 'UTF8'; \
         SELECT set_config('synchronous_commit', 'on', false) \
         WHERE current_setting('synchronous_commit') = 'off'",
        options.statement_timeout.as_millis(),
        options.lock_timeout.as_millis(),
    )
}

async fn set_up(connection: &mut PgConnection, settings: String) -> Result<(), sqlx::Error> {
    connection.execute(AssertSqlSafe(settings)).await?;
    Ok(())
}

/// Whether this server and database can hold a log.
pub(super) async fn check_server(
    connection: &mut PgConnection,
    place: &str,
) -> Result<(), OpenError> {
    let facts: (i32, String, bool) = sqlx::query_as(
        "SELECT current_setting('server_version_num')::integer, \
         current_setting('server_encoding'), \
         pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean",
    )
    .fetch_one(connection)
    .await
    .map_err(|source| OpenError::Unusable {
        place: place.to_owned(),
        source,
    })?;
    let (version, encoding, read_only) = facts;
    let reason = if version < SERVER_VERSION_MIN {
        format!(
            "the server is PostgreSQL {}, needed is {} or newer",
            version / 10_000,
            SERVER_VERSION_MIN / 10_000
        )
    } else if encoding != "UTF8" {
        format!("its encoding is `{encoding}`, needed is `UTF8`")
    } else if read_only {
        "it is read-only, a standby perhaps; needed is the primary".to_owned()
    } else {
        return Ok(());
    };
    Err(OpenError::Unfit {
        place: place.to_owned(),
        reason,
    })
}

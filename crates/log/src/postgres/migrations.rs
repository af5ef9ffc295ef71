//! The schema of the log, step by step.
//!
//! Owns: `taskledger.schema_steps`, which says what steps a database has taken. Steps are taken in
//! one transaction under an advisory lock, so that servers that start together take turns.

use super::open;
use super::open::OpenError;
use super::options::Options;
use sqlx::{Connection, Executor, PgConnection};
use std::time::Duration;

/// Steps for one purpose: a folder below `migrations/postgres`.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    /// The folder's name.
    pub purpose: &'static str,
    /// Names and texts, in order. Released ones are never edited, only followed.
    pub steps: &'static [(&'static str, &'static str)],
}

/// The log's own.
pub const LOG_STEPS: Steps = Steps {
    purpose: "log",
    steps: &[(
        "0001_event_log",
        include_str!("../../../../migrations/postgres/log/0001_event_log.sql"),
    )],
};
/// Key of the advisory lock (`tlgr`), the same for whatever a taskledger changes in a database.
pub(super) const LOCK_KEY: i64 = 0x746c_6772;
/// How long to wait for another process that changes the schema.
const LOCK_WAIT: Duration = Duration::from_secs(60);
/// How long one step may take: building an index over a large log takes minutes.
const STEP_TIMEOUT: Duration = Duration::from_secs(3600);

/// What was done to the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    /// Schema version before; 0 = there was none.
    pub from: i64,
    /// Schema version now.
    pub to: i64,
    /// Names of the steps that were taken now.
    pub taken: Vec<&'static str>,
}

/// Takes the steps of the log's schema that are missing. Several processes may do so at once.
///
/// # Errors
/// [`OpenError`]: nothing was changed.
pub async fn migrate(options: &Options) -> Result<Migrated, OpenError> {
    take(options, LOG_STEPS).await
}

/// The same for what somebody else keeps beside the log, after the log's own steps.
///
/// # Errors
/// As [`migrate`].
pub async fn take(options: &Options, steps: Steps) -> Result<Migrated, OpenError> {
    let place = open::place(&options.connect);
    let patient = Options {
        statement_timeout: STEP_TIMEOUT,
        lock_timeout: LOCK_WAIT,
        ..options.clone()
    };
    let mut connection = open::connect(&patient)
        .await
        .map_err(|error| OpenError::unreachable(&place, &error))?;
    open::check_server(&mut connection, &place).await?;
    let migrated =
        take_steps(&mut connection, &place, steps)
            .await
            .map_err(|error| match error {
                Stopped::Open(error) => error,
                Stopped::Sql(source) => classify(source, place, options),
            })?;
    // The work is done and committed; a farewell that fails changes nothing.
    let _ = connection.close().await;
    Ok(migrated)
}

enum Stopped {
    Open(OpenError),
    Sql(sqlx::Error),
}

impl From<sqlx::Error> for Stopped {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

async fn take_steps(
    connection: &mut PgConnection,
    place: &str,
    Steps { purpose, steps }: Steps,
) -> Result<Migrated, Stopped> {
    let known = steps.len() as i64;
    let mut transaction = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(LOCK_KEY)
        .execute(&mut *transaction)
        .await?;
    let exists: bool =
        sqlx::query_scalar("SELECT to_regclass('taskledger.schema_steps') IS NOT NULL")
            .fetch_one(&mut *transaction)
            .await?;
    if !exists {
        transaction.execute(SCHEMA).await?;
    }
    let from: i64 = sqlx::query_scalar(
        "SELECT coalesce(max(number), 0) FROM taskledger.schema_steps WHERE purpose = $1",
    )
    .bind(purpose)
    .fetch_one(&mut *transaction)
    .await?;
    if from > known {
        return Err(Stopped::Open(OpenError::Newer {
            place: place.to_owned(),
            found: from,
            known,
        }));
    }
    let mut taken = Vec::new();
    for (number, (name, sql)) in (1..).zip(steps) {
        if number > from {
            transaction.execute(*sql).await?;
            sqlx::query(
                "INSERT INTO taskledger.schema_steps (purpose, number, name) VALUES ($1, $2, $3)",
            )
            .bind(purpose)
            .bind(number)
            .bind(*name)
            .execute(&mut *transaction)
            .await?;
            taken.push(*name);
        }
    }
    transaction.commit().await?;
    Ok(Migrated {
        from,
        to: known,
        taken,
    })
}

/// `purpose` is the folder of the steps below `migrations/postgres`.
const SCHEMA: &str = "
CREATE SCHEMA IF NOT EXISTS taskledger;
CREATE TABLE taskledger.schema_steps (
    purpose  TEXT        NOT NULL,
    number   BIGINT      NOT NULL,
    name     TEXT        NOT NULL,
    taken_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (purpose, number)
)";

fn classify(source: sqlx::Error, place: String, options: &Options) -> OpenError {
    let code = source
        .as_database_error()
        .and_then(|e| e.code().map(|c| c.into_owned()));
    match code.as_deref() {
        Some("42501") => OpenError::Forbidden {
            place,
            user: options.connect.get_username().to_owned(),
            source,
        },
        Some("55P03") => OpenError::Locked {
            place,
            waited: LOCK_WAIT,
            source,
        },
        Some(_) | None => OpenError::Unusable { place, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::postgres::PgConnectOptions;
    use std::str::FromStr;
    use std::sync::Arc;
    use taskledger_clock::ManualClock;
    use taskledger_domain::Timestamp;
    use taskledger_testkit::postgres::Database;

    const FIRST: (&str, &str) = (
        "0001_first",
        "CREATE TABLE taskledger.t (a BIGINT NOT NULL); INSERT INTO taskledger.t (a) VALUES (1)",
    );
    const SECOND: (&str, &str) = (
        "0002_second",
        "ALTER TABLE taskledger.t ADD COLUMN b BIGINT NOT NULL DEFAULT 2",
    );
    const ONE: Steps = Steps {
        purpose: "test",
        steps: &[FIRST],
    };
    const BOTH: Steps = Steps {
        purpose: "test",
        steps: &[FIRST, SECOND],
    };

    fn migrated(from: i64, to: i64, taken: &[&'static str]) -> Migrated {
        Migrated {
            from,
            to,
            taken: taken.to_vec(),
        }
    }

    #[tokio::test]
    async fn steps_are_taken_once_and_a_database_that_has_taken_more_is_refused() {
        let database = Database::create().await;
        let connect = PgConnectOptions::from_str(database.url()).expect("a URL");
        let clock = Arc::new(ManualClock::at(Timestamp(1)));
        let options = Options::new(connect, clock);

        let first = take(&options, ONE).await.expect("one step");
        let second = take(&options, BOTH).await.expect("both steps");
        let third = take(&options, BOTH).await.expect("nothing to do");
        let refused = take(&options, ONE).await;

        assert_eq!(first, migrated(0, 1, &["0001_first"]));
        assert_eq!(second, migrated(1, 2, &["0002_second"]));
        assert_eq!(third, migrated(2, 2, &[]));
        let is_newer = matches!(
            refused,
            Err(OpenError::Newer {
                found: 2,
                known: 1,
                ..
            })
        );
        assert!(is_newer, "{refused:?}");
        let mut connection = PgConnection::connect(database.url())
            .await
            .expect("a connection");
        let rows: Vec<(i64, i64)> = sqlx::query_as("SELECT a, b FROM taskledger.t")
            .fetch_all(&mut connection)
            .await
            .expect("the table has both columns");
        assert_eq!(rows, [(1, 2)]);
    }
}

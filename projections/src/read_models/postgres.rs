//! Read models in schemas of a PostgreSQL database, shared by all servers that name them.
//!
//! The serving tables are in one schema, those of a rebuild in another; both are found through the
//! `search_path` of a connection, so every text is the same for both. Whoever reads first takes the
//! weakest lock on `checkpoints`, the gate: a swap takes the strongest one, so it happens between
//! reads, and no read sees tables of both sides.

use super::conn::Conn;
use super::found::{Found, Swap, other_version};
use super::options::Postgres as Place;
use crate::tasks::TaskProjector;
use crate::{Error, Projector, checkpoint, with_sources};
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, Executor};
use std::sync::LazyLock;
use std::time::Duration;
use taskledger_domain::Position;
use taskledger_sql::migrations::migrator;
use taskledger_sql::{Columns, Tx, is_at_rest};
use tokio::time::timeout;

/// A reader that nobody needs is closed after this time.
const READER_IDLE: Duration = Duration::from_secs(60);
/// Connections beside those of the queries: one that listens, one that asks for the checkpoint.
const SIDE_CONNECTIONS: u32 = 2;
/// How long a server that starts waits for others that start: they migrate in turn.
const OPENING_WAIT_MS: u64 = 60_000;
/// How long a swap keeps new reads waiting for old ones to end, before it gives way and tries later.
const SWAP_WAIT_MS: u64 = 200;

/// What a client waits beyond the limits of the server before it takes a connection for dead, and how
/// long a connection may take to show that it lives.
pub(super) const GRACE: Duration = Duration::from_secs(3);

static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&[(
        "0001_read_models",
        include_str!("../../../migrations/postgres/read_models/0001_read_models.sql"),
    )])
});

/// Makes the serving tables, or finds them. What another version serves is not touched.
pub(super) async fn open(place: &Place) -> Result<Found, Error> {
    let schema = place.checked_schema()?;
    let mut db = PgConnection::connect_with(&place.writer(schema)).await?;
    let encoding: String = sqlx::query_scalar("SHOW server_encoding")
        .fetch_one(&mut db)
        .await?;
    if encoding != "UTF8" {
        return Err(Error::Place(format!(
            "the database has the encoding {encoding}; one with UTF8 is needed"
        )));
    }
    db.execute(AssertSqlSafe(format!(
        "SET lock_timeout = {OPENING_WAIT_MS}; SET statement_timeout = {OPENING_WAIT_MS}"
    )))
    .await?;
    sqlx::query("SELECT pg_advisory_lock(hashtextextended($1, 0))")
        .bind(format!("open {schema}"))
        .execute(&mut db)
        .await?;
    let found = prepare(&mut db, schema).await;
    // The lock goes with the connection, also when closing it does not work.
    let _ = db.close().await;
    found
}

async fn prepare(db: &mut PgConnection, schema: &str) -> Result<Found, Error> {
    let exists: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
        .bind(format!("{schema}.checkpoints"))
        .fetch_one(&mut *db)
        .await?;
    if exists {
        let mut tx = Tx::postgres(db.begin().await?);
        let version = checkpoint::load::<TaskProjector>(&mut tx).await?;
        tx.commit().await?;
        if let Some((version, _)) = version
            && version != TaskProjector::VERSION
        {
            return Ok(Found::Foreign(other_version(version)));
        }
        if let Err(error) = MIGRATIONS.run_direct(None, db, false).await {
            let error = Error::Migration(error);
            return match error.is_passing() {
                true => Err(error),
                false => Ok(Found::Foreign(with_sources(&error))),
            };
        }
        if version.is_some() {
            return Ok(Found::Usable);
        }
    } else {
        make_schema(db, schema).await?;
    }
    let mut tx = Tx::postgres(db.begin().await?);
    checkpoint::begin::<TaskProjector>(&mut tx).await?;
    tx.commit().await?;
    Ok(Found::Nothing)
}

async fn make_schema(db: &mut PgConnection, schema: &str) -> Result<(), Error> {
    let sql = format!("CREATE SCHEMA IF NOT EXISTS {schema}");
    db.execute(AssertSqlSafe(sql)).await?;
    MIGRATIONS
        .run_direct(None, db, false)
        .await
        .map_err(Error::Migration)
}

/// Empty tables where a rebuild works. The connection holds the right to rebuild.
pub(super) async fn make_next(place: &Place) -> Result<Conn, Error> {
    place.checked_schema()?;
    let next = place.next_schema();
    let mut db = PgConnection::connect_with(&place.writer(&next)).await?;
    let mine: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtextextended($1, 0))")
        .bind(format!("rebuild {}", place.schema))
        .fetch_one(&mut db)
        .await?;
    if !mine {
        return Err(Error::RebuildUnderWay);
    }
    for schema in [&next, &old_schema(place)] {
        let sql = format!("DROP SCHEMA IF EXISTS {schema} CASCADE");
        db.execute(AssertSqlSafe(sql)).await?;
    }
    make_schema(&mut db, &next).await?;
    let mut tx = Tx::postgres(db.begin().await?);
    checkpoint::begin::<TaskProjector>(&mut tx).await?;
    tx.commit().await?;
    Ok(Conn::Postgres(Box::new(db)))
}

fn old_schema(place: &Place) -> String {
    format!("{}_old", place.schema)
}

/// Lets the tables of the rebuild, which are at `position`, serve.
pub(super) async fn swap(
    place: &Place,
    conn: &mut Conn,
    position: Position,
) -> Result<Swap, Error> {
    match try_swap(place, conn, position).await {
        Ok(Swap::Done) => {}
        Err(error) if error.is_lock_timeout() => return Ok(Swap::InUse),
        other => return other,
    }
    // Nobody reads them any more. What cannot be dropped now is dropped by the next rebuild.
    let _ = drop_schema(conn, &old_schema(place)).await;
    Ok(Swap::Done)
}

/// Drops a schema with all that is in it, if it is there.
pub(super) async fn drop_schema(conn: &mut Conn, schema: &str) -> Result<(), Error> {
    let mut tx = conn.begin().await?;
    let args = tx.args();
    let sql = format!("DROP SCHEMA IF EXISTS {schema} CASCADE");
    tx.execute(AssertSqlSafe(sql), args).await?;
    tx.commit().await?;
    Ok(())
}

async fn try_swap(place: &Place, conn: &mut Conn, position: Position) -> Result<Swap, Error> {
    let mut tx = conn.begin().await?;
    let swapped = exchange(place, &mut tx, position).await;
    match swapped {
        Ok(Swap::Done) => tx.commit().await?,
        Ok(Swap::Behind(_) | Swap::InUse) | Err(_) => tx.rollback().await?,
    }
    swapped
}

async fn exchange(place: &Place, tx: &mut Tx<'_>, position: Position) -> Result<Swap, Error> {
    let (schema, next, old) = (&place.schema, place.next_schema(), old_schema(place));
    run(tx, format!("SET LOCAL lock_timeout = {SWAP_WAIT_MS}")).await?;
    // The serving side first: from here on nobody reads and nobody folds.
    run(
        tx,
        format!("LOCK TABLE {schema}.checkpoints IN ACCESS EXCLUSIVE MODE"),
    )
    .await?;
    run(
        tx,
        format!("LOCK TABLE {next}.checkpoints IN ACCESS EXCLUSIVE MODE"),
    )
    .await?;
    let serving = position_in(tx, schema).await?;
    if position_in(tx, &next).await? != Some(position) {
        return Err(Error::CheckpointMoved { expected: position });
    }
    if serving.is_some_and(|serving| serving > position) {
        return Ok(Swap::Behind(serving.unwrap_or(position)));
    }
    run(tx, format!("ALTER SCHEMA {schema} RENAME TO {old}")).await?;
    run(tx, format!("ALTER SCHEMA {next} RENAME TO {schema}")).await?;
    run(tx, format!("SELECT pg_notify('{schema}', '{position}')")).await?;
    Ok(Swap::Done)
}

async fn run(tx: &mut Tx<'_>, sql: String) -> Result<(), Error> {
    let args = tx.args();
    tx.execute(AssertSqlSafe(sql), args).await?;
    Ok(())
}

async fn position_in(tx: &mut Tx<'_>, schema: &str) -> Result<Option<Position>, Error> {
    let mut args = tx.args();
    args.name(TaskProjector::NAME);
    let sql = format!("SELECT position FROM {schema}.checkpoints WHERE name = $1");
    let row = tx.fetch_optional(AssertSqlSafe(sql), args).await?;
    Ok(row.map(|row| Columns::of(&row).number()).transpose()?)
}

/// Nobody else folds until the transaction ends.
pub(super) async fn lock_checkpoint(tx: &mut Tx<'_>) -> Result<(), Error> {
    tx.execute_all("LOCK TABLE checkpoints IN EXCLUSIVE MODE")
        .await?;
    Ok(())
}

pub(super) fn readers(place: &Place, connections: u32) -> PgPool {
    pool(place, connections)
}

pub(super) fn side(place: &Place) -> PgPool {
    pool(place, SIDE_CONNECTIONS)
}

fn pool(place: &Place, connections: u32) -> PgPool {
    PgPoolOptions::new()
        .min_connections(0)
        .max_connections(connections.max(1))
        .acquire_timeout(place.acquire_timeout)
        .idle_timeout(READER_IDLE)
        // The pool asks each connection that comes back whether it lives, and waits for the answer
        // without a limit, with the place taken. So it is asked here before.
        .after_release(|db, _| Box::pin(is_at_rest(db, GRACE)))
        .connect_lazy_with(place.reader())
}

/// The outcome of something that a server does, unless it takes longer than `wait`.
pub(super) async fn in_time<T>(
    wait: Duration,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let done = timeout(wait, work).await;
    done.map_err(|_| Error::Unavailable(no_answer(wait)))?
}

fn no_answer(wait: Duration) -> sqlx::Error {
    let reason = format!("no answer within {wait:?}");
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, reason))
}

/// A transaction that reads one consistent state, all of it from the tables that serve now.
pub(super) async fn read(readers: &PgPool) -> Result<Tx<'static>, Error> {
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    let mut tx = readers.begin_with(begin).await?;
    // Takes no snapshot yet: the state is that of the first question.
    (&mut *tx)
        .execute("LOCK TABLE checkpoints IN ACCESS SHARE MODE")
        .await?;
    Ok(Tx::postgres(tx))
}

/// Version and position of the rows that serve. One round trip: followers ask often.
pub(super) async fn checkpoint(side: &PgPool) -> Result<Option<(i64, Position)>, Error> {
    let row: Option<(i64, i64)> = sqlx::query_as(checkpoint::LOAD)
        .bind(TaskProjector::NAME)
        .fetch_optional(side)
        .await?;
    row.map(|(version, position)| {
        let odd = || Error::Damaged(format!("the checkpoint is at {position}"));
        Ok((version, Position::try_from(position).map_err(|_| odd())?))
    })
    .transpose()
}

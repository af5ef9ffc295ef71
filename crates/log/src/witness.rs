//! Compares the log with the checkpoints that other stores have recorded of it.
//!
//! Owns: [`Witness`], what contradicts a log, and its words. A store that follows the log reads only durable events,
//! so each of its checkpoints is a lower bound of the log's head: a log that ends earlier, or that has another event
//! there, has lost events. Both backends make an event durable before they show it to a reader, so a crash or a power
//! cut alone never leads to a contradiction.
//! May not: change a store.

use super::sqlite::open;
use super::{Error, EventStore};
use rusqlite::{Connection, OptionalExtension as _};
use sqlx::Connection as _;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, PgConnection};
use std::fmt;
use std::path::Path;
use std::time::Duration;
use taskledger_domain::{EventId, Position};
use uuid::Uuid;

/// How long a database may take to name all its checkpoints.
const DATABASE_WAIT: Duration = Duration::from_secs(10);

/// Where a store records its checkpoint.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// What the store holds, as messages call it: `the read models`.
    pub store: &'static str,
    /// Its file in a data folder.
    pub file: &'static str,
    /// Its table in PostgreSQL, with the schema.
    pub table: &'static str,
    /// Reads position and event id (or null) from the table, which it calls `{table}`; the first row counts.
    pub query: &'static str,
}

/// The checkpoint of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Witness {
    /// What the store holds.
    pub store: &'static str,
    /// The last event that it has read, at least 1.
    pub position: Position,
    /// The id of that event, if the store records it.
    pub event: Option<EventId>,
}

/// How a log contradicts a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// The log ends before the checkpoint.
    Missing(Witness),
    /// The log has another event at the checkpoint.
    Replaced(Witness),
}

impl Conflict {
    /// The checkpoint.
    #[must_use]
    pub const fn witness(&self) -> &Witness {
        match self {
            Self::Missing(witness) | Self::Replaced(witness) => witness,
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Witness {
            store, position, ..
        } = self.witness();
        match self {
            Self::Missing(_) => write!(f, "{store} contain events up to position {position}"),
            Self::Replaced(_) => write!(
                f,
                "{store} contain another event at position {position} than the log"
            ),
        }
    }
}

/// The log has lost events that other stores have read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostEvents {
    /// Position of the log's last event; 0 if the log is empty or its file is missing.
    pub head: Position,
    /// At least one.
    pub conflicts: Vec<Conflict>,
}

impl fmt::Display for LostEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.head {
            0 => f.write_str("the log is empty or missing")?,
            head => write!(f, "the log ends at position {head}")?,
        }
        for (n, conflict) in self.conflicts.iter().enumerate() {
            write!(f, "{}{conflict}", if n == 0 { ", but " } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for LostEvents {}

/// What contradicts a log that ends at `head`; `found`: the id of its event at the checkpoint, `None` if the
/// event was dropped with an archived flow.
fn conflict(witness: Witness, head: Position, found: Option<EventId>) -> Option<Conflict> {
    if witness.position > head {
        return Some(Conflict::Missing(witness));
    }
    let expected = witness.event?;
    (found? != expected).then_some(Conflict::Replaced(witness))
}

fn lost(head: Position, conflicts: Vec<Conflict>) -> Result<(), LostEvents> {
    if conflicts.is_empty() {
        return Ok(());
    }
    Err(LostEvents { head, conflicts })
}

/// Compares an open log with checkpoints that were read before. Cost: a read of one event for each.
///
/// # Errors
/// [`Error`]: the log cannot be read; inside, [`LostEvents`].
pub async fn compare(
    log: &dyn EventStore,
    witnesses: &[Witness],
) -> Result<Result<(), LostEvents>, Error> {
    let head = log.head().await?;
    let mut conflicts = Vec::new();
    for witness in witnesses {
        let mut id = None;
        if witness.event.is_some() && witness.position <= head {
            let page = log.read_all(witness.position - 1, 1).await?;
            let event = page.events.first();
            id = event
                .filter(|e| e.position == witness.position)
                .map(|e| e.id);
        }
        conflicts.extend(conflict(*witness, head, id));
    }
    Ok(lost(head, conflicts))
}

/// Compares the log in a file with checkpoints, without opening it for writing: a writer would drop what SQLite cannot
/// read of the write-ahead log. A file that is missing, or has no table of events, is a log without events.
///
/// # Errors
/// The file cannot be read; inside, [`LostEvents`].
pub fn compare_file(
    path: &Path,
    witnesses: &[Witness],
) -> Result<Result<(), LostEvents>, open::OpenError> {
    let compared = compare_rows(path, witnesses);
    compared.map_err(|source| open::OpenError::Unusable {
        path: path.to_owned(),
        source,
    })
}

fn compare_rows(path: &Path, witnesses: &[Witness]) -> rusqlite::Result<Result<(), LostEvents>> {
    let log = match path.try_exists() {
        Ok(false) => None,
        // Opening it says why it cannot be read.
        Ok(true) | Err(_) => Some(open::any_reader(path)?),
    };
    let log = match log {
        Some(log) if has_table(&log, "events")? => log,
        Some(_) | None => {
            let conflicts = witnesses.iter().filter_map(|it| conflict(*it, 0, None));
            return Ok(lost(0, conflicts.collect()));
        }
    };
    let head: i64 = log.query_row("SELECT coalesce(max(position), 0) FROM events", [], |row| {
        row.get(0)
    })?;
    let mut conflicts = Vec::new();
    for witness in witnesses {
        let id: Option<Vec<u8>> = log
            .query_row(
                "SELECT id FROM events WHERE position = ?1",
                [witness.position.cast_signed()],
                |row| row.get(0),
            )
            .optional()?;
        let id = id.and_then(|id| Uuid::from_slice(&id).ok()).map(EventId);
        conflicts.extend(conflict(*witness, head.cast_unsigned(), id));
    }
    Ok(lost(head.cast_unsigned(), conflicts))
}

fn has_table(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    connection.query_row(
        "SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = ?1",
        [table],
        |row| row.get(0),
    )
}

/// The checkpoint in a store's file, which may be open in a server. `None`: the file is missing, or no event was read.
///
/// # Errors
/// Why the file cannot be read.
pub fn in_file(source: &Source, path: &Path) -> Result<Option<Witness>, String> {
    if path.try_exists().is_ok_and(|exists| !exists) {
        return Ok(None);
    }
    let read = || {
        let connection = open::any_reader(path)?;
        let table = source.table.rsplit('.').next().unwrap_or(source.table);
        if !has_table(&connection, table)? {
            return Ok(None);
        }
        let query = source.query.replace("{table}", table);
        let row = connection.query_row(&query, [], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, Option<Vec<u8>>>(1)?
                    .and_then(|id| Uuid::from_slice(&id).ok()),
            ))
        });
        row.optional()
    };
    match read() {
        Ok(row) => Ok(row.and_then(|row| witness(source, row))),
        Err(error) => Err(format!("`{}`: {error}", path.display())),
    }
}

/// The checkpoints of stores in a database. Tables that do not exist have none.
///
/// # Errors
/// The database cannot be read.
async fn in_database(
    connect: &PgConnectOptions,
    sources: &[Source],
) -> Result<Vec<Witness>, sqlx::Error> {
    let reading = async {
        let mut connection = PgConnection::connect_with(connect).await?;
        let mut found = Vec::new();
        for source in sources {
            let exists: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
                .bind(source.table)
                .fetch_one(&mut connection)
                .await?;
            if !exists {
                continue;
            }
            let query = AssertSqlSafe(source.query.replace("{table}", source.table));
            let row: Option<(i64, Option<Vec<u8>>)> = sqlx::query_as(query)
                .fetch_optional(&mut connection)
                .await?;
            let row =
                row.map(|(position, id)| (position, id.and_then(|id| Uuid::from_slice(&id).ok())));
            found.extend(row.and_then(|row| witness(source, row)));
        }
        // A server that does not answer a farewell notices later.
        let _ = connection.close().await;
        Ok(found)
    };
    match tokio::time::timeout(DATABASE_WAIT, reading).await {
        Ok(read) => read,
        Err(_) => Err(sqlx::Error::PoolTimedOut),
    }
}

/// Compares the log in a database with the checkpoints of stores there.
///
/// # Errors
/// The database cannot be read.
pub async fn compare_database(
    connect: &PgConnectOptions,
    sources: &[Source],
) -> Result<Result<(), LostEvents>, sqlx::Error> {
    // In this order: the log grows, and what the stores have read with it.
    let witnesses = in_database(connect, sources).await?;
    let reading = async {
        let mut connection = PgConnection::connect_with(connect).await?;
        let head: Option<i64> = sqlx::query_scalar("SELECT position FROM taskledger.head")
            .fetch_optional(&mut connection)
            .await?;
        let head = head.unwrap_or_default().cast_unsigned();
        let mut conflicts = Vec::new();
        for witness in &witnesses {
            let id = sqlx::query_scalar("SELECT id FROM taskledger.events WHERE position = $1")
                .bind(witness.position.cast_signed())
                .fetch_optional(&mut connection)
                .await?;
            conflicts.extend(conflict(*witness, head, id.map(EventId)));
        }
        // A server that does not answer a farewell notices later.
        let _ = connection.close().await;
        Ok(lost(head, conflicts))
    };
    match tokio::time::timeout(DATABASE_WAIT, reading).await {
        Ok(read) => read,
        Err(_) => Err(sqlx::Error::PoolTimedOut),
    }
}

fn witness(source: &Source, (position, event): (i64, Option<Uuid>)) -> Option<Witness> {
    let position = Position::try_from(position).ok().filter(|at| *at > 0)?;
    Some(Witness {
        store: source.store,
        position,
        event: event.map(EventId),
    })
}

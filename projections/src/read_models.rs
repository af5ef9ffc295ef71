//! The file that holds the read models: opening, feeding, emptying, dumping it.
//!
//! Owns: connections (one writer, few readers) and the rule that rows and checkpoint change in one
//! transaction. The file is disposable: one that is missing, unreadable, or written by another
//! version of the projector is replaced by an empty one, and the feed fills it from the log.

use crate::tasks::TaskProjector;
use crate::{Error, Projector, checkpoint};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{Connection, Executor};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::{Position, Recorded};
use tokio::sync::Mutex;

/// Connections that queries share: as many as a small machine can use at once.
const READERS_DEFAULT: u32 = 4;
/// KiB of page cache of the writer.
const WRITER_CACHE_KIB: u32 = 8000;
/// KiB of page cache of each reader.
const READER_CACHE_KIB: u32 = 2000;
/// Prepared statements kept by the writer: all of its statements in their four group sizes.
const WRITER_STATEMENTS: usize = 128;
/// Prepared statements kept by each reader: the combinations of list filters are many.
const READER_STATEMENTS: usize = 48;
/// How long a statement waits for a lock of another process on the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a query waits for a free reader. Longer waits are answered as "busy" before this.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// A reader that nobody needs is closed after this time, so that an idle server is small.
const READER_IDLE: Duration = Duration::from_secs(30);
/// Bytes of write-ahead log that are kept after a checkpoint.
const WAL_BYTES_KEPT: u32 = 8 * 1024 * 1024;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../migrations/sqlite/read_models");

/// Where the read models are, and how many may read at once.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file; created when it is missing.
    pub path: PathBuf,
    /// Connections for queries, at least 1.
    pub readers: u32,
}

impl Options {
    /// The file with the usual number of readers.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            readers: READERS_DEFAULT,
        }
    }
}

/// What was found when the file was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Read models that can be continued.
    Usable,
    /// No read models: they are filled from the beginning of the log.
    Nothing,
    /// Read models that had to be thrown away: they are filled from the beginning of the log.
    Unusable(String),
}

/// The read models on SQLite.
pub struct ReadModels {
    pub(crate) readers: SqlitePool,
    writer: Mutex<Writer>,
    path: PathBuf,
}

struct Writer {
    db: SqliteConnection,
    projector: TaskProjector,
    /// The checkpoint as this writer left it; `None` when that is not certain.
    position: Option<Position>,
    /// Whether a transaction was begun and did not end as it should. SQLite may have rolled it back
    /// by itself (a full disk), of which the connection's own count knows nothing.
    unsettled: bool,
    path: PathBuf,
}

impl ReadModels {
    /// Opens or creates the file, replacing it when it is of no use.
    ///
    /// # Errors
    /// [`Error::File`] and [`Error::Unavailable`]: the place cannot be written or read (the
    /// operator can mend it). Damage is not an error: it is answered by [`Found::Unusable`].
    pub async fn open(options: &Options) -> Result<(Self, Found), Error> {
        Self::open_with(options, TaskProjector::default()).await
    }

    /// As [`Self::open`], with a projector of the caller's.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_with(
        options: &Options,
        projector: TaskProjector,
    ) -> Result<(Self, Found), Error> {
        let existed = options.path.exists();
        let (mut db, found) = match Self::prepare(&options.path).await {
            Ok((db, Some((TaskProjector::VERSION, _)))) => (db, Found::Usable),
            Ok((db, None)) if !existed => (db, Found::Nothing),
            Ok((db, other)) => {
                db.close().await?;
                let reason = other.map_or_else(
                    || "they have no checkpoint".to_owned(),
                    |(version, _)| {
                        format!(
                            "they are of version {version}, this program makes version {}",
                            TaskProjector::VERSION
                        )
                    },
                );
                let db = Self::replace(&options.path).await?;
                (db, Found::Unusable(reason))
            }
            Err(error) if error.is_damage() => {
                let db = Self::replace(&options.path).await?;
                (db, Found::Unusable(with_sources(&error)))
            }
            Err(error) => return Err(error),
        };
        if found != Found::Usable {
            checkpoint::begin::<TaskProjector>(&mut db).await?;
        }
        let readers = SqlitePoolOptions::new()
            .min_connections(0)
            .max_connections(options.readers.max(1))
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .idle_timeout(READER_IDLE)
            .test_before_acquire(false) // a connection to a file in this process does not go away
            .connect_lazy_with(
                connect_options(&options.path, READER_CACHE_KIB, READER_STATEMENTS)
                    .pragma("query_only", "ON"),
            );
        let writer = Mutex::new(Writer {
            db,
            projector,
            position: None,
            unsettled: false,
            path: options.path.clone(),
        });
        let path = options.path.clone();
        Ok((
            Self {
                readers,
                writer,
                path,
            },
            found,
        ))
    }

    /// Position of the last event that the rows contain.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn checkpoint(&self) -> Result<Position, Error> {
        let mut writer = self.writer.lock().await;
        writer.certain().await
    }

    /// Folds `events`, in order of position, and moves the checkpoint to the last of them, in one
    /// transaction. Events at or below the checkpoint are passed over. Returns the new checkpoint.
    /// Cost: O(events) and the rows they touch. Dropping the future undoes the batch.
    ///
    /// # Errors
    /// [`Error::Poison`]: the events before the one named are folded and committed, it and the
    /// ones behind it are not. [`Error::CheckpointMoved`], [`Error::Unavailable`]: nothing is.
    pub async fn apply(&self, events: &[Arc<Recorded>]) -> Result<Position, Error> {
        let mut writer = self.writer.lock().await;
        let error = match writer.apply(events).await {
            Err(error) => error,
            done => return done,
        };
        if let Error::Poison { position, .. } = &error {
            let before = events.partition_point(|e| e.position < *position);
            if before < events.len() {
                writer.apply(&events[..before]).await?;
            }
            return Err(error);
        }
        if !error.is_contradiction() {
            return Err(error);
        }
        // The tables refused some row of the batch. One by one, the event behind it shows itself.
        let mut checkpoint = writer.certain().await?;
        for recorded in events {
            checkpoint = match writer.apply(std::slice::from_ref(recorded)).await {
                Err(error) if error.is_contradiction() => {
                    return Err(Error::Poison {
                        position: recorded.position,
                        reason: with_sources(&error),
                    });
                }
                other => other?,
            };
        }
        Ok(checkpoint)
    }

    /// Empties all tables and goes back to position 0. Readers see the old rows or none.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: nothing changed.
    pub async fn clear(&self) -> Result<(), Error> {
        let mut writer = self.writer.lock().await;
        writer.settle().await?;
        writer.position = None;
        writer.projector.forget();
        writer.unsettled = true;
        let mut tx = writer.db.begin_with("BEGIN IMMEDIATE").await?;
        (&mut *tx).execute(CLEAR).await?;
        checkpoint::begin::<TaskProjector>(&mut tx).await?;
        tx.commit().await?;
        writer.unsettled = false;
        Ok(())
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Closes all connections. Queries that are under way end first.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; the data is safe in any case.
    pub async fn close(self) -> Result<(), Error> {
        self.readers.close().await;
        self.writer.into_inner().db.close().await?;
        Ok(())
    }

    async fn prepare(path: &Path) -> Result<(SqliteConnection, Option<(i64, Position)>), Error> {
        let options = writer_options(path).create_if_missing(true);
        let mut db = SqliteConnection::connect_with(&options).await?;
        MIGRATIONS.run(&mut db).await.map_err(Error::Migration)?;
        let found = checkpoint::load::<TaskProjector>(&mut db).await?;
        Ok((db, found))
    }

    async fn replace(path: &Path) -> Result<SqliteConnection, Error> {
        for suffix in ["", "-wal", "-shm"] {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            if let Err(source) = std::fs::remove_file(&name)
                && source.kind() != std::io::ErrorKind::NotFound
            {
                let path = name.to_string_lossy().into_owned();
                return Err(Error::File { path, source });
            }
        }
        Self::prepare(path).await.map(|(db, _)| db)
    }
}

impl Writer {
    /// A connection without a past, if the last transaction did not end as it should.
    async fn settle(&mut self) -> Result<(), Error> {
        if self.unsettled {
            self.db = SqliteConnection::connect_with(&writer_options(&self.path)).await?;
            self.unsettled = false;
        }
        Ok(())
    }

    async fn certain(&mut self) -> Result<Position, Error> {
        self.settle().await?;
        if let Some(position) = self.position {
            return Ok(position);
        }
        self.projector.forget();
        let found = checkpoint::load::<TaskProjector>(&mut self.db).await?;
        let position = match found {
            Some((TaskProjector::VERSION, position)) => position,
            Some(_) | None => {
                return Err(Error::Damaged("the checkpoint has disappeared".to_owned()));
            }
        };
        self.position = Some(position);
        Ok(position)
    }

    async fn apply(&mut self, events: &[Arc<Recorded>]) -> Result<Position, Error> {
        let from = self.certain().await?;
        let new = &events[events.partition_point(|e| e.position <= from)..];
        let Some(last) = new.last() else {
            return Ok(from);
        };
        let to = last.position;
        // From here until the commit has answered, nothing in memory is certain, also when this
        // future is dropped half-way.
        self.position = None;
        self.unsettled = true;
        let mut tx = self.db.begin_with("BEGIN IMMEDIATE").await?;
        checkpoint::advance::<TaskProjector>(&mut tx, from, to).await?;
        self.projector.apply(&mut tx, new).await?;
        tx.commit().await?;
        self.unsettled = false;
        self.position = Some(to);
        Ok(to)
    }
}

fn writer_options(path: &Path) -> SqliteConnectOptions {
    connect_options(path, WRITER_CACHE_KIB, WRITER_STATEMENTS)
        .journal_mode(SqliteJournalMode::Wal)
        // A lost commit costs nothing: the log has the events.
        .synchronous(SqliteSynchronous::Normal)
        .pragma("journal_size_limit", WAL_BYTES_KEPT.to_string())
}

fn connect_options(path: &Path, cache_kib: u32, statements: usize) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(statements)
        .pragma("cache_size", format!("-{cache_kib}"))
        .pragma("temp_store", "MEMORY")
}

fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(": ");
        text.push_str(&source.to_string());
        next = source.source();
    }
    text
}

const CLEAR: &str = "DELETE FROM tasks;
    DELETE FROM task_bodies;
    DELETE FROM attempts;
    DELETE FROM runs;
    DELETE FROM flow_summary;
    DELETE FROM rootless_flows;
    DELETE FROM open_runs;
    DELETE FROM task_counts;
    DELETE FROM created_buckets;
    DELETE FROM checkpoints;";

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_domain::flow::{Event, TaskProgressed};
    use taskledger_domain::task::Progress;
    use taskledger_domain::{EventId, FlowId, Metadata, TaskId, Timestamp};

    /// An event that changes no row, so that only the checkpoint moves.
    fn event(position: Position) -> Arc<Recorded> {
        let task = TaskId(uuid::Uuid::from_u128(7));
        let progress = Progress::ZERO;
        Arc::new(Recorded {
            position,
            flow: FlowId(task.0),
            version: position,
            id: EventId(task.0),
            time: Timestamp(1),
            recorded_at: Timestamp(1),
            metadata: Metadata {
                actor: Arc::from("test"),
                correlation: Arc::from("test"),
                causation: None,
                trace: None,
            },
            event: Arc::new(Event::TaskProgressed(TaskProgressed {
                task_id: task,
                attempt: 1,
                progress,
            })),
        })
    }

    #[tokio::test]
    async fn a_transaction_that_sqlite_itself_rolled_back_stops_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(folder.path().join("models.db"));
        let (models, _) = ReadModels::open(&options).await.unwrap();
        {
            // As on a full disk: SQLite has ended the transaction, the connection still counts it.
            let mut writer = models.writer.lock().await;
            writer.unsettled = true;
            let mut tx = writer.db.begin_with("BEGIN IMMEDIATE").await.unwrap();
            (&mut *tx).execute("ROLLBACK").await.unwrap();
            std::mem::forget(tx);
        }
        let outcome = models.apply(&[event(1)]).await;
        assert!(
            matches!(outcome, Ok(1) | Err(Error::Poison { position: 1, .. })),
            "{outcome:?}"
        );
    }
}

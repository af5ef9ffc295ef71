//! The tables of the read models: opening, feeding, emptying, dumping and rebuilding them.
//!
//! Owns: connections (one writer, few readers), the rule that rows and checkpoint change in one
//! transaction, and the two engines that may hold them. The rows are disposable: a file that is
//! missing, unreadable, or written by another version of the projector is replaced by an empty one,
//! and the feed fills it from the log. On PostgreSQL servers share the rows, so there another
//! version is replaced by a rebuild beside it.

mod conn;
mod copier;
mod elsewhere;
mod found;
mod options;
mod postgres;
mod rebuild;
mod sqlite;
mod writer;

pub use elsewhere::Elsewhere;
pub use found::{Found, Swap};
pub use options::{Options, Place, Postgres, READERS_MIN, SCHEMA_DEFAULT};
pub use rebuild::Rebuild;

use crate::tasks::TaskProjector;
use crate::{DamagedFlow, DamagedFlows, Error, Projector, damage};
use conn::Conn;
use sqlx::postgres::PgPool;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use taskledger_domain::{Position, Recorded};
use taskledger_sql::Tx;
use taskledger_sql::readers::Readers as FileReaders;
use tokio::sync::{Mutex, RwLock, watch};
use tokio::time::timeout;
use writer::{Page, Way, Writer};

/// How long a server may take to close connections: nothing depends on it.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// The read models, on SQLite or PostgreSQL.
pub struct ReadModels {
    place: Place,
    readers: Readers,
    reader_count: u32,
    writer: Arc<Mutex<Writer>>,
    rebuilding: Arc<Mutex<()>>,
    damaged: watch::Sender<Arc<DamagedFlows>>,
    /// Whether the rows are of another version.
    foreign: AtomicBool,
}

enum Readers {
    Sqlite {
        /// Locked for reading as long as somebody reads, for writing by a swap.
        serving: Arc<RwLock<FileReaders>>,
        count: u32,
    },
    Postgres {
        queries: PgPool,
        side: PgPool,
    },
}

impl std::fmt::Debug for ReadModels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadModels").finish_non_exhaustive()
    }
}

impl ReadModels {
    /// Opens or creates the place. A file is replaced when it is of no use; one that cannot be read is renamed.
    /// Tables on PostgreSQL are left alone.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Place`] and [`Error::Unavailable`]: the place cannot be written or
    /// read (the operator can mend it). Damage of a file is not an error: it is answered by
    /// [`Found::Damaged`].
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
        let place = options.place.clone();
        let reader_count = options.readers.max(READERS_MIN);
        let (readers, writer, found) = match &place {
            Place::File(path) => {
                let found = sqlite::open(path).await?;
                let readers = Readers::Sqlite {
                    serving: Arc::new(RwLock::new(sqlite::readers(path, reader_count))),
                    count: reader_count,
                };
                let writer = Writer::new(Way::File(path.clone()), None, projector);
                (readers, writer, found)
            }
            Place::Postgres(database) => {
                let found = postgres::open(database).await?;
                let readers = Readers::Postgres {
                    queries: postgres::readers(database, reader_count),
                    side: postgres::side(database),
                };
                let channel = Some(database.schema.clone());
                let way = Way::postgres(database, &database.schema, channel);
                (readers, Writer::new(way, None, projector), found)
            }
        };
        let damaged = watch::channel(Arc::default()).0;
        let models = Self {
            foreign: AtomicBool::new(matches!(found, Found::Foreign(_))),
            place,
            readers,
            reader_count,
            writer: Arc::new(Mutex::new(writer.showing(damaged.clone()))),
            rebuilding: Arc::new(Mutex::new(())),
            damaged,
        };
        Ok((models, found))
    }

    /// A transaction that reads one consistent state.
    pub(crate) async fn read(&self) -> Result<Tx<'static>, Error> {
        match &self.readers {
            Readers::Sqlite { serving, .. } => {
                // Only a swap keeps anybody waiting here, and not for long.
                let serving = timeout(sqlite::ACQUIRE_TIMEOUT, serving.clone().read_owned());
                let serving = serving
                    .await
                    .map_err(|_| Error::Unavailable(sqlx::Error::PoolTimedOut))?;
                Ok(Tx::reading(FileReaders::read(serving).await?))
            }
            // Behind a pointer, as that of `checkpoint`: each call that may read would be 10 KiB larger.
            Readers::Postgres { queries, .. } => {
                Box::pin(async {
                    if self.is_foreign() {
                        self.checkpoint().await?;
                    }
                    postgres::in_time(self.answer_wait(), postgres::read(queries)).await
                })
                .await
            }
        }
    }

    /// Position of the last event that the rows contain, whoever folded it.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; [`Error::OtherVersion`]: a rebuild is needed.
    pub async fn checkpoint(&self) -> Result<Position, Error> {
        let side = match &self.readers {
            Readers::Sqlite { .. } => {
                return Box::pin(async { self.writer.lock().await.certain().await }).await;
            }
            Readers::Postgres { side, .. } => side,
        };
        let found = Box::pin(postgres::in_time(
            self.answer_wait(),
            postgres::checkpoint(side),
        ));
        match found.await? {
            Some((TaskProjector::VERSION, position)) => {
                self.serves();
                Ok(position)
            }
            Some((found, _)) => {
                self.foreign.store(true, Ordering::Release);
                Err(Error::OtherVersion { found })
            }
            None => Err(Error::Damaged("the checkpoint has disappeared".to_owned())),
        }
    }

    /// Forgets what this process remembers of the rows: somebody else may have folded since.
    pub async fn forget(&self) {
        self.writer.lock().await.forget();
    }

    /// Tells of progress that others make.
    #[must_use]
    pub fn elsewhere(&self) -> Elsewhere {
        match (&self.readers, &self.place) {
            (Readers::Postgres { side, .. }, Place::Postgres(place)) => {
                Elsewhere::on(side.clone(), place.schema.clone())
            }
            (Readers::Sqlite { .. } | Readers::Postgres { .. }, _) => Elsewhere::nowhere(),
        }
    }

    /// How long a small question may take: a connection, a lock that a swap holds, and the way.
    fn answer_wait(&self) -> Duration {
        match &self.place {
            Place::File(_) => sqlite::ACQUIRE_TIMEOUT,
            Place::Postgres(place) => place.acquire_timeout + place.lock_timeout + postgres::GRACE,
        }
    }

    /// Queries that can be answered at once: [`READERS_MIN`] or more.
    #[must_use]
    pub const fn readers(&self) -> u32 {
        self.reader_count
    }

    fn is_foreign(&self) -> bool {
        self.foreign.load(Ordering::Acquire)
    }

    /// The rows are of this version.
    fn serves(&self) {
        self.foreign.store(false, Ordering::Release);
    }

    /// Folds `events` as [`Self::apply_page`] does, and moves the checkpoint to the last of them.
    ///
    /// # Errors
    /// As [`Self::apply_page`].
    pub async fn apply(&self, events: &[Arc<Recorded>]) -> Result<Position, Error> {
        self.apply_to(Page::of(events)).await
    }

    /// Folds `events`, in order of position, and moves the checkpoint to `to`, in one transaction. Events at or below
    /// the checkpoint are passed over. Of `damaged` flows, and of those in which an event cannot be folded, nothing is
    /// folded from the damaged event on; [`Self::damaged_flows`] names them. Returns the new checkpoint.
    /// Cost: O(events) and the rows they touch. Dropping the future undoes the batch or lets it end;
    /// [`Self::checkpoint`] waits for that and shows which.
    ///
    /// # Errors
    /// [`Error::Poison`]: more than [`crate::DAMAGED_FLOWS_MAX`] flows are damaged; the events before the one named are
    /// folded and committed. [`Error::CheckpointMoved`], [`Error::Unavailable`]: nothing is.
    pub async fn apply_page(
        &self,
        events: Vec<Arc<Recorded>>,
        damaged: Vec<DamagedFlow>,
        to: Position,
    ) -> Result<Position, Error> {
        let page = Page {
            events,
            damaged,
            to,
        };
        self.apply_to(page).await
    }

    async fn apply_to(&self, page: Page) -> Result<Position, Error> {
        writer::with(&self.writer, |mut writer| async move {
            writer.apply_or_leave_out(page).await
        })
        .await
    }

    /// The flows whose rows are folded no further, as this server knows them.
    #[must_use]
    pub fn damaged_flows(&self) -> Arc<DamagedFlows> {
        self.damaged.borrow().clone()
    }

    /// Reads them again, where another server folds. Cost: O(damaged flows).
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn read_damaged_flows(&self) -> Result<(), Error> {
        let mut tx = self.read().await?;
        let found = damage::load(&mut tx).await?;
        self.damaged.send_replace(Arc::new(found));
        Ok(())
    }

    /// Empties all tables and goes back to position 0. Readers see the old rows or none.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: nothing changed.
    pub async fn clear(&self) -> Result<(), Error> {
        writer::with(
            &self.writer,
            |mut writer| async move { writer.clear().await },
        )
        .await
    }

    /// Closes all connections. Queries that are under way end first; what a server does not answer is
    /// left to itself after a few seconds.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; the data is safe in any case.
    pub async fn close(self) -> Result<(), Error> {
        match &self.readers {
            // Whoever still reads comes to the end first. The writer is the last to close.
            Readers::Sqlite { serving, .. } => serving.write().await.close(),
            Readers::Postgres { queries, side } => {
                let closing = async { tokio::join!(queries.close(), side.close()) };
                // What does not answer ends with the process.
                let _ = timeout(CLOSE_WAIT, closing).await;
            }
        }
        let conn = self.writer.lock().await.conn.take();
        match conn {
            Some(conn @ Conn::Postgres(_)) => postgres::in_time(CLOSE_WAIT, conn.close()).await,
            Some(conn @ Conn::File(_)) => conn.close().await,
            None => Ok(()),
        }
    }
}

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
                message: None,
                remarks: None,
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
            writer.settled().await.unwrap();
            writer.unsettled = true;
            let mut tx = writer.conn.as_mut().unwrap().begin().await.unwrap();
            tx.execute_all("ROLLBACK").await.unwrap();
            std::mem::forget(tx);
        }
        let outcome = models.apply(&[event(1)]).await;
        assert!(
            matches!(outcome, Ok(1) | Err(Error::Poison { position: 1, .. })),
            "{outcome:?}"
        );
    }
}

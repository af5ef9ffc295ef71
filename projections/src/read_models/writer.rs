//! The one connection that changes rows, with what it remembers of them.

use super::conn::Conn;
use super::copier::Copier;
use super::options::Postgres as Place;
use super::{postgres, sqlite};
use crate::tasks::TaskProjector;
use crate::{Error, Projector, checkpoint, with_sources};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::{Position, Recorded};
use taskledger_sql::Engine;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::spawn_blocking;

/// How a writer reaches its tables.
#[derive(Debug, Clone)]
pub(super) enum Way {
    File(PathBuf),
    /// A file that a rebuild fills, and that nobody reads.
    NextFile(PathBuf),
    Postgres {
        options: Box<PgConnectOptions>,
        /// Told of every commit; nobody is told of a rebuild.
        channel: Option<String>,
        /// How long one statement may take, as the client sees it.
        wait: Duration,
    },
}

impl Way {
    /// The way to a schema; who listens on `channel` is told of commits.
    pub(super) fn postgres(place: &Place, schema: &str, channel: Option<String>) -> Self {
        Self::Postgres {
            options: Box::new(place.writer(schema)),
            channel,
            wait: place.write_statement_timeout + postgres::GRACE,
        }
    }

    /// Has the disk take what was written of a file that is not synced as it is written.
    pub(super) fn sync(&self) -> Result<(), Error> {
        match self {
            Self::NextFile(path) => sqlite::sync(path),
            Self::File(_) | Self::Postgres { .. } => Ok(()),
        }
    }

    /// Whether whoever works on it waits on its own thread.
    pub(super) const fn blocks(&self) -> bool {
        matches!(self, Self::File(_) | Self::NextFile(_))
    }

    /// Runs something that takes no longer than `statements` at their limit. A network that has
    /// fallen silent sends nothing that a client could see, so only a clock tells. A file answers.
    async fn within<T>(
        wait: Option<Duration>,
        statements: u32,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        match wait {
            Some(wait) => postgres::in_time(wait * statements, work).await,
            None => work.await,
        }
    }

    const fn wait(&self) -> Option<Duration> {
        match self {
            Self::File(_) | Self::NextFile(_) => None,
            Self::Postgres { wait, .. } => Some(*wait),
        }
    }

    pub(super) async fn connect(&self) -> Result<Conn, Error> {
        Ok(match self {
            Self::File(path) => Conn::file(sqlite::connect(path)?, Some(Copier::new(path))),
            Self::NextFile(path) => Conn::file(sqlite::connect_next(path)?, None),
            Self::Postgres { options, .. } => {
                Conn::Postgres(Box::new(PgConnection::connect_with(options).await?))
            }
        })
    }
}

pub(super) struct Writer {
    pub(super) way: Way,
    /// Made when it is needed.
    pub(super) conn: Option<Conn>,
    pub(super) projector: TaskProjector,
    /// The checkpoint as this writer left it; `None` when that is not certain.
    pub(super) position: Option<Position>,
    /// Whether a transaction was begun and did not end as it should. The database may have rolled it
    /// back by itself (a full disk, a lost connection), of which the connection's own count knows
    /// nothing.
    pub(super) unsettled: bool,
}

/// Does something with a writer: one to a file on a thread that may wait. Dropping the future lets
/// what has begun on a file come to its end; the next one to work with the writer waits for it.
pub(super) async fn with<T, F>(
    writer: &Arc<Mutex<Writer>>,
    work: impl FnOnce(OwnedMutexGuard<Writer>) -> F + Send + 'static,
) -> Result<T, Error>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let writer = Arc::clone(writer).lock_owned().await;
    if !writer.way.blocks() {
        return work(writer).await;
    }
    let runtime = Handle::current();
    let done = spawn_blocking(move || runtime.block_on(work(writer))).await;
    done.map_err(|ended| Error::Damaged(format!("the fold ended early: {ended}")))?
}

impl Writer {
    pub(super) fn new(way: Way, conn: Option<Conn>, projector: TaskProjector) -> Self {
        Self {
            way,
            conn,
            projector,
            position: None,
            unsettled: false,
        }
    }

    /// A connection without a past, if the last transaction did not end as it should.
    pub(super) async fn settled(&mut self) -> Result<&mut Conn, Error> {
        if self.unsettled {
            self.conn = None;
            self.unsettled = false;
        }
        match &mut self.conn {
            Some(conn) => Ok(conn),
            none => Ok(none.insert(self.way.connect().await?)),
        }
    }

    /// Forgets what it remembers: somebody else may have written since. A connection to a server
    /// goes too: it has not been used for a while and may be dead.
    pub(super) fn forget(&mut self) {
        self.position = None;
        if matches!(self.way, Way::Postgres { .. }) {
            self.conn = None;
        }
    }

    /// After anything went wrong on a server the connection is dropped: it may be dead, and its locks
    /// go with it; else the next one to fold would wait for them.
    fn keep_if_done<T>(&mut self, done: Result<T, Error>) -> Result<T, Error> {
        if done.is_err() && matches!(self.way, Way::Postgres { .. }) {
            self.conn = None;
        }
        done
    }

    pub(super) async fn certain(&mut self) -> Result<Position, Error> {
        let found = Way::within(self.way.wait(), 1, self.ask()).await;
        self.keep_if_done(found)
    }

    async fn ask(&mut self) -> Result<Position, Error> {
        if self.unsettled {
            self.position = None;
        }
        if let Some(position) = self.position {
            return Ok(position);
        }
        self.projector.forget();
        self.settled().await?;
        // A connection that was lost while nobody used it must not be asked again and again.
        self.unsettled = true;
        let conn = self.conn.as_mut().expect("settled made it");
        let mut tx = conn.begin().await?;
        let found = checkpoint::load_settled::<TaskProjector>(&mut tx).await?;
        tx.commit().await?;
        self.unsettled = false;
        let position = match found {
            Some((TaskProjector::VERSION, position)) => position,
            Some((found, _)) => return Err(Error::OtherVersion { found }),
            None => {
                return Err(Error::Damaged("the checkpoint has disappeared".to_owned()));
            }
        };
        self.position = Some(position);
        Ok(position)
    }

    /// Folds events as [`super::ReadModels::apply`] promises.
    pub(super) async fn apply_or_name(
        &mut self,
        events: &[Arc<Recorded>],
    ) -> Result<Position, Error> {
        let error = match self.apply(events).await {
            Err(error) => error,
            done => return done,
        };
        if let Error::Poison { position, .. } = &error {
            let before = events.partition_point(|e| e.position < *position);
            if before < events.len() {
                self.apply(&events[..before]).await?;
            }
            return Err(error);
        }
        if !error.is_contradiction() {
            return Err(error);
        }
        // The tables refused some row of the batch. One by one, the event behind it shows itself.
        let mut checkpoint = self.certain().await?;
        for recorded in events {
            checkpoint = match self.apply(std::slice::from_ref(recorded)).await {
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

    pub(super) async fn apply(&mut self, events: &[Arc<Recorded>]) -> Result<Position, Error> {
        let from = self.certain().await?;
        let new = &events[events.partition_point(|e| e.position <= from)..];
        let Some(last) = new.last() else {
            return Ok(from);
        };
        let to = last.position;
        let channel = match &self.way {
            Way::File(_) | Way::NextFile(_) => None,
            Way::Postgres { channel, .. } => channel.clone(),
        };
        // From here until the commit has answered, nothing in memory is certain, also when this
        // future is dropped half-way.
        self.position = None;
        let wait = self.way.wait();
        let written = Way::within(wait, 1, self.write(new, from, channel)).await;
        self.keep_if_done(written)?;
        self.unsettled = false;
        self.position = Some(to);
        Ok(to)
    }

    async fn write(
        &mut self,
        new: &[Arc<Recorded>],
        from: Position,
        channel: Option<String>,
    ) -> Result<(), Error> {
        let Some(last) = new.last() else {
            return Ok(());
        };
        self.settled().await?;
        self.unsettled = true;
        let conn = self.conn.as_mut().expect("settled made it");
        let mut tx = conn.begin().await?;
        checkpoint::advance::<TaskProjector>(&mut tx, from, last, channel).await?;
        self.projector.apply(&mut tx, new).await?;
        tx.commit().await?;
        conn.committed();
        Ok(())
    }

    /// Runs statements without parameters in one transaction.
    pub(super) async fn execute(&mut self, statements: &[String]) -> Result<(), Error> {
        if statements.is_empty() {
            return Ok(());
        }
        self.settled().await?;
        self.unsettled = true;
        let conn = self.conn.as_mut().expect("settled made it");
        let mut tx = conn.begin().await?;
        for statement in statements {
            let args = tx.args();
            tx.execute(AssertSqlSafe(statement.clone()), args).await?;
        }
        tx.commit().await?;
        self.unsettled = false;
        Ok(())
    }

    /// Empties all tables and goes back to position 0.
    pub(super) async fn clear(&mut self) -> Result<(), Error> {
        let cleared = Way::within(self.way.wait(), CLEAR_STATEMENTS, self.empty()).await;
        self.keep_if_done(cleared)
    }

    async fn empty(&mut self) -> Result<(), Error> {
        self.forget();
        self.projector.forget();
        self.settled().await?;
        self.unsettled = true;
        let conn = self.conn.as_mut().expect("settled made it");
        let mut tx = conn.begin().await?;
        if tx.engine() == Engine::Postgres {
            postgres::lock_checkpoint(&mut tx).await?;
        }
        tx.execute_all(CLEAR).await?;
        checkpoint::begin::<TaskProjector>(&mut tx).await?;
        tx.commit().await?;
        self.unsettled = false;
        Ok(())
    }
}

/// Statements of [`CLEAR`], each of which may take its time.
const CLEAR_STATEMENTS: u32 = 15;
const CLEAR: &str = "DELETE FROM tasks;
    DELETE FROM task_bodies;
    DELETE FROM task_labels;
    DELETE FROM attempts;
    DELETE FROM runs;
    DELETE FROM run_status;
    DELETE FROM run_said;
    DELETE FROM run_past;
    DELETE FROM run_output;
    DELETE FROM flow_summary;
    DELETE FROM rootless_flows;
    DELETE FROM open_runs;
    DELETE FROM task_counts;
    DELETE FROM created_buckets;
    DELETE FROM checkpoints;";

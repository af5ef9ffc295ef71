//! The one connection that changes rows, with what it remembers of them.

use super::conn::Conn;
use super::copier::Copier;
use super::options::Postgres as Place;
use super::{postgres, sqlite};
use crate::tasks::TaskProjector;
use crate::{
    DAMAGED_FLOWS_MAX, DamagedFlow, DamagedFlows, Error, Projector, checkpoint, damage,
    with_sources,
};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::{Position, Recorded};
use taskledger_sql::Engine;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};
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
    /// The damaged flows that the rows name.
    damaged: DamagedFlows,
    /// Shows them to readers.
    shown: watch::Sender<Arc<DamagedFlows>>,
}

/// What is folded at a time.
#[derive(Debug, Clone)]
pub(super) struct Page {
    /// In order of position.
    pub(super) events: Vec<Arc<Recorded>>,
    /// Flows that are folded no further, from the positions named on.
    pub(super) damaged: Vec<DamagedFlow>,
    /// Where the checkpoint goes.
    pub(super) to: Position,
}

impl Page {
    /// A page of events alone.
    pub(super) fn of(events: &[Arc<Recorded>]) -> Self {
        Self {
            events: events.to_vec(),
            damaged: Vec::new(),
            to: events.last().map_or(0, |it| it.position),
        }
    }
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
            damaged: DamagedFlows::new(),
            shown: watch::channel(Arc::default()).0,
        }
    }

    /// Shows damaged flows to readers through this.
    pub(super) fn showing(mut self, shown: watch::Sender<Arc<DamagedFlows>>) -> Self {
        self.shown = shown;
        self
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
        let damaged = match found {
            Some((TaskProjector::VERSION, _)) => damage::load(&mut tx).await?,
            Some(_) | None => DamagedFlows::new(),
        };
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
        if damaged != self.damaged {
            self.shown.send_replace(Arc::new(damaged.clone()));
            self.damaged = damaged;
        }
        Ok(position)
    }

    /// Folds a page as [`super::ReadModels::apply_page`] promises.
    pub(super) async fn apply_or_leave_out(&mut self, mut page: Page) -> Result<Position, Error> {
        loop {
            let error = match self.apply(&page).await {
                Err(error) => error,
                done => return done,
            };
            let (position, reason) = if let Error::Poison { position, reason } = error {
                (position, reason)
            } else if error.is_contradiction() {
                // The tables refused some row of the page.
                (self.refused(&page).await?, with_sources(&error))
            } else {
                return Err(error);
            };
            let found = page.events.iter().find(|it| it.position == position);
            let known = self.damaged.len() + page.damaged.len();
            let (Some(recorded), true) = (found, known < DAMAGED_FLOWS_MAX) else {
                let before = page.events.partition_point(|it| it.position < position);
                if before > 0 {
                    self.apply(&Page::of(&page.events[..before])).await?;
                }
                return Err(Error::Poison { position, reason });
            };
            page.damaged.push(DamagedFlow {
                flow: recorded.flow,
                position,
                is_readable: true,
                reason: reason.into(),
            });
        }
    }

    /// Position of the event behind a row that the tables refuse: folded one by one, it shows itself.
    async fn refused(&mut self, page: &Page) -> Result<Position, Error> {
        for recorded in &page.events {
            let one = Page {
                damaged: page.damaged.clone(),
                ..Page::of(std::slice::from_ref(recorded))
            };
            match self.apply(&one).await {
                Err(error) if error.is_contradiction() => return Ok(recorded.position),
                other => other?,
            };
        }
        Err(Error::Damaged(
            "the rows of some events are refused together, and not one by one".to_owned(),
        ))
    }

    pub(super) async fn apply(&mut self, page: &Page) -> Result<Position, Error> {
        let from = self.certain().await?;
        if page.to <= from {
            return Ok(from);
        }
        let new = &page.events[page.events.partition_point(|e| e.position <= from)..];
        let channel = match &self.way {
            Way::File(_) | Way::NextFile(_) => None,
            Way::Postgres { channel, .. } => channel.clone(),
        };
        // From here until the commit has answered, nothing in memory is certain, also when this
        // future is dropped half-way.
        self.position = None;
        let wait = self.way.wait();
        let damaged: Vec<DamagedFlow> = page
            .damaged
            .iter()
            .filter(|it| !self.damaged.contains_key(&it.flow))
            .cloned()
            .collect();
        let written = self.write(new, &damaged, (from, page.to), channel);
        let written = Way::within(wait, 1, written).await;
        self.keep_if_done(written)?;
        self.unsettled = false;
        self.position = Some(page.to);
        if !damaged.is_empty() {
            for it in damaged {
                self.damaged.entry(it.flow).or_insert(it);
            }
            self.shown.send_replace(Arc::new(self.damaged.clone()));
        }
        Ok(page.to)
    }

    async fn write(
        &mut self,
        new: &[Arc<Recorded>],
        damaged: &[DamagedFlow],
        (from, to): (Position, Position),
        channel: Option<String>,
    ) -> Result<(), Error> {
        let event = new
            .last()
            .filter(|last| last.position == to)
            .map(|last| last.id);
        let folded = self.folded(new, damaged);
        self.settled().await?;
        self.unsettled = true;
        let conn = self.conn.as_mut().expect("settled made it");
        let mut tx = conn.begin().await?;
        checkpoint::advance::<TaskProjector>(&mut tx, from, (to, event), channel).await?;
        for damaged in damaged {
            damage::add(&mut tx, damaged).await?;
        }
        if !folded.is_empty() {
            self.projector.apply(&mut tx, &folded).await?;
        }
        tx.commit().await?;
        conn.committed();
        Ok(())
    }

    /// The events without those of damaged flows from their damaged event on.
    fn folded<'e>(
        &self,
        events: &'e [Arc<Recorded>],
        damaged: &[DamagedFlow],
    ) -> Cow<'e, [Arc<Recorded>]> {
        if self.damaged.is_empty() && damaged.is_empty() {
            return Cow::Borrowed(events);
        }
        let is_left_out = |recorded: &Recorded| {
            self.damaged.contains_key(&recorded.flow)
                || damaged
                    .iter()
                    .any(|it| it.flow == recorded.flow && it.position <= recorded.position)
        };
        let folded = events.iter().filter(|it| !is_left_out(it));
        Cow::Owned(folded.cloned().collect())
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
const CLEAR_STATEMENTS: u32 = 16;
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
    DELETE FROM damaged_flows;
    DELETE FROM checkpoints;";

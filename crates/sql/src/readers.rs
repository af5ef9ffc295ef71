//! Connections that read a file of SQLite: few, opened when they are needed.
//!
//! Owns: how many there are, who has one, and closing those that nobody needs. A statement runs on a
//! thread that may wait for the disk, and everything that must outlive it goes there with it: dropping
//! the future of a statement interrupts it, and frees nothing before it has ended. Through `sqlx` each
//! row was a message between two threads, which cost more than the row.

use crate::error::Error;
use crate::values::{Param, Values, fetch_all};
use rusqlite::{Connection, InterruptHandle};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{OwnedRwLockReadGuard, OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

/// A connection that nobody needs is closed after this time, so that an idle server is small.
const IDLE: Duration = Duration::from_secs(30);

/// Options of the connections to a file.
#[derive(Debug, Clone)]
pub struct Options {
    /// Path of the file that the error is about.
    pub path: PathBuf,
    /// Open at once; 0 counts as 1.
    pub connections: u32,
    /// How long a query waits for a connection.
    pub wait: Duration,
    /// Opens one that cannot write.
    pub connect: fn(&Path) -> Result<Connection, rusqlite::Error>,
}

/// The connections to one file. Dropping it closes those that nobody uses.
#[derive(Debug)]
pub struct Readers {
    options: Options,
    places: Arc<Semaphore>,
    idle: Arc<Mutex<Idle>>,
}

#[derive(Debug, Default)]
struct Idle {
    /// The one that was used last comes last, with the time of that.
    connections: Vec<(Connection, Instant)>,
    /// Somebody looks after them.
    attended: bool,
}

/// A transaction that reads one consistent state, which is that of its first statement.
#[derive(Debug)]
pub struct Reader {
    /// Away while a statement runs; lost with a statement that was broken off.
    lent: Option<Lent>,
}

/// A connection, the right to it, and what keeps the file in its place.
#[derive(Debug)]
struct Lent {
    connection: Option<Connection>,
    readers: OwnedRwLockReadGuard<Readers>,
    _place: OwnedSemaphorePermit,
}

impl Readers {
    /// Nothing is opened yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            places: Arc::new(Semaphore::new(options.connections.max(1) as usize)),
            idle: Arc::default(),
            options,
        }
    }

    /// Begins to read, when a connection is free within [`Options::wait`]. As long as the reader lives,
    /// `readers` stays locked: nobody replaces the file meanwhile.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: none became free.
    pub async fn read(readers: OwnedRwLockReadGuard<Self>) -> Result<Reader, Error> {
        let place = timeout(
            readers.options.wait,
            Arc::clone(&readers.places).acquire_owned(),
        );
        let place = match place.await {
            Ok(Ok(place)) => place,
            Ok(Err(_)) | Err(_) => return Err(Error::Unavailable(sqlx::Error::PoolTimedOut)),
        };
        let idle = lock(&readers.idle).connections.pop();
        Ok(Reader {
            lent: Some(Lent {
                connection: idle.map(|(connection, _)| connection),
                readers,
                _place: place,
            }),
        })
    }

    /// Closes what nobody uses.
    pub fn close(&self) {
        let closing = std::mem::take(&mut lock(&self.idle).connections);
        drop(closing);
    }

    fn take_back(&self, connection: Connection) {
        let mut idle = lock(&self.idle);
        idle.connections.push((connection, Instant::now()));
        // Outside of a runtime the process is about to end.
        if !idle.attended && tokio::runtime::Handle::try_current().is_ok() {
            idle.attended = true;
            tokio::spawn(close_idle(Arc::downgrade(&self.idle)));
        }
    }
}

/// Closes connections that were not used for [`IDLE`], until none is left.
async fn close_idle(idle: Weak<Mutex<Idle>>) {
    loop {
        sleep(IDLE).await;
        let Some(idle) = idle.upgrade() else { return };
        let mut idle = lock(&idle);
        let unused = idle
            .connections
            .partition_point(|(_, used)| used.elapsed() >= IDLE);
        let closing: Vec<_> = idle.connections.drain(..unused).collect();
        let all = idle.connections.is_empty();
        idle.attended = !all;
        drop(idle);
        // The last one to close may have to write.
        spawn_blocking(move || drop(closing));
        if all {
            return;
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reader {
    /// All rows of statements that run one after the other.
    pub(crate) async fn fetch(
        &mut self,
        statements: Vec<(Arc<str>, Vec<Param>)>,
    ) -> Result<Vec<Values>, Error> {
        let gone = || Error::Unavailable(sqlx::Error::WorkerCrashed);
        let mut lent = self.lent.take().ok_or_else(gone)?;
        let waiting = Waiting::default();
        let phase = Arc::clone(&waiting.0);
        let done = spawn_blocking(move || {
            let found = lent.fetch(&statements, &phase);
            (lent, found)
        });
        let (lent, found) = done.await.map_err(|_| gone())?;
        drop(waiting);
        self.lent = Some(lent);
        found
    }
}

/// How far the statements of one caller are.
#[derive(Default)]
enum Phase {
    #[default]
    Queued,
    Run(InterruptHandle),
    Ended,
    /// Nobody waits for them any more.
    Unwanted,
}

/// Whoever waits for statements; they are interrupted when it is dropped.
#[derive(Default)]
struct Waiting(Arc<Mutex<Phase>>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut phase = lock(&self.0);
        if let Phase::Run(statement) = std::mem::replace(&mut *phase, Phase::Unwanted) {
            statement.interrupt();
        }
    }
}

impl Lent {
    fn fetch(
        &mut self,
        statements: &[(Arc<str>, Vec<Param>)],
        phase: &Mutex<Phase>,
    ) -> Result<Vec<Values>, Error> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert((self.readers.options.connect)(&self.readers.options.path)?),
        };
        let enter = |next| {
            let mut phase = lock(phase);
            let wanted = !matches!(*phase, Phase::Unwanted);
            if wanted {
                *phase = next;
            }
            wanted
        };
        if !enter(Phase::Run(connection.get_interrupt_handle())) {
            return Err(Error::Unavailable(sqlx::Error::WorkerCrashed));
        }
        let found = Self::run(connection, statements);
        enter(Phase::Ended);
        found
    }

    fn run(
        connection: &Connection,
        statements: &[(Arc<str>, Vec<Param>)],
    ) -> Result<Vec<Values>, Error> {
        if connection.is_autocommit() {
            connection.prepare_cached("BEGIN")?.execute([])?;
        }
        let mut found = Vec::new();
        for (sql, params) in statements {
            found.append(&mut fetch_all(connection, sql, params)?);
        }
        Ok(found)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let ended = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
        if ended {
            self.readers.take_back(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::RwLock;

    async fn read(readers: &Arc<RwLock<Readers>>) -> Reader {
        Readers::read(Arc::clone(readers).read_owned().await)
            .await
            .unwrap()
    }

    fn given_a_file() -> (tempfile::TempDir, Arc<RwLock<Readers>>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.db");
        let db = Connection::open(&path).unwrap();
        db.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n); INSERT INTO t VALUES (1)")
            .unwrap();
        let options = Options {
            path,
            connections: 1,
            wait: Duration::from_secs(5),
            connect: |path| Connection::open(path),
        };
        (folder, Arc::new(RwLock::new(Readers::new(options))))
    }

    fn all() -> Vec<(Arc<str>, Vec<Param>)> {
        vec![(Arc::from("SELECT n FROM t"), Vec::new())]
    }

    #[tokio::test]
    async fn a_reader_sees_one_state_and_the_next_one_the_next() {
        let (folder, readers) = given_a_file();
        let db = Connection::open(folder.path().join("rows.db")).unwrap();
        let mut reader = read(&readers).await;
        assert_eq!(reader.fetch(all()).await.unwrap().len(), 1);
        db.execute_batch("INSERT INTO t VALUES (2)").unwrap();
        assert_eq!(reader.fetch(all()).await.unwrap().len(), 1);
        drop(reader);
        let mut reader = read(&readers).await;
        assert_eq!(reader.fetch(all()).await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn a_statement_that_nobody_waits_for_is_interrupted_and_frees_its_place() {
        let (_folder, readers) = given_a_file();
        let mut reader = read(&readers).await;
        let endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) \
                       SELECT COUNT(*) FROM c";
        let statement = reader.fetch(vec![(Arc::from(endless), Vec::new())]);
        let moment = Duration::from_millis(50);
        assert!(timeout(moment, statement).await.is_err());
        assert!(reader.fetch(all()).await.is_err(), "its connection is away");
        drop(reader);
        // The only place becomes free again, and what it guards can be swapped.
        assert_eq!(read(&readers).await.fetch(all()).await.unwrap().len(), 1);
        drop(readers.write().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_nobody_needs_is_closed() {
        let (_folder, readers) = given_a_file();
        let open = async || lock(&readers.read().await.idle).connections.len();
        read(&readers).await.fetch(all()).await.unwrap();
        assert_eq!(open().await, 1);
        sleep(IDLE * 2).await;
        assert_eq!(open().await, 0);
        read(&readers).await.fetch(all()).await.unwrap();
        assert_eq!(open().await, 1);
        sleep(IDLE * 2).await;
        assert_eq!(open().await, 0);
    }
}

//! The log in a Postgres database, for several servers.
//!
//! Owns: the schema `taskledger`. Appends of all callers meet in one queue and are committed together
//! by one task (`committer`) in one statement; reads go to a pool (`queries`), nearly live readers
//! are served from memory (`ring`); one more connection hears of what other servers write
//! (`wakeups`). May not touch: rules, read models.
//! Positions become visible in their order to every reader, because whoever numbers events holds the
//! one row of `taskledger.head` until they are committed.

mod arrays;
mod batch;
mod call;
mod committer;
pub mod export;
mod failure;
mod head;
pub mod import;
mod link;
mod migrations;
mod open;
mod options;
mod place;
mod port;
mod queries;
mod reads;
mod retention;
pub mod rights;
mod row;
#[cfg(test)]
mod tests;
pub mod verify;
mod wakeups;

pub use migrations::{LOG_STEPS, Migrated, Steps, migrate, take};
pub use open::{OpenError, said};
pub use options::{ACQUIRE_TIMEOUT, CONNECTIONS, LOCK_TIMEOUT, Options, STATEMENT_TIMEOUT};

use super::check::{QUEUE_BYTES_MAX, QUEUE_LEN_MAX, Size};
use super::damage::DamageRegister;
use super::ring::Ring;
use super::{Append, Error, Outcome};
use batch::Waiting;
use committer::{Committer, Request};
use head::Head;
use reads::Reads;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use wakeups::Wakeups;

/// The log in a Postgres database.
pub struct PostgresStore {
    queue: Mutex<Option<mpsc::Sender<Request>>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    reads: Reads,
    ring: Arc<Ring>,
    head: Arc<Head>,
    commits: Arc<AtomicU64>,
    damage: DamageRegister,
    /// Payload bytes that may still enter the queue.
    queue_bytes: Arc<Semaphore>,
    /// Ends the task that listens.
    listening: Mutex<Option<DropGuard>>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("head", &self.head.known())
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens the log: takes the steps of the schema that are missing, and starts the tasks that
    /// append and listen. Cost: independent of the log's size.
    ///
    /// # Errors
    /// [`OpenError`]: each says what the operator can do.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let migrated = migrate(&options).await?;
        if !migrated.taken.is_empty() {
            tracing::info!(
                steps = migrated.taken.join(", "),
                "the event log's schema was brought up to date"
            );
        }
        let head = Arc::new(Head::default());
        let ring = Arc::new(Ring::default());
        let commits = Arc::new(AtomicU64::new(0));
        let reads = Reads::new(&options);
        let at = reads.head().await.map_err(|source| OpenError::Unusable {
            place: open::place(&options.connect),
            source,
        })?;
        head.note(at);
        let (queue, requests) = mpsc::channel(QUEUE_LEN_MAX);
        let committer = Committer::new(
            requests,
            &options,
            ring.clone(),
            head.clone(),
            commits.clone(),
        );
        let stop = CancellationToken::new();
        let wakeups = Wakeups::new(&options, head.clone(), stop.clone());
        let tasks = vec![tokio::spawn(committer.run()), tokio::spawn(wakeups.run())];
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            tasks: Mutex::new(tasks),
            reads,
            ring,
            head,
            commits,
            damage: DamageRegister::default(),
            queue_bytes: Arc::new(Semaphore::new(QUEUE_BYTES_MAX)),
            listening: Mutex::new(Some(stop.drop_guard())),
        })
    }

    /// Commits what has arrived, refuses what comes later, closes all connections. Calling it again
    /// does nothing.
    pub async fn close(&self) {
        let queue = lock(&self.queue).take();
        if let Some(queue) = queue {
            // Fails only when the committer has ended already.
            let _ = queue.send(Request::Close).await;
        }
        lock(&self.listening).take();
        let tasks = std::mem::take(&mut *lock(&self.tasks));
        for task in tasks {
            if let Err(error) = task.await {
                tracing::error!(%error, "closing the log did not finish");
            }
        }
        self.reads.close().await;
    }

    /// Bytes of the whole database, whoever's they are.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn size_bytes(&self) -> Result<u64, Error> {
        self.reads.size_bytes().await
    }

    /// Connections that read: how many are open, and how many of those nobody uses.
    #[must_use]
    pub fn connections(&self) -> (u64, u64) {
        self.reads.connections()
    }

    #[cfg(test)]
    /// The pool that reads; for tests that take its connections away.
    #[must_use]
    pub const fn pool(&self) -> &sqlx::PgPool {
        self.reads.pool()
    }

    fn queue(&self) -> Result<mpsc::Sender<Request>, Error> {
        lock(&self.queue).clone().ok_or_else(closed)
    }

    /// Queues an append. It happens even when the caller stops waiting.
    async fn enqueue(
        &self,
        append: Append,
        size: Size,
    ) -> Result<oneshot::Receiver<Result<Outcome, Error>>, Error> {
        let queue = self.queue()?;
        let share = self.share(size).await?;
        let (reply, answer) = oneshot::channel();
        let waiting = Waiting {
            append,
            size,
            reply,
            share,
        };
        queue
            .send(Request::Append(Box::new(waiting)))
            .await
            .map_err(|_| closed())?;
        Ok(answer)
    }

    /// A part of the bytes that may be on their way to the database.
    async fn share(&self, size: Size) -> Result<OwnedSemaphorePermit, Error> {
        let bytes = u32::try_from(size.bytes.min(QUEUE_BYTES_MAX)).unwrap_or(u32::MAX);
        let share = self.queue_bytes.clone().acquire_many_owned(bytes).await;
        share.map_err(|_| closed())
    }

    fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}

fn closed() -> Error {
    Error::Unavailable("the log is closed".to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The log in one SQLite file, for one server.
//!
//! Owns: `ledger.db` in the data folder. Appends of all callers meet in one queue and are committed
//! together by one thread (`committer`), or where they come from if they are alone (`alone`); reads run on a few
//! threads of their own (`readers`); nearly live readers are served from memory (`ring`). May not touch: rules, read
//! models. Whoever opens it holds the data folder's lock (`store::lock`).

mod ahead;
mod alone;
pub mod backup;
mod beside;
mod checkpoint;
mod committer;
pub mod export;
mod failure;
pub mod import;
mod known;
pub(crate) mod open;
mod port;
mod queries;
mod readers;
mod retention;
mod row;
mod span;
#[cfg(test)]
mod tests;
pub mod verify;
mod writer;

pub use crate::check::{APPEND_BYTES_MAX, SNAPSHOT_BYTES_MAX};
pub use committer::OnFatal;
pub use open::{LEDGER_FILE, OpenError};
pub use verify::verify;

use super::Error;
use super::damage::DamageRegister;
use super::ring::Ring;
use crate::check::{QUEUE_BYTES_MAX, QUEUE_LEN_MAX, Size};
use committer::{Committer, Counted, Last, Request, Share, Shared, Write};
use known::KnownDropped;
use readers::Readers;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use taskledger_clock::SharedClock;
use taskledger_domain::Position;
use tokio::sync::{Semaphore, mpsc, watch};

/// Exit code when an outcome is not known (`EX_SOFTWARE`).
const EXIT_OUTCOME_UNKNOWN: i32 = 70;

/// Options for opening the log.
#[derive(Clone)]
pub struct Options {
    /// The file; made when it is missing. Its folder must exist.
    pub path: PathBuf,
    /// Gives `recorded_at`.
    pub clock: SharedClock,
    /// Called when it is not known whether a commit is on disk. The default writes the text to
    /// standard error and ends the process with code 70. If it returns, the store takes no more
    /// appends.
    pub on_fatal: OnFatal,
    /// Pages of 4 KiB beyond which the file does not grow: appends are then `NotWritable`.
    pub pages_max: Option<u32>,
}

impl Options {
    /// The log in `data_folder`.
    #[must_use]
    pub fn new(data_folder: &Path, clock: SharedClock) -> Self {
        Self {
            path: data_folder.join(LEDGER_FILE),
            clock,
            on_fatal: Arc::new(|text| {
                eprintln!("taskledger: {text}");
                std::process::exit(EXIT_OUTCOME_UNKNOWN);
            }),
            pages_max: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("path", &self.path)
            .field("pages_max", &self.pages_max)
            .finish_non_exhaustive()
    }
}

/// The log in one SQLite file.
pub struct SqliteStore {
    queue: Mutex<Option<mpsc::Sender<Request>>>,
    /// Writes that are on their way to the queue, in it, or not answered.
    queued: Arc<AtomicUsize>,
    committer: Shared,
    readers: Mutex<Option<Readers>>,
    threads: Mutex<Option<Threads>>,
    ring: Arc<Ring>,
    head: watch::Receiver<Position>,
    commits: Arc<AtomicU64>,
    dropped: KnownDropped,
    damage: DamageRegister,
    /// Payload bytes that may still enter the queue.
    queue_bytes: Arc<Semaphore>,
}

/// The threads of an open log.
struct Threads {
    /// Gives its connection back.
    committer: JoinHandle<Option<Committer>>,
    /// Where that is if it does not.
    shared: Shared,
    others: Vec<JoinHandle<()>>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("head", &*self.head.borrow())
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens or makes the log and starts its threads. Cost: independent of the log's size, but for
    /// a WAL that a crash left.
    ///
    /// # Errors
    /// [`OpenError`]: the user must choose another folder or another program, or mend the disk.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let path = options.path;
        let unusable = |source| OpenError::Unusable {
            path: path.clone(),
            source,
        };
        let connection = open::writer(&path)?;
        if let Some(pages) = options.pages_max {
            connection
                .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
                .map_err(unusable)?;
        }
        let writer = writer::Writer::prepare(connection).map_err(unusable)?;
        let at = writer.head();
        let (readers, mut threads) = Readers::start(&path)?;
        let (queue, requests) = mpsc::channel(QUEUE_LEN_MAX);
        let (checkpoints, copier) = checkpoint::Checkpoints::start(&path, queue.downgrade())?;
        let commits = checkpoints.commits();
        let (head_sender, head) = watch::channel(at);
        let ring = Arc::new(Ring::default());
        let committer = Arc::new(Mutex::new(Some(Committer {
            writer,
            clock: options.clock,
            ring: ring.clone(),
            head: head_sender,
            checkpoints,
            on_fatal: options.on_fatal,
            refusing: false,
            last: Last::default(),
        })));
        let (shared, kept) = (committer.clone(), committer.clone());
        let thread = std::thread::Builder::new()
            .name("log-committer".to_owned())
            .spawn(move || committer::run(requests, &shared))
            .map_err(OpenError::Thread)?;
        threads.push(copier);
        let threads = Threads {
            committer: thread,
            shared: kept,
            others: threads,
        };
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            queued: Arc::default(),
            committer,
            readers: Mutex::new(Some(readers)),
            threads: Mutex::new(Some(threads)),
            ring,
            head,
            commits,
            dropped: KnownDropped::default(),
            damage: DamageRegister::default(),
            queue_bytes: Arc::new(Semaphore::new(QUEUE_BYTES_MAX)),
        })
    }

    /// Commits what has arrived, refuses what comes later, empties the WAL, ends all threads.
    /// Calling it again does nothing.
    pub async fn close(&self) {
        let queue = lock(&self.queue).take();
        if let Some(queue) = queue {
            // Fails only when the committer has ended already.
            let _ = queue.send(Request::Close).await;
        }
        lock(&self.readers).take();
        let Some(threads) = lock(&self.threads).take() else {
            return;
        };
        let joined = tokio::task::spawn_blocking(move || join(threads)).await;
        if let Err(error) = joined {
            tracing::error!(%error, "closing the log did not finish");
        }
    }

    fn queue(&self) -> Result<mpsc::Sender<Request>, Error> {
        lock(&self.queue).clone().ok_or_else(closed)
    }

    fn readers(&self) -> Result<Readers, Error> {
        lock(&self.readers).clone().ok_or_else(closed)
    }

    /// Queues a write. The write happens even when the caller stops waiting.
    async fn write(&self, write: Write, size: Size) -> Result<(), Error> {
        let queue = self.queue()?;
        let counted = Counted::among(&self.queued);
        let bytes = u32::try_from(size.bytes.min(QUEUE_BYTES_MAX)).unwrap_or(u32::MAX);
        let bytes = self
            .queue_bytes
            .clone()
            .acquire_many_owned(bytes)
            .await
            .map_err(|_| closed())?;
        let share = Share {
            _bytes: bytes,
            _counted: counted,
        };
        let request = Request::Write { write, size, share };
        queue.send(request).await.map_err(|_| closed())
    }
}

impl Drop for SqliteStore {
    /// Finishes as `close` does; blocks for the last commit.
    fn drop(&mut self) {
        lock(&self.queue).take();
        lock(&self.readers).take();
        if let Some(threads) = lock(&self.threads).take() {
            join(threads);
        }
    }
}

fn closed() -> Error {
    Error::Unavailable("the log is closed".to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connection that writes is closed last: only then does SQLite remove the empty WAL. A panic of
/// a thread has been reported by the thread itself.
fn join(threads: Threads) {
    let committer = threads.committer.join().ok().flatten();
    let committer = committer.or_else(|| lock(&threads.shared).take());
    // The copier ends when nobody can ask it any more.
    let writer = committer.map(|committer| committer.writer);
    for thread in threads.others {
        let _ = thread.join();
    }
    drop(writer);
}

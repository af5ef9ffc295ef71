//! The log in one SQLite file, for one server.
//!
//! Owns: `ledger.db` in the data folder. Appends of all callers meet in one queue and are committed
//! together by one thread (`committer`); reads run on a few threads of their own (`readers`);
//! nearly live readers are served from memory (`ring`). May not touch: rules, read models.
//! Whoever opens it holds the data folder's lock (`store::lock`).

mod checkpoint;
mod committer;
pub mod export;
mod failure;
mod open;
mod queries;
mod readers;
mod row;
pub mod verify;
mod writer;

pub use committer::OnFatal;
pub use open::{LEDGER_FILE, OpenError};
pub use verify::verify;

use super::ring::Ring;
use super::{Append, ClaimKey, Error, EventStore, Outcome, Page, Resolution, Snapshot};
use crate::clock::SharedClock;
use async_trait::async_trait;
use committer::{Committer, Request, Size, Write};
use readers::Readers;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use taskledger_domain::{EventId, FlowId, Position, Recorded, Timestamp, Version};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

/// Payload bytes of one append: four times the largest request, since a command may write what it
/// was given more than once.
pub const APPEND_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of one snapshot: a flow of the largest size takes about 20 MB.
pub const SNAPSHOT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Requests that wait for the committer; more wait in front of the queue.
const QUEUE_LEN_MAX: usize = 4_096;
/// Payload bytes that wait for the committer: two of the largest appends.
const QUEUE_BYTES_MAX: usize = 2 * APPEND_BYTES_MAX;
/// Events in one page of `read_all`.
const PAGE_EVENTS_MAX: usize = 10_000;
/// Payload bytes in one page of `read_all`, unless its first event is larger.
const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Exit code when an outcome is not known (`EX_SOFTWARE`).
const EXIT_OUTCOME_UNKNOWN: i32 = 70;

/// How the log is opened.
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
    readers: Mutex<Option<Readers>>,
    threads: Mutex<Option<Threads>>,
    ring: Arc<Ring>,
    head: watch::Receiver<Position>,
    /// Payload bytes that may still enter the queue.
    queue_bytes: Arc<Semaphore>,
}

/// What runs for an open log.
struct Threads {
    /// Gives its connection back.
    committer: JoinHandle<rusqlite::Connection>,
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
        let at = writer::Writer::prepare(&connection)
            .map_err(unusable)?
            .head();
        let (readers, mut threads) = Readers::start(&path)?;
        let (queue, requests) = mpsc::channel(QUEUE_LEN_MAX);
        let (checkpoints, helper) = checkpoint::Checkpoints::start(&path, queue.downgrade())?;
        let (head_sender, head) = watch::channel(at);
        let ring = Arc::new(Ring::default());
        let committer = Committer {
            requests,
            clock: options.clock,
            ring: ring.clone(),
            head: head_sender,
            checkpoints,
            on_fatal: options.on_fatal,
        };
        let thread = std::thread::Builder::new()
            .name("log-committer".to_owned())
            .spawn(move || {
                match writer::Writer::prepare(&connection) {
                    Ok(writer) => committer.run(&connection, writer),
                    Err(error) => (committer.on_fatal)(format!(
                        "the event log's writer cannot start: {error}"
                    )),
                }
                connection
            })
            .map_err(OpenError::Thread)?;
        threads.push(helper);
        let threads = Threads {
            committer: thread,
            others: threads,
        };
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            readers: Mutex::new(Some(readers)),
            threads: Mutex::new(Some(threads)),
            ring,
            head,
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
        let bytes = u32::try_from(size.bytes.min(QUEUE_BYTES_MAX)).unwrap_or(u32::MAX);
        let share = self
            .queue_bytes
            .clone()
            .acquire_many_owned(bytes)
            .await
            .map_err(|_| closed())?;
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

#[async_trait]
impl EventStore for SqliteStore {
    async fn append(&self, append: Append) -> Result<Outcome, Error> {
        let size = check(&append)?;
        let (reply, answer) = oneshot::channel();
        self.write(Write::Append(Box::new(append), reply), size)
            .await?;
        // The committer has ended in the middle of it.
        answer.await.unwrap_or(Ok(Outcome::Unknown))
    }

    async fn resolve(&self, stream: FlowId, ids: &[EventId]) -> Result<Resolution, Error> {
        if ids.is_empty() {
            return Err(Error::Invalid("no event ids to resolve".to_owned()));
        }
        let (reply, answer) = oneshot::channel();
        let request = Request::Resolve {
            stream,
            ids: ids.to_vec(),
            reply,
        };
        self.queue()?.send(request).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    async fn read_stream(
        &self,
        stream: FlowId,
        after: Version,
        limit: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        self.readers()?
            .run(move |q| q.read_stream(stream, after, limit))
            .await
    }

    async fn read_versions(
        &self,
        stream: FlowId,
        versions: &[Version],
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        let versions = versions.to_vec();
        self.readers()?
            .run(move |q| q.read_versions(stream, &versions))
            .await
    }

    async fn read_all(&self, after: Position, limit: usize) -> Result<Page, Error> {
        let readers = self.readers()?;
        let head = *self.head.borrow();
        let last = after
            .saturating_add(limit.min(PAGE_EVENTS_MAX) as u64)
            .min(head);
        if last <= after {
            return Ok(Page {
                events: Vec::new(),
                next: after,
                at_end: after >= head,
            });
        }
        let count = usize::try_from(last - after).unwrap_or(PAGE_EVENTS_MAX);
        let events = match self.ring.read(after, count, PAGE_BYTES_MAX) {
            Some(events) => events,
            None => {
                readers
                    .run(move |q| q.read_all(after, last, PAGE_BYTES_MAX))
                    .await?
            }
        };
        let next = events.last().map_or(after, |e| e.position);
        Ok(Page {
            events,
            next,
            at_end: next >= head,
        })
    }

    async fn head(&self) -> Result<Position, Error> {
        self.readers()?;
        Ok(*self.head.borrow())
    }

    async fn stream_head(&self, stream: FlowId) -> Result<Option<(Version, Position)>, Error> {
        self.readers()?.run(move |q| q.stream_head(stream)).await
    }

    fn watch(&self) -> watch::Receiver<Position> {
        self.head.clone()
    }

    async fn claims(
        &self,
        keys: &[ClaimKey],
        now: Timestamp,
    ) -> Result<Vec<Option<Arc<str>>>, Error> {
        let keys = keys.to_vec();
        self.readers()?
            .run(move |q| {
                keys.iter()
                    .map(|key| q.held_claim(key, now).map_err(|e| failure::of_read(&e, 0)))
                    .collect()
            })
            .await
    }

    async fn raise_fence(&self, name: &str) -> Result<u64, Error> {
        let (reply, answer) = oneshot::channel();
        self.write(Write::RaiseFence(name.to_owned(), reply), Size::default())
            .await?;
        answer.await.map_err(|_| closed())?
    }

    async fn load_snapshot(&self, stream: FlowId, format: u32) -> Result<Option<Snapshot>, Error> {
        self.readers()?
            .run(move |q| q.load_snapshot(stream, format))
            .await
    }

    async fn save_snapshot(&self, stream: FlowId, snapshot: Snapshot) -> Result<(), Error> {
        let bytes = snapshot.bytes.len();
        if bytes > SNAPSHOT_BYTES_MAX {
            return Err(Error::Invalid(format!(
                "a snapshot has at most {SNAPSHOT_BYTES_MAX} bytes, this one has {bytes}"
            )));
        }
        let (reply, answer) = oneshot::channel();
        let size = Size { events: 0, bytes };
        self.write(Write::SaveSnapshot(stream, snapshot, reply), size)
            .await?;
        answer.await.map_err(|_| closed())?
    }
}

/// The rules of the port that need no look into the log.
fn check(append: &Append) -> Result<Size, Error> {
    if append.events.is_empty() {
        return Err(Error::Invalid(
            "an append has at least one event".to_owned(),
        ));
    }
    if !writer::claims_are_distinct(&append.claims) {
        return Err(Error::Invalid(
            "an append claims something twice".to_owned(),
        ));
    }
    let events: usize = append.events.iter().map(|e| e.encoded.data.len()).sum();
    let claims: usize = append.claims.iter().map(|c| c.value.len()).sum();
    let bytes = events.saturating_add(claims);
    if bytes > APPEND_BYTES_MAX {
        return Err(Error::Invalid(format!(
            "an append has at most {APPEND_BYTES_MAX} bytes of payload, this one has {bytes}"
        )));
    }
    Ok(Size {
        events: append.events.len(),
        bytes,
    })
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
    let connection = threads.committer.join();
    for thread in threads.others {
        let _ = thread.join();
    }
    drop(connection);
}

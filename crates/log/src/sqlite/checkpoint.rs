//! Keeps the write-ahead log short.
//!
//! Owns: a thread that copies committed pages into the database file while the committer goes on
//! (PASSIVE), and the committer's own share of it: the last few pages, without which the WAL could
//! never start over under constant load, and emptying it when nothing happens. Its file is kept longer than
//! what is in it (`ahead`).
//! A checkpoint that fails loses nothing; the WAL only stays longer.

use super::ahead::{Ahead, FRAMES_KEPT};
use super::committer::Request;
use super::open::{self, OpenError};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc::WeakSender;

/// Pages of 4 KiB in the WAL before they are copied: 32 MiB. Fewer copies of hot pages, and still
/// read back in well under a tenth of a second at a start after a crash.
pub(super) const CHECKPOINT_AFTER_PAGES: u64 = 8_192;
/// Without commits for so long, the WAL is emptied.
const IDLE: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct CopierState {
    /// Transactions so far.
    commits: Arc<AtomicU64>,
    /// The copier has copied most of the WAL; the committer should copy the rest.
    copied: AtomicBool,
}

/// The committer's side.
#[derive(Debug)]
pub(super) struct Checkpoints {
    shared: Arc<CopierState>,
    grown: SyncSender<()>,
    ahead: Ahead,
}

impl Checkpoints {
    /// Starts the copier; it ends when the returned value is dropped.
    pub(super) fn start(
        path: &Path,
        committer: WeakSender<Request>,
    ) -> Result<(Self, JoinHandle<()>), OpenError> {
        let connection = open::checkpointer(path)?;
        let shared = Arc::new(CopierState::default());
        // One wake-up is as good as many.
        let (grown, wake) = sync_channel(1);
        let copier = shared.clone();
        let thread = std::thread::Builder::new()
            .name("log-checkpoint".to_owned())
            .spawn(move || copy_when_asked(&connection, &wake, &copier, &committer))
            .map_err(OpenError::Thread)?;
        let ahead = Ahead::of(path);
        Ok((
            Self {
                shared,
                grown,
                ahead,
            },
            thread,
        ))
    }

    /// Where commits are counted.
    pub(super) fn commits(&self) -> Arc<AtomicU64> {
        self.shared.commits.clone()
    }

    /// Counts a commit.
    pub(super) fn committed(&self) {
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// Looks at the WAL after a commit. Cost: a look into shared memory, unless there is something
    /// to do.
    pub(super) fn after_commit(&mut self, connection: &Connection) {
        if self.shared.copied.swap(false, Ordering::AcqRel) {
            run(connection, "PASSIVE");
            return;
        }
        let pages = run(connection, "NOOP");
        if pages.written.saturating_sub(pages.copied) >= CHECKPOINT_AFTER_PAGES {
            let _ = self.grown.try_send(());
        }
        self.ahead.keep(connection, pages.written);
    }

    /// Makes the WAL ready for the first commits.
    pub(super) fn begin(&mut self, connection: &Connection) {
        self.ahead.begin(connection);
    }

    /// Copies what is in the WAL while nothing happens. It is written from its beginning again then, so that zeros need
    /// not be written after each pause; one that has become long is emptied.
    pub(super) fn rest(&mut self, connection: &Connection) {
        let pages = run(connection, "PASSIVE");
        if pages.written > FRAMES_KEPT {
            self.truncate(connection);
            self.begin(connection);
        }
    }

    /// Copies all of the WAL and empties it.
    pub(super) fn truncate(&self, connection: &Connection) {
        run(connection, "TRUNCATE");
    }
}

/// Pages in the WAL.
#[derive(Debug, Default, Clone, Copy)]
struct Pages {
    written: u64,
    /// Those that are in the database too.
    copied: u64,
}

/// Runs a checkpoint.
fn run(connection: &Connection, mode: &str) -> Pages {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    let result = connection.prepare_cached(&sql);
    let result = result.and_then(|mut statement| {
        statement.query_row([], |row| {
            let pages = |column| {
                row.get(column)
                    .map(|pages: i64| pages.max(0).cast_unsigned())
            };
            Ok(Pages {
                written: pages(1)?,
                copied: pages(2)?,
            })
        })
    });
    result.unwrap_or_else(|error| {
        tracing::warn!(%error, mode, "a checkpoint of the log failed; it is tried again");
        Pages::default()
    })
}

fn copy_when_asked(
    connection: &Connection,
    wake: &Receiver<()>,
    shared: &CopierState,
    committer: &WeakSender<Request>,
) {
    let mut seen = 0;
    let mut emptied = 0;
    loop {
        match wake.recv_timeout(IDLE) {
            Ok(()) => {
                run(connection, "PASSIVE");
                shared.copied.store(true, Ordering::Release);
            }
            Err(RecvTimeoutError::Timeout) => {
                let commits = shared.commits.load(Ordering::Relaxed);
                if commits == seen && commits != emptied {
                    emptied = commits;
                    // A queue that is full is not idle.
                    if let Some(queue) = committer.upgrade() {
                        let _ = queue.try_send(Request::Rest);
                    }
                }
                seen = commits;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

//! Keeps the end of the write-ahead log's file ahead of what is written to it.
//!
//! Owns: zeros behind the last frame. A commit that overwrites blocks of the file is synced in a third to a half of the
//! time of one that makes the file longer, because the file system has nothing to note of it. SQLite takes zeros for
//! no frames, at the beginning of the file and behind its frames.
//! Writes under SQLite's lock for writers, and only behind the end of the file, so that no frame is ever in its way.
//! What cannot be written is left out: the file grows with the commits then.

use super::checkpoint::CHECKPOINT_AFTER_PAGES;
use rusqlite::Connection;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of a page with the head of its frame.
const FRAME_BYTES: u64 = 4096 + 24;
/// Bytes that an empty file gets, synced: a few hundred commits.
const FIRST_BYTES: u64 = 4 * 1024 * 1024;
/// Frames that are in the file at most while nothing happens: about as many as in its first bytes.
pub(super) const FRAMES_KEPT: u64 = FIRST_BYTES / FRAME_BYTES;
/// With fewer bytes left, the file gets more.
const LEFT_MIN_BYTES: u64 = 512 * 1024;
/// Bytes that it gets then; they are synced with the next commit, in a millisecond.
const MORE_BYTES: u64 = 1024 * 1024;
/// Bytes beyond which it gets no more: by then it is copied, and written from its beginning again.
const FILE_BYTES_MAX: u64 = CHECKPOINT_AFTER_PAGES * FRAME_BYTES + 8 * 1024 * 1024;

/// Bytes of zeros that are written at once.
const PIECE_BYTES: usize = 64 * 1024;

/// The file of the write-ahead log, for its end.
#[derive(Debug)]
pub(super) struct Ahead {
    /// `None`: it cannot be opened, and grows as it is written.
    file: Option<File>,
    /// Bytes of the file, as far as this process has made it longer.
    bytes: u64,
    /// There was no room for more; it grows as it is written until it begins again.
    is_full: bool,
}

impl Ahead {
    /// For the log in this file, which is open in WAL mode.
    pub(super) fn of(path: &Path) -> Self {
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        let file = OpenOptions::new().write(true).open(&wal);
        let file =
            file.inspect_err(|error| tracing::debug!(%error, "the WAL grows as it is written"));
        Self {
            file: file.ok(),
            bytes: 0,
            is_full: false,
        }
    }

    /// Gives the file its first bytes, if it is shorter. To be called when nothing waits for a commit.
    pub(super) fn begin(&mut self, connection: &Connection) {
        (self.bytes, self.is_full) = (0, false);
        self.grow(connection, |bytes| FIRST_BYTES.saturating_sub(bytes));
        if let Some(file) = &self.file
            && let Err(error) = file.sync_data()
        {
            tracing::debug!(%error, "zeros of the WAL were not synced");
        }
    }

    /// Gives the file more, if few bytes are left behind so many frames. Cost: none, if enough are left.
    pub(super) fn keep(&mut self, connection: &Connection, frames: u64) {
        let needed = frames * FRAME_BYTES + LEFT_MIN_BYTES;
        if needed > self.bytes && needed <= FILE_BYTES_MAX && !self.is_full {
            self.grow(
                connection,
                |bytes| {
                    if bytes < needed { MORE_BYTES } else { 0 }
                },
            );
        }
    }

    /// Writes as many zeros behind the end of the file as `more` says of its length.
    fn grow(&mut self, connection: &Connection, more: impl FnOnce(u64) -> u64) {
        let Some(file) = &self.file else { return };
        // Whoever else writes to the log does so under this lock.
        if connection.execute_batch("BEGIN IMMEDIATE").is_err() {
            return;
        }
        match longer(file, more) {
            Ok(bytes) => self.bytes = bytes,
            Err(error) => {
                tracing::info!(%error, "the WAL grows as it is written for now: it cannot be made longer before");
                self.is_full = true;
            }
        }
        if let Err(error) = connection.execute_batch("ROLLBACK") {
            tracing::debug!(%error, "a transaction without changes was not undone");
        }
    }
}

/// The length of the file behind it.
fn longer(file: &File, more: impl FnOnce(u64) -> u64) -> io::Result<u64> {
    let begin = file.metadata()?.len();
    let (mut at, end) = (begin, begin + more(begin));
    let zeros = vec![0_u8; PIECE_BYTES];
    while at < end {
        let many = usize::try_from(end - at).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
        if let Err(error) = file.write_all_at(&zeros[..many], at) {
            // The last bytes of a disk are for others.
            file.set_len(begin)?;
            return Err(error);
        }
        at += many as u64;
    }
    Ok(at)
}

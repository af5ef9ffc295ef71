//! Copies the write-ahead log of a file into the file while the fold goes on.
//!
//! Owns: the thread of one copy at a time, with a connection of its own. A copy syncs the log and the file, which takes
//! tens of milliseconds: in the fold, whoever asks for what was just changed would wait for it.
//! A copy that fails loses nothing: the log only stays longer, until the fold copies it itself
//! ([`super::sqlite::WAL_PAGES_MAX`]), and says what is wrong.

use super::sqlite::{self, WAL_PAGES};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// Passes of a copy. What the fold has written during one is copied by the next; once nothing is left, the log is
/// written from its beginning again.
const PASSES_MAX: u32 = 5;

/// Copies what one connection writes.
pub(super) struct Copier {
    path: PathBuf,
    /// The last copy, perhaps under way.
    copy: Option<JoinHandle<()>>,
}

impl Copier {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            copy: None,
        }
    }

    /// Begins a copy if the log has become long. Cost: a look into shared memory, unless it has.
    pub(super) fn after_commit(&mut self, writer: &Connection) {
        let is_long = pages(writer, "NOOP")
            .is_ok_and(|pages| pages.written.saturating_sub(pages.copied) >= WAL_PAGES);
        if !is_long || self.copy.as_ref().is_some_and(|copy| !copy.is_finished()) {
            return;
        }
        self.end();
        let path = self.path.clone();
        let thread = std::thread::Builder::new().name("rows-checkpoint".to_owned());
        // What is wrong with the file meets the fold too.
        let copied = move || drop(copy(&path));
        self.copy = thread.spawn(copied).ok();
    }

    /// Waits for the copy that is under way.
    fn end(&mut self) {
        if let Some(copy) = self.copy.take() {
            // A panic of it was printed where it happened.
            let _ = copy.join();
        }
    }
}

/// Whoever takes the file away finds nobody who has it open.
impl Drop for Copier {
    fn drop(&mut self) {
        self.end();
    }
}

fn copy(path: &Path) -> rusqlite::Result<()> {
    let connection = sqlite::connect_copier(path)?;
    for _ in 0..PASSES_MAX {
        let pages = pages(&connection, "PASSIVE")?;
        if pages.copied >= pages.written {
            break;
        }
    }
    Ok(())
}

/// Pages in the log.
struct Pages {
    written: u32,
    /// Those that are in the file too.
    copied: u32,
}

fn pages(connection: &Connection, mode: &str) -> rusqlite::Result<Pages> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    connection.query_row(&sql, [], |row| {
        // -1: there is no log.
        let pages = |column| {
            row.get(column)
                .map(|pages: i64| pages.try_into().unwrap_or(0))
        };
        Ok(Pages {
            written: pages(1)?,
            copied: pages(2)?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_has_become_long_is_copied_and_begins_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.db");
        Connection::open(&path).unwrap();
        let writer = sqlite::connect(&path).unwrap();
        writer.execute_batch("CREATE TABLE t (x BLOB)").unwrap();
        let mut copier = Copier::new(&path);
        let mut longest = 0;
        for _ in 0..20 {
            writer
                .execute("INSERT INTO t VALUES (zeroblob(?1))", [4096 * 1000])
                .unwrap();
            copier.after_commit(&writer);
            let pages = pages(&writer, "NOOP").unwrap();
            longest = longest.max(pages.written);
            // As a fold that has nothing to do for a moment.
            copier.end();
        }
        assert!(
            (WAL_PAGES..2 * WAL_PAGES).contains(&longest),
            "{longest} pages of {} were in the log",
            20 * 1000
        );
        let rows: i64 = writer
            .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
            .unwrap();
        assert_eq!(rows, 20);
    }
}

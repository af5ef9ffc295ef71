//! Copies SQLite files of a data folder while a server writes to them.
//!
//! Owns: the rule that all files are held as they were within one moment, the log last. So a store beside the log has
//! seen nothing that the copied log does not have, and the log has all that those stores refer to.

use super::export::head;
use super::open::{self, OpenError};
use super::queries::Queries;
use crate::chain::Mark;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;
use taskledger_domain::Position;

/// How long a file is waited for that another process has locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Pages that are copied between two looks at the progress: 4 MiB.
const STEP_PAGES: i32 = 1024;

/// Why files cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] OpenError),
    /// A file cannot be read or written.
    #[error("`{path}` cannot be copied: {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error from SQLite.
        source: rusqlite::Error,
    },
}

/// Files of one data folder, held as they were at one moment. While it lives, servers write on; their write-ahead logs
/// grow by what they write.
pub struct HeldFiles {
    /// Stores beside the log, in the order given.
    beside: Vec<HeldFile>,
    log: HeldFile,
    position: Position,
    mark: Option<Mark>,
}

struct HeldFile {
    path: PathBuf,
    /// In a transaction that reads.
    connection: Connection,
}

impl HeldFiles {
    /// Holds those files of `beside` that exist, then the log.
    ///
    /// # Errors
    /// [`Error`]: there is no log, or a file cannot be read.
    pub fn hold(log: &Path, beside: &[PathBuf]) -> Result<Self, Error> {
        let mut held = Vec::new();
        for path in beside.iter().filter(|path| path.exists()) {
            let connection = open_beside(path).map_err(|source| failed(path, source))?;
            held.push(HeldFile::hold(path, connection)?);
        }
        let log = HeldFile::hold(log, open::reader(log)?)?;
        let position = head(&log.connection).map_err(|source| failed(&log.path, source))?;
        let mark = Queries::on(&log.connection).chain_head();
        let mark = mark.map_err(|error| {
            let source = rusqlite::Error::ToSqlConversionFailure(Box::new(error));
            failed(&log.path, source)
        })?;
        Ok(Self {
            beside: held,
            log,
            position,
            mark,
        })
    }

    /// Position of the last event of the log.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// Its hash; `None` for an empty log.
    #[must_use]
    pub const fn mark(&self) -> Option<Mark> {
        self.mark
    }

    /// Copies each file into `folder` under its own name, synced. `progress` gets the pages copied so far, and those of
    /// the files begun so far. Cost: O(bytes).
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn copy_into(
        &self,
        folder: &Path,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Vec<PathBuf>, Error> {
        let (mut done, mut copies) = (0, Vec::new());
        for file in self.beside.iter().chain([&self.log]) {
            let Some(name) = file.path.file_name() else {
                continue;
            };
            let copy = folder.join(name);
            let pages = file.copy_to(&copy, |pages, of| progress(done + pages, done + of));
            done += pages.map_err(|source| failed(&file.path, source))?;
            copies.push(copy);
        }
        Ok(copies)
    }
}

impl HeldFile {
    fn hold(path: &Path, connection: Connection) -> Result<Self, Error> {
        let begin = || {
            connection.execute_batch("BEGIN")?;
            // Only a read takes hold of the state that is read.
            connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))
        };
        begin().map_err(|source| failed(path, source))?;
        Ok(Self {
            path: path.to_owned(),
            connection,
        })
    }

    /// Copies it as it was when it was held. Returns its pages.
    fn copy_to(
        &self,
        to: &Path,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<u64, rusqlite::Error> {
        // Where no file can be made, SQLite says so below.
        let _ = taskledger_private::make_if_missing(to);
        let mut copy = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let backup = Backup::new(&self.connection, &mut copy)?;
        let pages = loop {
            let step = backup.step(STEP_PAGES)?;
            let at = backup.progress();
            let total = u64::try_from(at.pagecount).unwrap_or(0);
            let left = u64::try_from(at.remaining).unwrap_or(0);
            progress(total.saturating_sub(left), total);
            match step {
                StepResult::Done => break total,
                StepResult::More => {}
                // The copy is new and the source is held: only a passing lock of the file system is left.
                StepResult::Busy | StepResult::Locked => std::thread::yield_now(),
                _ => return Err(rusqlite::Error::InvalidQuery),
            }
        };
        drop(backup);
        // Complete by itself, so that reading it leaves nothing beside it.
        copy.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
        copy.close().map_err(|(_, source)| source)?;
        Ok(pages)
    }
}

/// A store beside the log. Where SQLite cannot make its shared memory, nobody can be writing either.
fn open_beside(path: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

fn failed(path: &Path, source: rusqlite::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        source,
    }
}

//! Creates a log from an export, for `events import`.
//!
//! Written into a file beside, which takes the log's name only when all of it is there and durable:
//! an import that is broken off leaves nothing. So nothing is written twice for the sake of a rollback,
//! and what has no order of its own is written sorted, at the end: a log of ten million events would
//! otherwise write each page of the claims a thousand times.

use super::beside::Beside;
use super::export::Export;
use super::failure::of_write;
use super::open::{self, LEDGER_FILE, OpenError};
use super::retention;
use super::row::Row;
use super::writer::{INSERT_EVENT, INSERT_STREAM};
use crate::chain::Remains;
use crate::transfer::{Checked, ExportedKey, Gaps, Source, StreamEnd, Target};
use crate::{ClaimKey, Error, NewClaim};
use async_trait::async_trait;
use rusqlite::{Connection, params};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taskledger_domain::FlowId;

/// Where the log is written until it is whole.
const UNFINISHED_FILE: &str = "ledger.db.import";
/// What makes of a log's connection one that fills a file which is of no use before it is whole. Claims
/// wait in a table that SQLite keeps where `SQLITE_TMPDIR` or `TMPDIR` says, as it does what it sorts:
/// about 60 bytes for each task below a root, twice.
const FILLING: &str = "PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA temp_store = FILE;
    PRAGMA cache_size = -64000;
    CREATE TEMP TABLE task_claims (task BLOB NOT NULL, flow TEXT NOT NULL);";
const PUT_TASK_CLAIM: &str = "INSERT INTO task_claims (task, flow) VALUES (?1, ?2)";
/// Of one task the last one counts, as when they are written one after the other.
const SORT_TASK_CLAIMS: &str = "INSERT OR REPLACE INTO claims (kind, key, value)
    SELECT 1, task, flow FROM task_claims ORDER BY task, rowid";

/// Why no log can be made here.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// There is one already; choose another folder.
    #[error("`{0}` exists already; a log is imported into an empty folder")]
    Exists(PathBuf),
    /// The new file cannot be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What an earlier import left cannot be removed.
    #[error("`{path}` cannot be removed: {source}")]
    Leftover {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// A log that is being imported. The folder's lock is the caller's to hold.
#[derive(Debug)]
pub struct Import {
    connection: Connection,
    file: PathBuf,
    log: PathBuf,
    streams: BTreeMap<u64, (FlowId, StreamEnd)>,
    gaps: Gaps,
}

impl Import {
    /// Begins to make the log of `folder`, where there is nothing of another log: neither its files nor
    /// those that `beside` names.
    ///
    /// # Errors
    /// [`ImportError`].
    pub fn begin(folder: &Path, beside: &[&str]) -> Result<Self, ImportError> {
        let (file, log) = (folder.join(UNFINISHED_FILE), folder.join(LEDGER_FILE));
        // Parts of another log would be taken for parts of this one: what it had not yet written back,
        // and rows made from it.
        for name in ["", "-wal", "-shm"].map(|suffix| format!("{LEDGER_FILE}{suffix}")) {
            if folder.join(&name).exists() {
                return Err(ImportError::Exists(folder.join(name)));
            }
        }
        for name in beside {
            if folder.join(name).exists() {
                return Err(ImportError::Exists(folder.join(name)));
            }
        }
        remove(&file).map_err(|source| ImportError::Leftover {
            path: file.clone(),
            source,
        })?;
        let connection = open::writer(&file)?;
        let filling = connection.execute_batch(FILLING);
        filling.map_err(|source| OpenError::Unusable {
            path: file.clone(),
            source,
        })?;
        Ok(Self {
            connection,
            file,
            log,
            streams: BTreeMap::new(),
            gaps: Gaps::default(),
        })
    }

    fn in_transaction(
        &mut self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<(), Error> {
        let transaction = self.connection.transaction();
        transaction
            .and_then(|transaction| {
                write(&transaction)?;
                transaction.commit()
            })
            .map_err(|e| of_write(&e, 0))
    }

    fn conclude(&mut self) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        let mut insert = transaction.prepare(INSERT_STREAM)?;
        for (number, (flow, end)) in &self.streams {
            insert.execute(params![
                number.cast_signed(),
                flow.0.as_bytes(),
                end.version.cast_signed(),
                end.position.cast_signed()
            ])?;
        }
        drop(insert);
        retention::set_dropped(&transaction, self.gaps.dropped())?;
        transaction.execute(SORT_TASK_CLAIMS, [])?;
        transaction.commit()?;
        self.connection.execute_batch("DROP TABLE temp.task_claims")
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        // After `finish` there is nothing left of that name.
        let _ = remove(&self.file);
    }
}

#[async_trait]
impl Target for Import {
    async fn write(&mut self, events: &[Checked]) -> Result<(), Error> {
        for event in events {
            let end = StreamEnd {
                number: event.stream,
                version: event.line.version,
                position: event.line.position,
                is_archived: false,
            };
            self.gaps.next(event.line.position);
            self.streams.insert(event.stream, (event.line.flow_id, end));
        }
        self.in_transaction(|connection| {
            let mut insert = connection.prepare(INSERT_EVENT)?;
            let mut claim = connection.prepare(PUT_TASK_CLAIM)?;
            for event in events {
                Row::of(&event.line).insert(&mut insert, event.stream.cast_signed())?;
                if let Some(task) = event.claims {
                    claim.execute(params![task.0.as_bytes(), event.line.flow_id.to_string()])?;
                }
            }
            Ok(())
        })
    }

    async fn write_remains(&mut self, remains: &[Remains]) -> Result<(), Error> {
        self.in_transaction(|connection| retention::put_remains(connection, remains))
    }

    async fn write_keys(&mut self, keys: &[ExportedKey]) -> Result<(), Error> {
        self.in_transaction(|connection| {
            let mut beside = Beside::default();
            for key in keys {
                let claim = NewClaim {
                    key: ClaimKey::Request(Arc::from(key.request_key.as_str())),
                    value: Arc::from(key.value.as_str()),
                    expires_at: Some(key.expires_at),
                };
                beside.put_claim(connection, &claim)?;
            }
            Ok(())
        })
    }

    async fn read_back(&mut self) -> Result<Box<dyn Source + '_>, Error> {
        self.conclude().map_err(|e| of_write(&e, 0))?;
        let export = Export::open(&self.file, 0);
        let export = export.map_err(|e| Error::Unavailable(e.to_string()))?;
        Ok(Box::new(export))
    }

    async fn finish(self: Box<Self>) -> Result<(), Error> {
        let failed = |e: std::io::Error| Error::NotWritable(e.to_string());
        // Each transaction has given its pages to the system.
        let file = std::fs::File::open(&self.file).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        std::fs::rename(&self.file, &self.log).map_err(failed)?;
        let folder = self.log.parent().unwrap_or(Path::new("."));
        let folder = std::fs::File::open(folder).map_err(failed)?;
        folder.sync_all().map_err(failed)
    }
}

/// Removes a database with the files beside it, as far as they exist.
fn remove(file: &Path) -> std::io::Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::types::Value;

    #[test]
    fn nothing_is_written_twice_and_what_is_sorted_lies_on_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let import = Import::begin(folder.path(), &[]).unwrap();
        let asked = |pragma: &str| -> Value {
            let value = import
                .connection
                .pragma_query_value(None, pragma, |row| row.get(0));
            value.unwrap()
        };
        assert_eq!(asked("journal_mode"), Value::Text("off".to_owned()));
        assert_eq!(asked("synchronous"), Value::Integer(0));
        assert_eq!(asked("temp_store"), Value::Integer(1));
    }
}

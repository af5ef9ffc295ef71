//! Connections to the log's file, and its schema.
//!
//! Owns: pragmas, migrations, the version of SQLite that is acceptable. A file that a newer program
//! wrote, that is no log, or that cannot be written is refused here, before anything is served.

use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use taskledger_private as private;

/// Name of the log's file in the data folder.
pub const LEDGER_FILE: &str = "ledger.db";

/// 3.51.3, the first version without the bug that corrupts a database when the WAL is reset while
/// two connections write or checkpoint.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

/// Marks the file as a log of this program (`tlgr`).
const APPLICATION_ID: i32 = 0x746c_6772;

/// The schema, step by step; the file's `user_version` counts the steps that it has taken.
const MIGRATIONS: &[&str] = &[include_str!(
    "../../../../migrations/sqlite/log/0001_event_log.sql"
)];

/// How long a statement waits for a foreign process (a backup tool, a shell) that holds the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Page cache of the writer, KiB: inner pages of the indexes and the leaves of busy streams.
const WRITER_CACHE_KIB: u32 = 8 * 1024;
/// Page cache of a reader, KiB.
const READER_CACHE_KIB: u32 = 1024;

/// Why the log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The program was built with an SQLite that may corrupt the log; build it again.
    #[error("SQLite {found} is too old: taskledger needs 3.51.3 or newer")]
    SqliteTooOld {
        /// What was linked.
        found: String,
    },
    /// A newer taskledger wrote the file; use that one.
    #[error(
        "the log `{path}` has schema version {found}, this program knows versions up to {known}; use the newer program"
    )]
    Newer {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// Something else has this name.
    #[error("`{path}` is not a taskledger log: {reason}")]
    NotALog {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// What it is instead.
        reason: String,
    },
    /// The file or its folder is read-only, or the disk is full.
    #[error("the log `{path}` cannot be written: {source}")]
    NotWritable {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// The error from SQLite.
        source: rusqlite::Error,
    },
    /// The file cannot be opened or read.
    #[error("the log `{path}` cannot be opened: {source}")]
    Unusable {
        /// Path of the file that the error is about.
        path: PathBuf,
        /// The error from SQLite.
        source: rusqlite::Error,
    },
    /// The operating system gives no more threads.
    #[error("a thread for the log cannot be started: {0}")]
    Thread(#[source] std::io::Error),
}

/// The connection that writes, with the schema brought up to date.
pub(super) fn writer(path: &Path) -> Result<Connection, OpenError> {
    check_sqlite_version(rusqlite::version_number())?;
    let fail = |source| classify(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // Where no file can be made, SQLite says so below.
    let _ = private::make_if_missing(path);
    let mut connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
    // SQLite falls back to read-only without a word.
    if connection.is_readonly("main").map_err(fail)? {
        return Err(OpenError::NotWritable {
            path: path.to_owned(),
            source: sqlite_error(rusqlite::ffi::SQLITE_READONLY),
        });
    }
    check_owner(&connection, path)?;
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(fail)?;
    if mode != "wal" {
        return Err(OpenError::NotALog {
            path: path.to_owned(),
            reason: format!("its file system allows only journal mode `{mode}`, not `wal`"),
        });
    }
    connection
        .execute_batch(&format!(
            "PRAGMA synchronous = FULL;
             PRAGMA wal_autocheckpoint = 0;
             PRAGMA mmap_size = 0;
             PRAGMA temp_store = MEMORY;
             PRAGMA cache_size = -{WRITER_CACHE_KIB};"
        ))
        .map_err(fail)?;
    migrate(&mut connection, path, MIGRATIONS)?;
    Ok(connection)
}

/// A connection that checkpoints: it may write to the file, but never runs a transaction.
pub(super) fn checkpointer(path: &Path) -> Result<Connection, OpenError> {
    let fail = |source| classify(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
    connection
        .execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA mmap_size = 0; PRAGMA cache_size = -256;")
        .map_err(fail)?;
    Ok(connection)
}

/// A connection that only reads, beside a running server or on a closed log, also when the folder
/// is read-only.
pub(crate) fn reader(path: &Path) -> Result<Connection, OpenError> {
    check_sqlite_version(rusqlite::version_number())?;
    let fail = |source| classify(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;
    if let Err(source) = schema_version(&connection) {
        // In a read-only folder SQLite cannot make its shared memory. When the log was closed
        // cleanly (no WAL), nobody can be writing either, and the file alone is the whole truth.
        if !cannot_make_files(&source) || wal_holds_something(path) {
            return Err(classify(path, source));
        }
        let flags = flags | OpenFlags::SQLITE_OPEN_URI;
        connection = Connection::open_with_flags(immutable_uri(path), flags).map_err(fail)?;
    }
    check_owner(&connection, path)?;
    let found = schema_version(&connection).map_err(fail)?;
    let known = version_after(MIGRATIONS);
    check_schema(path, found, known)?;
    if found < known {
        return Err(OpenError::NotALog {
            path: path.to_owned(),
            reason: format!(
                "its schema version is {found}; start the server once to bring it up to date"
            ),
        });
    }
    connection
        .execute_batch(&format!(
            "PRAGMA mmap_size = 0; PRAGMA query_only = ON; PRAGMA cache_size = -{READER_CACHE_KIB};"
        ))
        .map_err(fail)?;
    Ok(connection)
}

/// A connection that only reads a database of any kind, and leaves no file behind if it was closed cleanly.
pub(crate) fn any_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = if wal_holds_something(path) {
        Connection::open_with_flags(path, flags)?
    } else {
        // The file alone is the whole truth.
        Connection::open_with_flags(immutable_uri(path), flags | OpenFlags::SQLITE_OPEN_URI)?
    };
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

fn migrate(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<(), OpenError> {
    let known = version_after(steps);
    let fail = |source| classify(path, source);
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(fail)?;
    let found = schema_version(&transaction).map_err(fail)?;
    check_schema(path, found, known)?;
    let taken = usize::try_from(found).unwrap_or(0);
    for step in &steps[taken.min(steps.len())..] {
        transaction.execute_batch(step).map_err(fail)?;
    }
    if found < known {
        transaction
            .execute_batch(&format!(
                "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {known};"
            ))
            .map_err(fail)?;
    }
    transaction.commit().map_err(fail)
}

/// The schema version of a file that has taken these steps.
fn version_after(steps: &[&str]) -> i64 {
    i64::try_from(steps.len()).expect("the number of migrations is small")
}

fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn check_schema(path: &Path, found: i64, known: i64) -> Result<(), OpenError> {
    if found > known {
        return Err(OpenError::Newer {
            path: path.to_owned(),
            found,
            known,
        });
    }
    Ok(())
}

/// Refuses a database that some other program made.
fn check_owner(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let fail = |source| classify(path, source);
    let id: i32 = connection
        .query_row("PRAGMA application_id", [], |row| row.get(0))
        .map_err(fail)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(fail)?;
    if id == APPLICATION_ID || (id == 0 && tables == 0) {
        return Ok(());
    }
    Err(OpenError::NotALog {
        path: path.to_owned(),
        reason: "it is a database of another program".to_owned(),
    })
}

/// Compared with a named minimum, so that a build against an old library cannot serve.
fn check_sqlite_version(found: i32) -> Result<(), OpenError> {
    if found >= SQLITE_VERSION_MIN {
        return Ok(());
    }
    Err(OpenError::SqliteTooOld {
        found: format!(
            "{}.{}.{}",
            found / 1_000_000,
            found / 1_000 % 1_000,
            found % 1_000
        ),
    })
}

fn classify(path: &Path, source: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NotALog {
            path,
            reason: "it is not an SQLite database".to_owned(),
        },
        Some(ErrorCode::ReadOnly | ErrorCode::DiskFull) => OpenError::NotWritable { path, source },
        _ => OpenError::Unusable { path, source },
    }
}

fn sqlite_error(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None)
}

fn cannot_make_files(source: &rusqlite::Error) -> bool {
    matches!(
        source.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)
    )
}

/// Whether there are frames in the write-ahead log of a database.
pub(crate) fn wal_holds_something(path: &Path) -> bool {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    // Zeros are no frames (`ahead`): what SQLite has written begins with a number.
    let mut number = [0; 4];
    let read = std::fs::File::open(wal).and_then(|mut wal| wal.read_exact(&mut number));
    match read.map_err(|error| error.kind()) {
        Ok(()) => number != [0; 4],
        Err(ErrorKind::NotFound | ErrorKind::UnexpectedEof) => false,
        // Nobody can tell.
        Err(_) => true,
    }
}

fn immutable_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for c in path.to_string_lossy().chars() {
        match c {
            '%' => uri.push_str("%25"),
            '?' => uri.push_str("%3f"),
            '#' => uri.push_str("%23"),
            other => uri.push(other),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_sqlite_that_corrupts_the_log_is_refused_by_name() {
        let error = check_sqlite_version(3_050_002).unwrap_err();
        assert_eq!(
            error.to_string(),
            "SQLite 3.50.2 is too old: taskledger needs 3.51.3 or newer"
        );
        check_sqlite_version(3_051_003).unwrap();
    }

    #[test]
    fn sqlite_is_compiled_without_locks_that_all_connections_share() {
        let db = Connection::open_in_memory().unwrap();
        let mut statement = db.prepare("PRAGMA compile_options").unwrap();
        let options = statement.query_map([], |row| row.get(0)).unwrap();
        let options: Vec<String> = options.map(Result::unwrap).collect();
        let has = |name: &str| options.iter().any(|option| option == name);
        assert!(
            has("DEFAULT_MEMSTATUS=0") && !has("ENABLE_MEMORY_MANAGEMENT"),
            "cargo did not see `.cargo/config.toml`: {options:?}"
        );
    }

    #[test]
    fn steps_are_taken_once_and_a_file_that_has_taken_more_is_refused() {
        let mut db = Connection::open_in_memory().unwrap();
        let path = Path::new(LEDGER_FILE);
        let first = "CREATE TABLE t (a INTEGER NOT NULL); INSERT INTO t (a) VALUES (1);";
        let both = [
            first,
            "ALTER TABLE t ADD COLUMN b INTEGER NOT NULL DEFAULT 2;",
        ];

        migrate(&mut db, path, &[first]).unwrap();
        assert_eq!(schema_version(&db).unwrap(), 1);
        for _ in 0..2 {
            migrate(&mut db, path, &both).unwrap();
            assert_eq!(schema_version(&db).unwrap(), 2);
        }

        let row: (i64, i64) = db
            .query_row("SELECT a, b FROM t", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert_eq!(row, (1, 2));
        let refused = migrate(&mut db, path, &[first]).unwrap_err();
        let is_newer = matches!(
            refused,
            OpenError::Newer {
                found: 2,
                known: 1,
                ..
            }
        );
        assert!(is_newer, "{refused}");
    }

    #[test]
    fn the_bundled_sqlite_is_acceptable() {
        check_sqlite_version(rusqlite::version_number()).unwrap();
    }
}

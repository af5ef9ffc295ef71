//! Read models in a file of SQLite.

use super::found::{Found, other_version};
use crate::tasks::TaskProjector;
use crate::{Error, Projector, checkpoint, with_sources};
use rusqlite::OpenFlags;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{AssertSqlSafe, Connection};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;
use taskledger_domain::Position;
use taskledger_sql::Tx;
use taskledger_sql::migrations::migrator;
use taskledger_sql::readers::{self, Readers};

/// KiB of page cache of the writer.
const WRITER_CACHE_KIB: u32 = 8000;
/// KiB of page cache of a rebuild: the keys of tasks come in no order, so the pages of their index are
/// all in use.
const REBUILD_CACHE_KIB: u32 = 64_000;
/// KiB of page cache of each reader.
const READER_CACHE_KIB: u32 = 2000;
/// Prepared statements kept by the writer: all of its statements.
const WRITER_STATEMENTS: usize = 128;
/// Prepared statements kept by each reader: the combinations of list filters are many.
const READER_STATEMENTS: usize = 48;
/// How long a statement waits for a lock of another process on the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a query waits for a free reader. Longer waits are answered as "busy" before this.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of write-ahead log that are kept after a checkpoint.
const WAL_BYTES_KEPT: u32 = 16 * 1024 * 1024;
/// Pages of write-ahead log after which they are copied to the file, which syncs both: 16 MB. What
/// changes again and again (totals, the ends of indexes) is written once for all of them.
pub(super) const WAL_PAGES: u32 = 4096;
/// Pages after which the fold copies them itself: whoever copies beside it has not come to the end of them.
pub(super) const WAL_PAGES_MAX: u32 = 4 * WAL_PAGES;

static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&[(
        "0001_read_models",
        include_str!("../../../migrations/sqlite/read_models/0001_read_models.sql"),
    )])
});

/// Opens or creates the file, replacing it when it is of no use. One that cannot be read is kept under another name: if
/// the log has lost events, it may be the last copy of them, which cannot be found out without reading it.
pub(super) async fn open(path: &Path) -> Result<Found, Error> {
    // A rebuild that was broken off has left it.
    remove(&next_path(path))?;
    let existed = path.exists();
    let (mut db, found) = match prepare(path).await {
        Ok((db, Some((TaskProjector::VERSION, _)))) => (db, Found::Usable),
        Ok((db, None)) if !existed => (db, Found::Nothing),
        Ok((db, other)) => {
            db.close().await?;
            let reason = other.map_or_else(
                || "they have no checkpoint".to_owned(),
                |(version, _)| other_version(version),
            );
            (replace(path).await?, Found::Unusable(reason))
        }
        Err(error) if error.is_damage() => {
            let kept = set_aside(path)?;
            let reason = with_sources(&error);
            let (db, _) = prepare(path).await?;
            (db, Found::Damaged { reason, kept })
        }
        Err(error) => return Err(error),
    };
    if found != Found::Usable {
        begin(&mut db).await?;
    }
    db.close().await?;
    Ok(found)
}

/// An empty file where a rebuild works, without the indexes that the fold does not look into; and the
/// statements that make those.
pub(super) async fn make_next(path: &Path) -> Result<Vec<String>, Error> {
    let next = next_path(path);
    let mut db = replace(&next).await?;
    begin(&mut db).await?;
    let indexes: Vec<(String, String)> = sqlx::query_as(INDEXES_OF_QUERIES)
        .fetch_all(&mut db)
        .await?;
    for (name, _) in &indexes {
        let drop = AssertSqlSafe(format!("DROP INDEX {name}"));
        sqlx::query(drop).execute(&mut db).await?;
    }
    db.close().await?;
    Ok(indexes.into_iter().map(|(_, sql)| sql).collect())
}

/// All indexes of the tasks but those by which the fold finds its rows.
const INDEXES_OF_QUERIES: &str = "SELECT name, sql
    FROM sqlite_master
    WHERE type = 'index' AND tbl_name = 'tasks' AND sql IS NOT NULL
        AND name NOT IN ('tasks_id', 'tasks_flow_ordinal', 'tasks_waiting')";

/// The file beside `path` that a rebuild fills.
pub(super) fn next_path(path: &Path) -> PathBuf {
    with(path, ".next")
}

/// The connections that read a file.
pub(super) fn readers(path: &Path, connections: u32) -> Readers {
    Readers::new(readers::Options {
        path: path.to_owned(),
        connections,
        wait: ACQUIRE_TIMEOUT,
        connect: connect_reader,
    })
}

/// A connection of a reader.
fn connect_reader(path: &Path) -> Result<rusqlite::Connection, rusqlite::Error> {
    // Not read-only: readers of a write-ahead log write to the memory that they share.
    let settings = format!(
        "PRAGMA query_only = ON;
         PRAGMA cache_size = -{READER_CACHE_KIB};"
    );
    connect_with(path, &settings, READER_STATEMENTS)
}

/// The connection of the fold.
pub(super) fn connect(path: &Path) -> Result<rusqlite::Connection, Error> {
    // `synchronous`: a lost commit costs nothing, the log has the events.
    let settings = format!(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = NORMAL;
         PRAGMA journal_size_limit = {WAL_BYTES_KEPT};
         PRAGMA wal_autocheckpoint = {WAL_PAGES_MAX};
         PRAGMA cache_size = -{WRITER_CACHE_KIB};"
    );
    Ok(connect_with(path, &settings, WRITER_STATEMENTS)?)
}

/// The connection of whoever copies the write-ahead log beside the fold.
pub(super) fn connect_copier(path: &Path) -> Result<rusqlite::Connection, rusqlite::Error> {
    connect_with(path, "PRAGMA synchronous = NORMAL", 0)
}

fn connect_with(
    path: &Path,
    settings: &str,
    statements: usize,
) -> Result<rusqlite::Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = rusqlite::Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.execute_batch("PRAGMA temp_store = MEMORY")?;
    connection.execute_batch(settings)?;
    connection.set_prepared_statement_cache_capacity(statements);
    Ok(connection)
}

/// The connection of a rebuild. Its file is of no use before it is whole, so nothing is written twice
/// for the sake of a rollback, and all of it is synced at the end.
pub(super) fn connect_next(path: &Path) -> Result<rusqlite::Connection, Error> {
    let connection = connect(path)?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = OFF;
         PRAGMA synchronous = OFF;
         PRAGMA temp_store = FILE; -- what an index of millions of rows is sorted in
         PRAGMA cache_size = -{REBUILD_CACHE_KIB};"
    ))?;
    Ok(connection)
}

/// Makes of the file of a rebuild one that may serve.
pub(super) fn finish_next(connection: &rusqlite::Connection) -> Result<(), Error> {
    Ok(connection.execute_batch("PRAGMA journal_mode = WAL")?)
}

/// Puts a file that is closed in the place of another that is closed, so that a crash leaves one of
/// the two.
pub(super) fn put_in_place(next: &Path, path: &Path) -> Result<(), Error> {
    let failed = |source| unusable(path, source);
    // What a file that was closed leaves beside it belongs to no other; what lies beside the new one
    // holds pages of it that would be lost.
    let beside = [(path, "-wal"), (path, "-shm"), (next, "-wal")];
    for (file, suffix) in beside {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        if Path::new(&name).exists() {
            return Err(Error::InUse);
        }
    }
    sync(next)?;
    std::fs::rename(next, path).map_err(failed)?;
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    std::fs::File::open(folder.unwrap_or(Path::new(".")))
        .and_then(|folder| folder.sync_all())
        .map_err(failed)
}

/// Has the disk take all of a file.
pub(super) fn sync(path: &Path) -> Result<(), Error> {
    std::fs::File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|source| unusable(path, source))
}

fn unusable(path: &Path, source: std::io::Error) -> Error {
    let path = path.to_string_lossy().into_owned();
    Error::File { path, source }
}

/// Renames a file with its write-ahead log, to the first name that is free. Returns the name.
fn set_aside(path: &Path) -> Result<PathBuf, Error> {
    let named = |n: u32| with(path, &format!(".set-aside-{n}"));
    let is_free = |to: &PathBuf| !to.exists() && !with(to, "-wal").exists();
    let to = (1..=u32::MAX).map(named).find(is_free);
    let to = to.expect("no folder has so many files");
    // SQLite finds the write-ahead log by the name of its database. It goes first: if the database went first and a
    // crash followed, the next database of this name would find it.
    for suffix in ["-wal", ""] {
        let from = with(path, suffix);
        if from.exists() {
            std::fs::rename(&from, with(&to, suffix)).map_err(|source| unusable(&from, source))?;
        }
    }
    remove(path)?;
    Ok(to)
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Removes a file with what SQLite keeps beside it.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    for suffix in ["", "-wal", "-shm"] {
        let name = with(path, suffix);
        if let Err(source) = std::fs::remove_file(&name)
            && source.kind() != std::io::ErrorKind::NotFound
        {
            return Err(unusable(&name, source));
        }
    }
    Ok(())
}

async fn begin(db: &mut SqliteConnection) -> Result<(), Error> {
    let mut tx = Tx::sqlite(db.begin().await?);
    checkpoint::begin::<TaskProjector>(&mut tx).await?;
    tx.commit().await?;
    Ok(())
}

async fn prepare(path: &Path) -> Result<(SqliteConnection, Option<(i64, Position)>), Error> {
    make_private(path)?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .journal_mode(SqliteJournalMode::Wal);
    let mut db = SqliteConnection::connect_with(&options).await?;
    match migrate(&mut db).await {
        Ok(found) => Ok((db, found)),
        Err(error) => {
            // Else it would be closed behind the caller's back, which removes the write-ahead log of this name.
            let _ = db.close().await;
            Err(error)
        }
    }
}

/// Brings the schema to this program's version. Returns the checkpoint, whose version may be another one.
async fn migrate(db: &mut SqliteConnection) -> Result<Option<(i64, Position)>, Error> {
    let exists: bool = sqlx::query_scalar(HAS_CHECKPOINTS)
        .fetch_one(&mut *db)
        .await?;
    if exists {
        let found = load_checkpoint(db).await?;
        // Rows of another version are thrown away: giving them new columns and indexes is wasted.
        if found.is_some_and(|(version, _)| version != TaskProjector::VERSION) {
            return Ok(found);
        }
    }
    MIGRATIONS
        .run_direct(None, &mut *db, false)
        .await
        .map_err(Error::Migration)?;
    load_checkpoint(db).await
}

async fn load_checkpoint(db: &mut SqliteConnection) -> Result<Option<(i64, Position)>, Error> {
    let mut tx = Tx::sqlite(db.begin().await?);
    let found = checkpoint::load::<TaskProjector>(&mut tx).await?;
    tx.commit().await?;
    Ok(found)
}

const HAS_CHECKPOINTS: &str = "SELECT COUNT(*) > 0
    FROM sqlite_master
    WHERE type = 'table' AND name = 'checkpoints'";

/// Makes an empty file that only its owner can read, unless there is one. SQLite takes it for a new
/// database, and gives what it keeps beside a database the same mode.
fn make_private(path: &Path) -> Result<(), Error> {
    let mut options = std::fs::OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(path) {
        Err(source) if source.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(unusable(path, source))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

async fn replace(path: &Path) -> Result<SqliteConnection, Error> {
    remove(path)?;
    prepare(path).await.map(|(db, _)| db)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_whose_last_pages_lie_beside_it_takes_no_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.db");
        let next = next_path(&path);
        for name in [&path, &next] {
            std::fs::write(name, name.to_string_lossy().as_bytes()).unwrap();
        }
        let beside = folder.path().join("rows.db.next-wal");
        std::fs::write(&beside, "pages").unwrap();
        assert!(matches!(put_in_place(&next, &path), Err(Error::InUse)));
        assert!(next.exists(), "nothing was moved");
        std::fs::remove_file(&beside).unwrap();
        put_in_place(&next, &path).unwrap();
        let now = std::fs::read(&path).unwrap();
        assert_eq!(now, next.to_string_lossy().as_bytes());
    }
}

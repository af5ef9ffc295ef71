//! Decides where each kind of data is stored, and which combinations are allowed.

use super::{Database, Storage};
use crate::store::EventStore;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The place of the log.
#[derive(Clone)]
pub enum LogIn {
    /// A SQLite file in a folder that no other process uses.
    Folder(PathBuf),
    /// A Postgres database.
    Database(Box<Database>),
    /// A store that is a log and nothing else. It is open already, and whoever opened it closes it.
    Store(Arc<dyn EventStore>),
}

impl fmt::Debug for LogIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => f.debug_tuple("Folder").field(folder).finish(),
            Self::Database(database) => f.debug_tuple("Database").field(database).finish(),
            Self::Store(_) => f.write_str("Store"),
        }
    }
}

/// The place of tables.
#[derive(Debug, Clone)]
pub enum TablesIn {
    /// SQLite files in a folder that no other process uses.
    Folder(PathBuf),
    /// A Postgres database.
    Database(Box<Database>),
}

/// The places of a server's data: three choices, of which [`Parts::new`] accepts what works together.
#[derive(Debug, Clone)]
pub struct Parts {
    pub(super) arrangement: Arrangement,
}

/// The combinations that work.
#[derive(Debug, Clone)]
pub(super) enum Arrangement {
    /// One server: a log of its own, and tables in folders of its own.
    Alone {
        log: AloneLog,
        read_models: PathBuf,
        beside: PathBuf,
    },
    /// Any number of servers on one database.
    Shared(Box<Database>),
}

/// The log of a server that is alone.
#[derive(Clone)]
pub(super) enum AloneLog {
    Folder(PathBuf),
    Store(Arc<dyn EventStore>),
}

impl fmt::Debug for AloneLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => f.debug_tuple("Folder").field(folder).finish(),
            Self::Store(_) => f.write_str("Store"),
        }
    }
}

/// The choices do not work together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the log in {log} with read models in {read_models} and the rest in {beside}: expected everything in \
     one Postgres database, or a log in a folder or a store of its own with both others in folders"
)]
pub struct NotCombined {
    log: String,
    read_models: String,
    beside: String,
}

impl Parts {
    /// The log, the read models, and what lies beside the log (webhooks, deliveries and their secrets).
    ///
    /// Servers that share a database share all of it: who owns which flows and who folds the read models
    /// is decided there. A log in a folder or in a store of its own has one server, whose tables lie in
    /// folders; they may be different ones.
    ///
    /// # Errors
    /// [`NotCombined`].
    pub fn new(log: LogIn, read_models: TablesIn, beside: TablesIn) -> Result<Self, NotCombined> {
        let refused = NotCombined {
            log: match &log {
                LogIn::Folder(folder) => format!("folder {}", folder.display()),
                LogIn::Database(database) => database.to_string(),
                LogIn::Store(_) => "a store of its own".to_owned(),
            },
            read_models: read_models.to_string(),
            beside: beside.to_string(),
        };
        let arrangement = match (log, read_models, beside) {
            (LogIn::Folder(log), TablesIn::Folder(read_models), TablesIn::Folder(beside)) => {
                Arrangement::Alone {
                    log: AloneLog::Folder(log),
                    read_models,
                    beside,
                }
            }
            (LogIn::Store(log), TablesIn::Folder(read_models), TablesIn::Folder(beside)) => {
                Arrangement::Alone {
                    log: AloneLog::Store(log),
                    read_models,
                    beside,
                }
            }
            (LogIn::Database(log), TablesIn::Database(read_models), TablesIn::Database(beside))
                if log.is_same_as(&read_models) && log.is_same_as(&beside) =>
            {
                Arrangement::Shared(log)
            }
            (
                LogIn::Folder(_) | LogIn::Store(_) | LogIn::Database(_),
                TablesIn::Folder(_) | TablesIn::Database(_),
                TablesIn::Folder(_) | TablesIn::Database(_),
            ) => return Err(refused),
        };
        Ok(Self { arrangement })
    }
}

impl fmt::Display for TablesIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "folder {}", folder.display()),
            Self::Database(database) => write!(f, "{database}"),
        }
    }
}

impl From<Storage> for Parts {
    fn from(storage: Storage) -> Self {
        let arrangement = match storage {
            Storage::Folder(folder) => Arrangement::Alone {
                log: AloneLog::Folder(folder.clone()),
                read_models: folder.clone(),
                beside: folder,
            },
            Storage::Database(database) => Arrangement::Shared(database),
        };
        Self { arrangement }
    }
}

impl From<&Path> for Parts {
    fn from(folder: &Path) -> Self {
        Storage::from(folder).into()
    }
}

impl Arrangement {
    /// The folders that are used, each once.
    pub(super) fn folders(&self) -> Vec<&Path> {
        let mut folders: Vec<&Path> = match self {
            Self::Alone {
                log,
                read_models,
                beside,
            } => {
                let log = match log {
                    AloneLog::Folder(folder) => Some(folder.as_path()),
                    AloneLog::Store(_) => None,
                };
                log.into_iter().chain([&**read_models, &**beside]).collect()
            }
            Self::Shared(_) => Vec::new(),
        };
        folders.sort_unstable();
        folders.dedup();
        folders
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::store::memory::MemoryStore;
    use sqlx::postgres::PgConnectOptions;
    use std::time::Duration;

    fn database(name: &str) -> Box<Database> {
        Box::new(Database {
            connect: PgConnectOptions::new_without_pgpass()
                .host("localhost")
                .database(name),
            connections: 2,
            acquire_timeout: Duration::from_secs(1),
            statement_timeout: Duration::from_secs(1),
            nodes: crate::nodes::Trust::default(),
        })
    }

    #[test]
    fn what_works_together_is_accepted_and_nothing_else() {
        let folder = || PathBuf::from("/data");
        let store = || Arc::new(MemoryStore::new(Arc::new(SystemClock::default())));
        let logs: [fn() -> LogIn; 2] = [
            || LogIn::Folder(PathBuf::from("/data")),
            || LogIn::Database(database("a")),
        ];
        let tables: [fn() -> TablesIn; 3] = [
            || TablesIn::Folder(PathBuf::from("/data")),
            || TablesIn::Database(database("a")),
            || TablesIn::Database(database("b")),
        ];
        for (l, log) in logs.iter().enumerate() {
            for (r, read_models) in tables.iter().enumerate() {
                for (b, beside) in tables.iter().enumerate() {
                    let parts = Parts::new(log(), read_models(), beside());
                    assert_eq!(parts.is_ok(), l == r && r == b, "{l} {r} {b}");
                }
            }
        }
        let only_log = Parts::new(
            LogIn::Store(store()),
            TablesIn::Folder(folder()),
            TablesIn::Folder(PathBuf::from("/elsewhere")),
        );
        let folders = only_log.expect("a store that is only a log").arrangement;
        assert_eq!(
            folders.folders(),
            [Path::new("/data"), Path::new("/elsewhere")]
        );
        let refused = Parts::new(
            LogIn::Store(store()),
            TablesIn::Database(database("a")),
            TablesIn::Folder(folder()),
        );
        let text = refused
            .expect_err("tables in a database that has no log")
            .to_string();
        assert!(
            text.contains("database a at localhost") && text.contains("expected"),
            "{text}"
        );
    }
}

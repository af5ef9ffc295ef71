//! Where a server keeps its data. The only place behind the doors that knows which backend runs.

use super::StartError;
use crate::clock::SharedClock;
use crate::store::EventStore;
use crate::store::lock::DataDirLock;
use crate::store::sqlite::{self, SqliteStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taskledger_projections::{self as projections, Found, ReadModels};

/// File of the read models in the data folder; may be deleted while no server runs.
pub const READ_MODELS_FILE: &str = "read_models.db";

/// What a server is opened on.
#[derive(Debug, Clone)]
pub enum Storage {
    /// A folder that no other process uses.
    Folder(PathBuf),
}

impl From<&Path> for Storage {
    fn from(folder: &Path) -> Self {
        Self::Folder(folder.to_owned())
    }
}

/// An open storage.
pub(super) struct Opened {
    /// The log.
    pub(super) store: Arc<dyn EventStore>,
    /// The read models.
    pub(super) queries: Arc<ReadModels>,
    /// What was found of them.
    pub(super) found: Found,
    backend: Backend,
}

/// What has to be closed.
enum Backend {
    Folder {
        store: Arc<SqliteStore>,
        _lock: DataDirLock,
    },
}

impl Opened {
    /// Opens the log and the read models, made or brought up to date if need be.
    pub(super) async fn open(storage: &Storage, clock: SharedClock) -> Result<Self, StartError> {
        match storage {
            Storage::Folder(folder) => Self::folder(folder, clock).await,
        }
    }

    async fn folder(folder: &Path, clock: SharedClock) -> Result<Self, StartError> {
        std::fs::create_dir_all(folder).map_err(|source| StartError::DataDir {
            path: folder.to_owned(),
            source,
        })?;
        let lock = DataDirLock::acquire(folder)?;
        let store = Arc::new(SqliteStore::open(sqlite::Options::new(folder, clock))?);
        let options = projections::Options::new(folder.join(READ_MODELS_FILE));
        let (queries, found) = ReadModels::open(&options).await?;
        Ok(Self {
            store: store.clone(),
            queries: Arc::new(queries),
            found,
            backend: Backend::Folder { store, _lock: lock },
        })
    }

    /// Finishes what was queued and lets go of everything. The last step of a server's end.
    pub(super) async fn close(self) {
        match self.backend {
            Backend::Folder { store, _lock } => store.close().await,
        }
    }
}

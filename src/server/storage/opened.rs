//! Opens and closes all stores of a server.

use super::parts::{AloneLog, Arrangement, Parts};
use super::witnesses::{Accepted, Folders, OlderLog, compare_in_database};
use super::{Database, READ_MODELS_FILE};
use crate::clock::SharedClock;
use crate::metrics::Place;
use crate::private;
use crate::sealing::Keyring;
use crate::server::StartError;
use crate::server::cluster::Cluster;
use crate::server::orphans::stop_orphans;
use crate::store::EventStore;
use crate::store::lock::DataDirLock;
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::{self, LEDGER_FILE, SqliteStore};
use crate::webhooks::store::{self as webhooks, Store as Webhooks, WEBHOOKS_FILE};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taskledger_auth::{Action, AuditLog, AuthStore, By, Entry, MAIN_TENANT};
use taskledger_broker::{BROKER_FILE, BrokerStore};
use taskledger_documents::{DocumentStore, WORKFLOWS_FILE};
use taskledger_projections::{self as projections, Found, ReadModels};
use taskledger_schedules::{SCHEDULES_FILE, ScheduleStore};
use taskledger_workers::WorkerStore;
use taskledger_workers::store::WORKERS_FILE;

/// An open storage.
pub(in crate::server) struct Opened {
    /// The log.
    pub(in crate::server) store: Arc<dyn EventStore>,
    /// The read models.
    pub(in crate::server) queries: Arc<ReadModels>,
    /// What was found of them.
    pub(in crate::server) found: Found,
    /// What it takes to be one of several servers, where there may be others.
    pub(in crate::server) cluster: Option<Cluster>,
    /// Endpoints and deliveries.
    pub(in crate::server) webhooks: Arc<Webhooks>,
    /// Where all of it is, for those who measure it.
    pub(in crate::server) place: Place,
    /// Tokens, secrets of tasks, and the audit log.
    pub(in crate::server) auth: Arc<AuthStore>,
    /// Declared methods, renewals of leases, presence of workers.
    pub(in crate::server) workers: Arc<WorkerStore>,
    /// Workflow documents that are kept.
    pub(in crate::server) documents: Arc<DocumentStore>,
    pub(in crate::server) schedules: Arc<ScheduleStore>,
    /// Tasks that agents have published, and how they ended.
    pub(in crate::server) broker: Arc<BrokerStore>,
    /// What secrets are sealed with.
    pub(in crate::server) keys: Keyring,
    /// The folder that holds what lies beside the log, where there is one.
    pub(in crate::server) beside: Option<PathBuf>,
    log: OpenLog,
    _locks: Vec<DataDirLock>,
}

/// The log as something that has to be closed.
enum OpenLog {
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
    /// Whoever opened it closes it.
    Given(Arc<dyn EventStore>),
}

impl OpenLog {
    fn store(&self) -> Arc<dyn EventStore> {
        match self {
            Self::Sqlite(store) => store.clone(),
            Self::Postgres(store) => store.clone(),
            Self::Given(store) => store.clone(),
        }
    }

    async fn close(&self) {
        match self {
            Self::Sqlite(store) => store.close().await,
            Self::Postgres(store) => store.close().await,
            Self::Given(_) => {}
        }
    }
}

impl Opened {
    /// Opens the log and the tables, made or brought up to date if need be.
    /// `keys`: the file with the keys of secrets; without one, a folder has a file of its own. `older`: what becomes of
    /// a log that has lost events which other stores have read.
    pub(in crate::server) async fn open(
        parts: &Parts,
        clock: SharedClock,
        keys: Option<&Path>,
        older: OlderLog,
    ) -> Result<Self, StartError> {
        let folders = parts.arrangement.folders();
        let locks = lock(&folders)?;
        let opened = match &parts.arrangement {
            Arrangement::Alone {
                log,
                read_models,
                beside,
            } => {
                let tables = (read_models.as_path(), beside.as_path());
                Self::alone(log, tables, clock, keys, older, locks).await
            }
            Arrangement::Shared(database) => Self::shared(database, clock, keys, older).await,
        }?;
        for folder in folders {
            private::warn_of_readable(folder);
        }
        Ok(opened)
    }

    async fn alone(
        log: &AloneLog,
        (read_models, beside): (&Path, &Path),
        clock: SharedClock,
        keys: Option<&Path>,
        older: OlderLog,
        locks: Vec<DataDirLock>,
    ) -> Result<Self, StartError> {
        stop_orphans(beside).await;
        let (folder, given) = match log {
            AloneLog::Folder(folder) => (Some(folder.as_path()), None),
            AloneLog::Store(store) => (None, Some(&**store)),
        };
        let folders = Folders {
            log: folder,
            read_models,
            beside,
        };
        let accepted = folders.compare(given, older, clock.now()).await?;
        let keys = match keys {
            Some(file) => Keyring::read(file)?,
            None => Keyring::of_folder(beside, &clock)?,
        };
        let webhooks = Webhooks::of_folder(beside, keys.clone(), clock.clone()).await?;
        let mut files = vec![
            ("read_models", read_models.join(READ_MODELS_FILE)),
            ("webhooks", beside.join(WEBHOOKS_FILE)),
            ("workers", beside.join(WORKERS_FILE)),
            ("workflows", beside.join(WORKFLOWS_FILE)),
            ("broker", beside.join(BROKER_FILE)),
            ("schedules", beside.join(SCHEDULES_FILE)),
        ];
        let mut written = beside;
        if let AloneLog::Folder(folder) = log {
            files.insert(0, ("log", folder.join(LEDGER_FILE)));
            written = folder;
        }
        let place = Place {
            files,
            folder: Some(written.to_owned()),
            database: None,
        };
        let auth = AuthStore::of_folder(beside).await?;
        let workers = WorkerStore::of_folder(beside).await?;
        let documents = DocumentStore::of_folder(beside).await?;
        let schedules = ScheduleStore::of_folder(beside).await?;
        let broker = BrokerStore::of_folder(beside, Arc::from(MAIN_TENANT)).await?;
        let log = match log {
            AloneLog::Folder(folder) => {
                let options = sqlite::Options::new(folder, clock.clone());
                OpenLog::Sqlite(Arc::new(SqliteStore::open(options)?))
            }
            AloneLog::Store(store) => OpenLog::Given(store.clone()),
        };
        let options = projections::Options::new(read_models.join(READ_MODELS_FILE));
        let (queries, found) = ReadModels::open(&options).await?;
        if let Found::Damaged { kept, .. } = &found {
            tracing::warn!(file = %kept.display(), "the read models are {found}");
        }
        let opened = Self {
            store: log.store(),
            queries: Arc::new(queries),
            found,
            cluster: None,
            webhooks: Arc::new(webhooks),
            place,
            auth: Arc::new(auth),
            workers: Arc::new(workers),
            documents: Arc::new(documents),
            schedules: Arc::new(schedules),
            broker: Arc::new(broker),
            keys,
            beside: Some(beside.to_owned()),
            log,
            _locks: locks,
        };
        opened.settle(accepted.as_ref(), clock).await?;
        Ok(opened)
    }

    /// Moves the stores back to the end of an older log that was accepted, and records that in the audit log.
    async fn settle(
        &self,
        accepted: Option<&Accepted>,
        clock: SharedClock,
    ) -> Result<(), StartError> {
        let Some(Accepted { lost, kept }) = accepted else {
            return Ok(());
        };
        let seen: Vec<_> = lost.conflicts.iter().map(ToString::to_string).collect();
        let detail = serde_json::json!({"head": lost.head, "found": seen, "kept": kept});
        let entry = Entry::done(By::operator(), Action::LogAccepted, None).with(detail);
        let audit = AuditLog::new(self.auth.clone(), clock);
        audit.record(&entry).await.map_err(StartError::Audit)?;
        let head = self.store.head().await?;
        let rewound = self.webhooks.rewind(head).await;
        rewound.map_err(webhooks::OpenError::from)?;
        self.broker.rewind(head).await.map_err(StartError::Broker)?;
        tracing::warn!(found = %lost, kept = kept.join(", "), "an older log was accepted");
        Ok(())
    }

    async fn shared(
        database: &Database,
        clock: SharedClock,
        keys: Option<&Path>,
        older: OlderLog,
    ) -> Result<Self, StartError> {
        let keys = keys.map_or(Ok(Keyring::none()), Keyring::read)?;
        let options = database.log(clock.clone());
        let store = Arc::new(PostgresStore::open(options.clone()).await?);
        let place = Place {
            database: Some(store.clone()),
            ..Place::default()
        };
        let log = OpenLog::Postgres(store);
        let rest = async {
            let accepted = compare_in_database(database, older, clock.now()).await?;
            let read_models = ReadModels::open(&database.read_models()).await?;
            let cluster = Cluster::open(&options, &database.nodes, &clock).await?;
            let webhooks = Webhooks::of_database(&options, keys.clone(), clock.clone()).await?;
            let auth = AuthStore::of_database(&options).await?;
            let workers = WorkerStore::of_database(&options).await?;
            let documents = DocumentStore::of_database(&options).await?;
            let schedules = ScheduleStore::of_database(&options).await?;
            let broker = BrokerStore::of_database(&options, Arc::from(MAIN_TENANT)).await?;
            let beside = (webhooks, auth, workers, documents, schedules, broker);
            Ok::<_, StartError>((read_models, cluster, beside, accepted))
        };
        let opened = rest.await;
        let ((queries, found), cluster, beside, accepted) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                log.close().await;
                return Err(error);
            }
        };
        let (webhooks, auth, workers, documents, schedules, broker) = beside;
        let opened = Self {
            store: log.store(),
            queries: Arc::new(queries),
            found,
            cluster: Some(cluster),
            webhooks: Arc::new(webhooks),
            place,
            auth: Arc::new(auth),
            workers: Arc::new(workers),
            documents: Arc::new(documents),
            schedules: Arc::new(schedules),
            broker: Arc::new(broker),
            keys,
            beside: None,
            log,
            _locks: Vec::new(),
        };
        opened.settle(accepted.as_ref(), clock).await?;
        Ok(opened)
    }

    /// Finishes what was queued and lets go of everything. The last step of a server's end.
    pub(in crate::server) async fn close(self) {
        if let Some(cluster) = &self.cluster {
            cluster.close().await;
        }
        self.webhooks.close().await;
        self.auth.close().await;
        self.workers.close().await;
        self.documents.close().await;
        self.schedules.close().await;
        self.broker.close().await;
        self.log.close().await;
    }
}

/// Makes the folders that are missing and keeps other processes out of all of them.
fn lock(folders: &[&Path]) -> Result<Vec<DataDirLock>, StartError> {
    let lock = |folder: &&Path| {
        private::make_folder(folder).map_err(|error| StartError::DataDir {
            path: (*folder).to_owned(),
            source: match folder.is_file() {
                true => io::Error::new(error.kind(), "it is not a folder"),
                false => error,
            },
        })?;
        Ok(DataDirLock::acquire(folder)?)
    };
    folders.iter().map(lock).collect()
}

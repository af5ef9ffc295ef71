//! Puts the parts of a server together, and takes them apart in the right order.
//!
//! The same assembly serves `taskledger serve`, `taskledger run` without a server, tests, and a
//! program of your own that brings its executors (`examples/custom_executor.rs`).

mod alone;
mod cluster;
mod reconcile;
mod storage;

pub use alone::Alone;
pub use storage::{Database, LogIn, NotCombined, Parts, READ_MODELS_FILE, Storage, TablesIn};

use crate::application::leases::MemoryRenewals;
use crate::application::ownership::Sole;
use crate::application::ports::Executors;
use crate::application::{
    App, Directory, Flows, Ownership, Partitions, Positions, Readings, RowCache, Validation, flows,
    rows,
};
use crate::clock::SharedClock;
use crate::config::{EgressConfig, EngineConfig};
use crate::egress::{BuildError, Egress};
use crate::engine::executor::{
    BuiltInError, BuiltInOptions, Registry, RegistryBuilder, RegistryError, command, with_built_ins,
};
use crate::engine::{Dispatcher as Engine, ExecutorDirectory, JobSource};
use crate::retention;
use crate::store::Fence;
use crate::store::lock::LockError;
use crate::store::postgres;
use crate::store::sqlite::OpenError;
use crate::subscription::live::Live;
use crate::subscription::rebuild::Rebuilds;
use crate::subscription::runner;
use crate::transport::jsonrpc::Dispatcher;
use crate::transport::jsonrpc::methods::{self, Context};
use crate::webhooks;
use crate::webhooks::api::Webhooks;
use crate::webhooks::outbox::Outbox;
use crate::webhooks::worker;
use reconcile::reconcile;
use std::path::PathBuf;
use std::sync::Arc;
use storage::Opened;
use taskledger_projections as projections;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The server cannot start; the operator can mend it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The folder cannot be made.
    #[error("cannot use the data folder `{path}`: {source}")]
    DataDir {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Another process uses the folder.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// The log cannot be opened.
    #[error(transparent)]
    Log(#[from] OpenError),
    /// The value is never repeated: it may hold a password.
    #[error("--database-url: {0}; expected postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    DatabaseUrl(String),
    /// The database cannot be used.
    #[error(transparent)]
    Database(#[from] postgres::OpenError),
    /// The log was opened but does not answer.
    #[error("the log cannot be used: {0}")]
    Store(#[from] crate::store::Error),
    /// The read models cannot be opened or made.
    #[error("the read models cannot be used")]
    ReadModels(#[from] projections::Error),
    /// The read models have stopped before the end of the log.
    #[error(transparent)]
    Behind(#[from] runner::Lagging),
    /// The leases of the nodes cannot be read.
    #[error(transparent)]
    Nodes(#[from] crate::nodes::Error),
    /// Endpoints and deliveries cannot be opened.
    #[error(transparent)]
    Webhooks(#[from] webhooks::store::OpenError),
    /// The keys of secrets cannot be used.
    #[error(transparent)]
    Keys(#[from] webhooks::keys::KeysError),
    /// No calls to other nodes are possible.
    #[error("cannot call other nodes: {0}")]
    Calls(#[from] reqwest::Error),
    /// No calls to receivers are possible.
    #[error(transparent)]
    Egress(#[from] BuildError),
    /// A built-in executor cannot be set up.
    #[error(transparent)]
    BuiltIn(#[from] BuiltInError),
    /// The executors do not fit together.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// A running server without doors: calls go through its dispatcher.
pub struct Server {
    context: Arc<Context>,
    dispatcher: Arc<Dispatcher<Context>>,
    storage: Opened,
    stop: CancellationToken,
    leaving: CancellationToken,
    services: TaskTracker,
    /// Ends the delivery of webhooks.
    sending: CancellationToken,
}

/// The client of every outgoing request of a server: one, made at the start.
///
/// # Errors
/// [`StartError`]: certificates, proxy or name servers cannot be used.
pub fn egress(config: &EngineConfig) -> Result<Arc<Egress>, StartError> {
    Ok(Arc::new(Egress::new(config.egress.options()?)?))
}

/// The settings of webhooks.
#[must_use]
pub fn webhooks(config: &EngineConfig, egress: &Arc<Egress>) -> webhooks::Options {
    webhooks::Options {
        secrets_key_file: config.webhooks.secrets_key_file.clone(),
        egress: Some(egress.clone()),
        worker: config.webhooks.worker(),
    }
}

/// The executors that the configuration asks for, next to those that `builder` has.
///
/// # Errors
/// [`StartError`]: a program is missing, a name is taken, a limit names no executor.
pub fn executors(
    builder: RegistryBuilder,
    config: &EngineConfig,
    egress: Arc<Egress>,
) -> Result<Registry, StartError> {
    let command = (!config.allowed_commands.is_empty())
        .then(|| command::Options::allowing(&config.allowed_commands));
    let has_folder = config.storage.database.url.is_none();
    let options = BuiltInOptions {
        disk_path: has_folder.then(|| config.storage.data_dir.clone()),
        command,
        egress: Some(egress),
    };
    let builder = with_built_ins(builder, options)?;
    let limited = config
        .executor_limits
        .iter()
        .fold(builder, |builder, l| builder.concurrency(&l.name, l.limit));
    Ok(limited.build()?)
}

impl Server {
    /// Opens the storage and starts everything behind the doors. Flows that were running when the
    /// last server ended go on.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn open(
        storage: impl Into<Parts>,
        registry: Registry,
        clock: SharedClock,
    ) -> Result<Self, StartError> {
        Self::open_with(storage, registry, clock, webhooks::Options::default()).await
    }

    /// As [`Self::open`], with settings of webhooks.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn open_with(
        storage: impl Into<Parts>,
        registry: Registry,
        clock: SharedClock,
        webhooks: webhooks::Options,
    ) -> Result<Self, StartError> {
        let keys = webhooks.secrets_key_file.as_deref();
        let storage = Opened::open(&storage.into(), clock.clone(), keys).await?;
        let (store, queries) = (storage.store.clone(), storage.queries.clone());
        let ownership: Arc<dyn Ownership> = match &storage.cluster {
            Some(cluster) => cluster.tenure.clone(),
            None => Arc::new(Sole(Some(Fence {
                name: Arc::from("writer"),
                token: store.raise_fence("writer").await?,
            }))),
        };
        tracing::info!(head = *store.watch().borrow(), read_models = ?storage.found, "the storage is open");
        let stop = CancellationToken::new();
        let services = TaskTracker::new();
        let (service, projections) =
            runner::Service::new(store.clone(), queries.clone(), runner::Options::default())
                .await?;
        let service = match &storage.cluster {
            Some(cluster) => service.folding_while(cluster.tenure.folds()),
            None => service,
        };
        services.spawn(service.run(stop.child_token()));
        let outbox = Outbox::new(store.clone(), storage.webhooks.clone());
        let outbox = match &storage.cluster {
            Some(cluster) => outbox.working_while(cluster.tenure.folds()),
            None => outbox,
        };
        services.spawn(outbox.run(stop.child_token()));
        let egress = match webhooks.egress {
            Some(egress) => egress,
            None => Arc::new(Egress::new(EgressConfig::default().options()?)?),
        };
        let (worker, deliveries) = worker::Service::new(
            worker::Parts {
                deliveries: storage.webhooks.clone(),
                sender: egress.clone(),
                clock: clock.clone(),
            },
            webhooks.worker,
        );
        let sending = stop.child_token();
        services.spawn(worker.run(sending.clone()));
        let webhooks = Arc::new(Webhooks::new(
            storage.webhooks.clone(),
            store.clone(),
            Arc::new(egress.policy().clone()),
        ));

        let catalog = Arc::new(ExecutorDirectory::new(registry));
        let executors: Arc<dyn Executors> = catalog.clone();
        let (row_cache, positions) = (
            Arc::new(RowCache::new(rows::BYTES_MAX)),
            Arc::new(Positions::after(*store.watch().borrow())),
        );
        let (flows, woken) = Flows::new(flows::Parts {
            store: store.clone(),
            clock: clock.clone(),
            executors: executors.clone(),
            renewals: Arc::new(MemoryRenewals::default()),
            rows: row_cache.clone(),
            positions: positions.clone(),
            ownership,
            idle_bytes_max: flows::IDLE_BYTES_MAX,
            stop: stop.clone(),
        });
        let validation = Arc::new(Validation::new(executors));
        let source = JobSource::new(store.clone(), row_cache.clone());
        let engine = Engine::new(
            &flows,
            catalog.clone(),
            source,
            validation.clone(),
            clock.clone(),
        );
        flows.set_attempts(engine.clone());
        services.spawn(flows.clone().run(woken, stop.child_token()));
        let (following, live) = Live::new(store.clone());
        services.spawn(following.run(stop.child_token()));
        let rebuilds = Rebuilds::new(store.clone(), queries.clone());
        let app = App {
            directory: Arc::new(Directory::new(
                store.clone(),
                clock.clone(),
                row_cache.clone(),
            )),
            store,
            clock: clock.clone(),
            flows,
            projections,
            readings: Readings::of(queries.readers()),
            queries,
            rebuilds,
            validation,
            rows: row_cache,
            positions,
            live,
        };
        let context = Arc::new(Context {
            app,
            catalog,
            engine,
            webhooks,
            deliveries,
        });
        if !context.app.flows.ownership().is_shared() {
            // Nobody else will bring them.
            context.app.flows.gained(&Partitions::ALL);
        }
        services.spawn(reconcile(context.clone(), stop.child_token()));
        let dispatcher =
            Dispatcher::new(context.clone(), methods::table(), clock).with_streams(context.clone());
        let dispatcher = Arc::new(match &storage.cluster {
            Some(cluster) => dispatcher.with_forward(cluster.peers.clone()),
            None => dispatcher,
        });
        Ok(Self {
            context,
            dispatcher,
            storage,
            leaving: stop.child_token(),
            stop,
            services,
            sending,
        })
    }

    /// Takes its part of the flows, as the node that others reach at `url`. A server that is alone
    /// has all of them already. Once, when the door is open.
    pub fn join(&self, url: &str) {
        if let Some(cluster) = &self.storage.cluster {
            let flows = self.context.app.flows.clone();
            let taking_part = cluster.take_part(url, flows, self.leaving.clone());
            self.services.spawn(taking_part);
        }
    }

    /// Archives finished flows of this server from now on. Once.
    pub fn retain(&self, policy: retention::Policy, schedule: retention::Schedule) {
        let app = &self.context.app;
        let directory = app.directory.clone();
        let service = retention::Service {
            retention: retention::Retention {
                store: app.store.clone(),
                flows: app.flows.clone(),
                queries: app.queries.clone(),
                projections: app.projections.clone(),
                follower: Arc::new(alone::Outgoing(self.storage.webhooks.clone())),
                forget: Arc::new(move |gone| directory.forget(gone)),
                clock: app.clock.clone(),
            },
            policy,
            schedule,
        };
        self.services.spawn(service.run(self.leaving.clone()));
    }

    /// Cancelling it hands this server's flows over to the other nodes, if there are any. Calls that are
    /// under way are then passed on, or told to come back; queries are answered as before.
    #[must_use]
    pub const fn leaving(&self) -> &CancellationToken {
        &self.leaving
    }

    /// Where calls go.
    #[must_use]
    pub fn dispatcher(&self) -> &Arc<Dispatcher<Context>> {
        &self.dispatcher
    }

    /// What calls work on.
    #[must_use]
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Cancelled when the server must stop by itself, because another one has taken over.
    #[must_use]
    pub fn stopped(&self) -> &CancellationToken {
        &self.stop
    }

    /// Stops executors, lets every mailbox finish, then the read models, then the log. Attempts
    /// that were under way are interrupted: the next start decides about them.
    pub async fn close(self) {
        // It takes as long as a receiver takes to answer, so it begins first.
        self.sending.cancel();
        self.context.app.flows.slots().close();
        self.context.engine.shut_down().await;
        self.context.app.flows.drain().await;
        self.context.app.readings.close().await;
        self.context.app.rebuilds.close().await;
        self.stop.cancel();
        self.services.close();
        self.services.wait().await;
        self.storage.close().await;
    }
}

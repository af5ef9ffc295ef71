//! Assembles the parts of a server, and shuts them down in the right order.
//!
//! The same assembly serves `taskledger serve`, `taskledger run` without a server, tests, and a
//! program of your own that brings its executors (`examples/custom_executor.rs`).

mod alone;
mod assembly;
mod authentication;
mod broker;
mod cluster;
mod configured;
mod damage;
mod drain;
mod orphans;
mod reconcile;
mod start_error;
mod storage;

pub use alone::Alone;
pub use configured::{
    egress, executor_faults, executors, limits, oidc_issuers, sharing, stop_left_programs,
    webhooks, zones,
};
pub use drain::Drain;
pub use start_error::StartError;
pub use storage::{
    BACKED_UP_STORES, Database, LogIn, NotCombined, OlderLog, Parts, READ_MODELS_FILE, Storage,
    TablesIn, lost_in_database, lost_in_folder,
};

use crate::application::limits::{self as limiting, Limits};
use crate::application::routing::Forward;
use crate::application::slots::Sharing;
use crate::application::{App, Partitions, Service, service};
use crate::clock::SharedClock;
use crate::engine::executor::Registry;
use crate::engine::{Dispatcher as Engine, ExecutorDirectory, WorkerRegistry};
use crate::metrics::{Metrics, Sources};
use crate::retention;
use crate::tls::Certificates;
use crate::transport::jsonrpc::{Dispatcher, dispatch, methods};
use crate::webhooks;
use crate::webhooks::api::Webhooks;
use assembly::Assembly;
use damage::look_at_damage;
use reconcile::reconcile;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use storage::Opened;
use taskledger_auth::tokens::FirstError;
use taskledger_auth::{AdminTokens, By, Tokens};
use taskledger_domain::flow::WaitBounds;
use taskledger_zones::Zones;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A running server without doors: calls go through its dispatcher.
pub struct Server {
    app: Arc<App>,
    engine: Arc<Engine>,
    webhooks: Arc<Webhooks>,
    tokens: Arc<Tokens>,
    workers: Arc<WorkerRegistry>,
    service: Arc<Service>,
    dispatcher: Arc<Dispatcher<Service>>,
    storage: Opened,
    stop: CancellationToken,
    leaving: CancellationToken,
    services: TaskTracker,
    /// Ends the delivery of webhooks.
    sending: CancellationToken,
}

/// Settings of a server behind its doors.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Settings of the delivery of webhooks.
    pub webhooks: webhooks::Options,
    /// Who comes first when an executor is busy.
    pub sharing: Sharing,
    /// How long tasks of runs that begin here wait, if they do not say so themselves.
    pub wait_bounds: WaitBounds,
    /// How much callers may ask.
    pub limits: limiting::Options,
    /// Tokens of the operator, which are accepted without being stored.
    pub admins: AdminTokens,
    /// The OIDC issuers that are trusted, as their tokens name them: of no other tokens are refused.
    pub issuers: Arc<[Arc<str>]>,
    /// What the server shows when it speaks TLS, for metrics.
    pub certificates: Option<Arc<Certificates>>,
    /// When the audit log has that the server has started.
    pub start_row: StartRow,
    /// The time zones of schedules.
    pub zones: Arc<Zones>,
    /// What becomes of a log that has lost events which other stores have read.
    pub older_log: OlderLog,
}

/// When the audit log has that a server has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartRow {
    /// As soon as the log can be written.
    #[default]
    AtOnce,
    /// When the door says with which settings: [`Server::note_start`].
    WithSettings,
}

impl From<webhooks::Options> for Options {
    fn from(webhooks: webhooks::Options) -> Self {
        Self {
            webhooks,
            ..Self::default()
        }
    }
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
        Self::open_with(storage, registry, clock, Options::default()).await
    }

    /// As [`Self::open`], with these settings.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn open_with(
        storage: impl Into<Parts>,
        registry: Registry,
        clock: SharedClock,
        options: impl Into<Options>,
    ) -> Result<Self, StartError> {
        Self::started(storage.into(), registry, clock, options.into()).await
    }

    /// The future is behind a pointer, because what an `async fn` does is compiled in each crate that awaits it.
    fn started(
        parts: Parts,
        registry: Registry,
        clock: SharedClock,
        options: Options,
    ) -> Pin<Box<dyn Future<Output = Result<Self, StartError>> + Send>> {
        Box::pin(async move { Self::start(&parts, registry, clock, options).await })
    }

    async fn start(
        parts: &Parts,
        registry: Registry,
        clock: SharedClock,
        options: Options,
    ) -> Result<Self, StartError> {
        let Options {
            webhooks,
            sharing,
            wait_bounds,
            limits,
            admins,
            issuers,
            certificates,
            start_row,
            zones,
            older_log,
        } = options;
        let keys = webhooks.secrets_key_file.as_deref();
        let storage = Opened::open(parts, clock.clone(), keys, older_log).await?;
        let assembly = Assembly::of(storage, clock.clone());
        let ownership = assembly.ownership().await?;
        let head = *assembly.storage.store.watch().borrow();
        tracing::info!(head, read_models = %assembly.storage.found, "the storage is open");
        let projections = assembly.fold_read_models().await?;
        let sending = assembly.send_webhooks(webhooks)?;
        assembly.fill_inboxes();
        let tokens = assembly.keep_tokens(admins, start_row).await;
        let secrets = assembly.keep_secrets().await?;
        let catalog = Arc::new(ExecutorDirectory::new(registry));
        let workers = assembly.know_workers(&catalog).await?;
        let usage = assembly.storage.queries.clone();
        let limits = Arc::new(Limits::new(&limits, usage, clock.clone()));
        let following = (ownership, projections);
        let settings = (&limits, wait_bounds);
        let (app, engine) = assembly.application(following, &catalog, settings, secrets.clone());
        app.flows.share(sharing);
        if !app.flows.ownership().is_shared() {
            // Nobody else will bring them.
            app.flows.gained(&Partitions::ALL);
        }
        let Assembly {
            storage,
            stop,
            services,
            ..
        } = assembly;
        services.spawn(reconcile(app.clone(), stop.child_token()));
        services.spawn(look_at_damage(app.clone(), stop.child_token()));
        let leaving = stop.child_token();
        let (giving, left) = (app.clone(), leaving.clone());
        services.spawn(async move {
            left.cancelled().await;
            giving.give_no_more_work();
        });
        let cluster = storage.cluster.as_ref();
        let peers = cluster.map(|cluster| cluster.peers.clone());
        let methods = methods::table();
        let doors = Arc::new(dispatch::figures(&methods));
        let metrics = Metrics::new(Sources {
            app: app.clone(),
            engine: engine.clone(),
            doors: doors.clone(),
            deliveries: sending.deliveries.clone(),
            peers: peers.clone(),
            tokens: tokens.clone(),
            certificates,
            place: storage.place.clone(),
        });
        let service = Arc::new(Service::new(service::Parts {
            app: app.clone(),
            executors: catalog,
            webhooks: sending.webhooks.clone(),
            deliveries: sending.deliveries,
            forward: peers.map(|peers| peers as Arc<dyn Forward>),
            metrics: Some(Arc::new(metrics)),
            tokens: tokens.clone(),
            issuers,
            secrets,
            documents: storage.documents.clone(),
            schedules: storage.schedules.clone(),
            zones,
            broker: storage.broker.clone(),
            workers: workers.clone(),
            limits,
        }));
        assembly::keep_going(&service, &services, &stop);
        let dispatcher = Dispatcher::new(service.clone(), methods, clock).with_figures(doors);
        Ok(Self {
            app,
            engine,
            webhooks: sending.webhooks,
            tokens,
            workers,
            dispatcher: Arc::new(
                dispatcher
                    .with_streams(service.clone())
                    .with_work(service.clone()),
            ),
            service,
            storage,
            leaving,
            stop,
            services,
            sending: sending.stop,
        })
    }

    /// Takes its part of the flows, as the node that others reach at `url`. A server that is alone
    /// has all of them already. Once, when the door is open.
    pub fn join(&self, url: &str) {
        if let Some(cluster) = &self.storage.cluster {
            let flows = self.app.flows.clone();
            let until = (self.leaving.clone(), self.stop.clone());
            let taking_part = cluster.take_part(url, flows, until);
            self.services.spawn(taking_part);
        }
    }

    /// Archives finished flows of this server from now on. Once.
    pub fn retain(&self, policy: retention::Policy, schedule: retention::Schedule) {
        let app = &self.app;
        let directory = app.directory.clone();
        let service = retention::Service {
            retention: retention::Retention {
                by: By::server(),
                store: app.store.clone(),
                flows: app.flows.clone(),
                queries: app.queries.clone(),
                projections: app.projections.clone(),
                audit: Some(self.tokens.audit().clone()),
                follower: Arc::new(alone::Followers::of(&self.storage)),
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

    /// The application, as doors see it.
    #[must_use]
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// Where JSON-RPC calls go.
    #[must_use]
    pub fn dispatcher(&self) -> &Arc<Dispatcher<Service>> {
        &self.dispatcher
    }

    /// What the application works on, for those who look behind the doors.
    #[must_use]
    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Endpoints and deliveries, for those who look behind the doors.
    #[must_use]
    pub fn webhooks(&self) -> &Arc<Webhooks> {
        &self.webhooks
    }

    /// Tokens, for whoever lets callers in.
    #[must_use]
    pub fn tokens(&self) -> &Arc<Tokens> {
        &self.tokens
    }

    /// The workers outside the server, for those who look behind the doors.
    #[must_use]
    pub fn workers(&self) -> &Arc<WorkerRegistry> {
        &self.workers
    }

    /// Whether anybody has credentials.
    async fn has_tokens(&self) -> Result<bool, StartError> {
        Ok(self.tokens.any().await.map_err(FirstError::from)?)
    }

    /// Makes the first token when there was never one, and says in which file it is; for a server that lets
    /// in nobody without credentials. Without a folder the operator brings it (`--admin-token-file`).
    ///
    /// # Errors
    /// [`StartError::FirstToken`].
    pub async fn make_first_token(&self) -> Result<Option<PathBuf>, StartError> {
        if let Some(folder) = &self.storage.beside {
            return Ok(self.tokens.make_first(folder).await?);
        }
        if !self.has_tokens().await? {
            tracing::warn!("there is no token, so nobody can be let in; see --admin-token-file");
        }
        Ok(None)
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
        self.app.flows.close();
        self.engine.shut_down().await;
        self.app.flows.drain().await;
        self.app.readings.close().await;
        self.app.rebuilds.close().await;
        self.stop.cancel();
        self.services.close();
        self.services.wait().await;
        self.tokens.finish().await;
        self.storage.close().await;
    }
}

//! The steps that assemble a server; each builds on the results of those before it.

use super::authentication::started;
use super::storage::Opened;
use super::{StartError, StartRow, broker};
use crate::application::limits::Limits;
use crate::application::ownership::Sole;
use crate::application::ports::{Executors, Tickets};
use crate::application::watching::ConfirmedReads;
use crate::application::{
    App, Directory, Flows, Ownership, Positions, Readings, RowCache, Service, Validation, flows,
    rows,
};
use crate::clock::SharedClock;
use crate::config::EgressConfig;
use crate::egress::Egress;
use crate::engine::secrets::StoredSecrets;
use crate::engine::workers::{StoredRenewals, StoredTickets};
use crate::engine::{Dispatcher as Engine, ExecutorDirectory, JobSource, WorkerRegistry};
use crate::store::Fence;
use crate::subscription::live::Live;
use crate::subscription::rebuild::Rebuilds;
use crate::subscription::runner;
use crate::transport::a2a::Reports;
use crate::webhooks;
use crate::webhooks::api::Webhooks;
use crate::webhooks::outbox::Outbox;
use crate::webhooks::owners::OwnersInLog;
use crate::webhooks::worker;
use std::sync::Arc;
use taskledger_auth::{AdminTokens, AuditLog, Tokens, Vault, VaultError};
use taskledger_domain::flow::WaitBounds;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A server that is being put together: its storage is open, some of its services run.
pub(super) struct Assembly {
    pub(super) storage: Opened,
    pub(super) clock: SharedClock,
    /// Ends the services.
    pub(super) stop: CancellationToken,
    pub(super) services: TaskTracker,
}

/// Webhooks that are being sent.
pub(super) struct Sending {
    pub(super) webhooks: Arc<Webhooks>,
    pub(super) deliveries: worker::Handle,
    /// Ends it.
    pub(super) stop: CancellationToken,
}

impl Assembly {
    /// Over an open storage; nothing runs yet.
    pub(super) fn of(storage: Opened, clock: SharedClock) -> Self {
        Self {
            storage,
            clock,
            stop: CancellationToken::new(),
            services: TaskTracker::new(),
        }
    }

    /// Who decides about which flow. A server that is alone takes over from the one before it.
    pub(super) async fn ownership(&self) -> Result<Arc<dyn Ownership>, StartError> {
        Ok(match &self.storage.cluster {
            Some(cluster) => cluster.ownership.clone(),
            None => Arc::new(Sole(Some(Fence {
                name: Arc::from("writer"),
                token: self.storage.store.raise_fence("writer").await?,
            }))),
        })
    }

    /// Lets the read models follow the log.
    pub(super) async fn fold_read_models(&self) -> Result<runner::Handle, StartError> {
        let (store, queries) = (self.storage.store.clone(), self.storage.queries.clone());
        let options = match &self.storage.cluster {
            Some(_) => runner::Options::default(),
            None => runner::Options::of_one_server(),
        };
        let (service, handle) = runner::Service::new(store, queries, options).await?;
        let service = match &self.storage.cluster {
            Some(cluster) => service.folding_while(cluster.ownership.folds()),
            None => service,
        };
        self.services.spawn(service.run(self.stop.child_token()));
        Ok(handle)
    }

    /// Notes what is to be sent to webhooks, and sends it.
    pub(super) fn send_webhooks(&self, options: webhooks::Options) -> Result<Sending, StartError> {
        let (store, kept) = (&self.storage.store, &self.storage.webhooks);
        let outbox = Outbox::new(store.clone(), kept.clone()).wording(Arc::new(Reports));
        let outbox = match &self.storage.cluster {
            Some(cluster) => outbox.working_while(cluster.ownership.folds()),
            None => outbox,
        };
        self.services.spawn(outbox.run(self.stop.child_token()));
        let egress = match options.egress {
            Some(egress) => egress,
            None => Arc::new(Egress::new(EgressConfig::default().options()?)?),
        };
        let parts = worker::Parts {
            deliveries: kept.clone(),
            owners: Arc::new(OwnersInLog::new(store.clone())),
            sender: egress.clone(),
            clock: self.clock.clone(),
        };
        let (worker, deliveries) = worker::Service::new(parts, options.worker);
        let stop = self.stop.child_token();
        self.services.spawn(worker.run(stop.clone()));
        let policy = Arc::new(egress.policy().clone());
        Ok(Sending {
            webhooks: Arc::new(Webhooks::new(kept.clone(), store.clone(), policy)),
            deliveries,
            stop,
        })
    }

    /// Fills the inboxes of those who publish tasks through the broker.
    pub(super) fn fill_inboxes(&self) {
        let follower = broker::Follower {
            log: self.storage.store.clone(),
            store: self.storage.broker.clone(),
        };
        self.services.spawn(follower.run(self.stop.child_token()));
    }

    /// Tokens and the audit log.
    pub(super) async fn keep_tokens(
        &self,
        admins: AdminTokens,
        start_row: StartRow,
    ) -> Arc<Tokens> {
        let store = self.storage.auth.clone();
        let audit = Arc::new(AuditLog::new(store.clone(), self.clock.clone()));
        match start_row {
            StartRow::AtOnce => started(&audit, serde_json::json!({})).await,
            StartRow::WithSettings => {}
        }
        let tokens = Arc::new(Tokens::new(store, audit, self.clock.clone(), admins));
        let (kept, stop) = (tokens.clone(), self.stop.child_token());
        self.services.spawn(async move {
            stop.run_until_cancelled(kept.keep()).await;
        });
        tokens
    }

    /// The secrets that tasks name.
    pub(super) async fn keep_secrets(&self) -> Result<Arc<Vault>, VaultError> {
        let (store, keys) = (self.storage.auth.clone(), self.storage.keys.clone());
        Ok(Arc::new(Vault::new(store, keys, self.clock.clone()).await?))
    }

    /// The workers outside the server, whose methods are in the directory from now on.
    pub(super) async fn know_workers(
        &self,
        catalog: &Arc<ExecutorDirectory>,
    ) -> Result<Arc<WorkerRegistry>, StartError> {
        let cluster = self.storage.cluster.as_ref();
        let node = cluster.map(|cluster| cluster.ownership.me());
        let (store, clock) = (self.storage.workers.clone(), self.clock.clone());
        let registry = WorkerRegistry::open(store, catalog.clone(), clock, node).await?;
        let running = registry.clone().run(self.stop.child_token());
        self.services.spawn(running);
        Ok(registry)
    }

    /// The flows with the engine that runs their attempts, and everything that use cases work on.
    pub(super) fn application(
        &self,
        (ownership, projections): (Arc<dyn Ownership>, runner::Handle),
        catalog: &Arc<ExecutorDirectory>,
        (limits, wait_bounds): (&Arc<Limits>, WaitBounds),
        secrets: Arc<Vault>,
    ) -> (Arc<App>, Arc<Engine>) {
        let (store, queries) = (self.storage.store.clone(), self.storage.queries.clone());
        let clock = self.clock.clone();
        let executors: Arc<dyn Executors> = catalog.clone();
        let rows = Arc::new(RowCache::new(rows::BYTES_MAX));
        let positions = Arc::new(Positions::after(*store.watch().borrow()));
        let shared = ownership.census().map(|_| self.storage.workers.clone());
        let tickets =
            shared.map(|workers| Arc::new(StoredTickets::of(workers)) as Arc<dyn Tickets>);
        let (flows, woken) = Flows::new(flows::Parts {
            store: store.clone(),
            clock: clock.clone(),
            executors: executors.clone(),
            renewals: Arc::new(StoredRenewals(self.storage.workers.clone())),
            tickets,
            rows: rows.clone(),
            positions: positions.clone(),
            ownership,
            idle_bytes_max: flows::IDLE_BYTES_MAX,
            stop: self.stop.clone(),
        });
        let validation = Arc::new(Validation::new(executors));
        let engine = Engine::new(
            &flows,
            catalog.clone(),
            JobSource::new(store.clone(), rows.clone()),
            validation.clone(),
            Arc::new(StoredSecrets::new(secrets)),
            clock.clone(),
        );
        flows.set_attempts(engine.clone());
        let running = flows.clone().run(woken, self.stop.child_token());
        self.services.spawn(running);
        let reads = ConfirmedReads {
            positions: positions.clone(),
            ownership: flows.ownership().clone(),
        };
        let (following, live) = Live::new(store.clone(), Arc::new(reads));
        self.services.spawn(following.run(self.stop.child_token()));
        let app = App {
            directory: Arc::new(Directory::new(store.clone(), clock.clone(), rows.clone())),
            rebuilds: Rebuilds::new(store.clone(), queries.clone()),
            store,
            clock,
            flows,
            projections,
            readings: Readings::of(queries.readers()),
            queries,
            validation,
            rows,
            positions,
            live,
            limits: limits.clone(),
            wait_bounds,
        };
        (Arc::new(app), engine)
    }
}

/// What a service does by itself: it hints at work, notes who holds tasks, and starts what schedules start.
pub(super) fn keep_going(service: &Arc<Service>, services: &TaskTracker, stop: &CancellationToken) {
    let (hinting, stopped) = (service.clone(), stop.child_token());
    services.spawn(async move { hinting.hint(stopped).await });
    let (noting, stopped) = (service.clone(), stop.child_token());
    services.spawn(async move { noting.note_holders(stopped).await });
    let (ticking, stopped) = (service.clone(), stop.child_token());
    services.spawn(async move { ticking.keep_schedules(stopped).await });
}

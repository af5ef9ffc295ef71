//! Opens the storage for archiving only: no door, no executor, no delivery.

use super::storage::{OlderLog, Opened, Storage};
use super::{StartError, broker};
use crate::application::ownership::Sole;
use crate::application::ports::{Attempts, ExecutorSnapshot, Executors, Started};
use crate::application::{Flows, Ownership, Partitions, Positions, RowCache, flows, rows};
use crate::clock::SharedClock;
use crate::engine::workers::StoredRenewals;
use crate::nodes;
use crate::retention::{Follower, Retention, Unknown};
use crate::store::Fence;
use crate::subscription::runner;
use crate::transport::a2a::Reports;
use crate::webhooks::outbox::Outbox;
use crate::webhooks::store::Store as Webhooks;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::{AuditLog, By};
use taskledger_broker::BrokerStore;
use taskledger_domain::task::inputs::CompiledSchema;
use taskledger_domain::{FlowId, Position, TaskId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long is waited for the read models before it is asked whether they still go on.
const CATCH_UP_STEP: Duration = Duration::from_secs(1);

/// The outbox of the webhooks and the inboxes of the broker: what is not noted yet must stay.
pub(super) struct Followers {
    webhooks: Arc<Webhooks>,
    broker: Arc<BrokerStore>,
}

impl Followers {
    pub(super) fn of(storage: &Opened) -> Self {
        Self {
            webhooks: storage.webhooks.clone(),
            broker: storage.broker.clone(),
        }
    }
}

#[async_trait]
impl Follower for Followers {
    async fn position(&self) -> Result<Position, Unknown> {
        let state = self.webhooks.state().await;
        let state = state.map_err(|error| Unknown(error.into()))?;
        let inboxes = self.broker.position().await;
        let inboxes = inboxes.map_err(|error| Unknown(error.into()))?;
        Ok(state.position.unwrap_or(0).min(inboxes))
    }
}

/// A storage without a server.
pub struct Alone {
    /// What archives.
    pub retention: Retention,
    flows: Arc<Flows>,
    storage: Opened,
    stop: CancellationToken,
    services: TaskTracker,
}

impl Alone {
    /// Opens it. Nothing that was running goes on.
    ///
    /// # Errors
    /// [`StartError`]; of a database also when servers run on it.
    pub async fn open(storage: &Storage, clock: SharedClock) -> Result<Self, StartError> {
        let opened = Opened::open(
            &storage.clone().into(),
            clock.clone(),
            None,
            OlderLog::Refuse,
        )
        .await?;
        let ready = Self::start(opened, clock).await;
        match ready {
            Ok(alone) => Ok(alone),
            Err((opened, error)) => {
                opened.close().await;
                Err(error)
            }
        }
    }

    async fn start(storage: Opened, clock: SharedClock) -> Result<Self, (Opened, StartError)> {
        let (ownership, projecting) = match Self::prepare(&storage).await {
            Ok(prepared) => prepared,
            Err(error) => return Err((storage, error)),
        };
        let (service, projections) = projecting;
        let (store, queries) = (storage.store.clone(), storage.queries.clone());
        let stop = CancellationToken::new();
        let services = TaskTracker::new();
        services.spawn(service.run(stop.child_token()));
        let outbox =
            Outbox::new(store.clone(), storage.webhooks.clone()).wording(Arc::new(Reports));
        services.spawn(outbox.run(stop.child_token()));
        let inboxes = broker::Follower {
            log: store.clone(),
            store: storage.broker.clone(),
        };
        services.spawn(inboxes.run(stop.child_token()));
        let (flows, _) = Flows::new(flows::Parts {
            store: store.clone(),
            clock: clock.clone(),
            executors: Arc::new(Nothing),
            renewals: Arc::new(StoredRenewals(storage.workers.clone())),
            // It gives nothing out.
            tickets: None,
            rows: Arc::new(RowCache::new(rows::BYTES_MAX)),
            positions: Arc::new(Positions::after(*store.watch().borrow())),
            ownership,
            idle_bytes_max: flows::IDLE_BYTES_MAX,
            stop: stop.clone(),
        });
        flows.set_attempts(Arc::new(Nothing));
        let audit = AuditLog::new(storage.auth.clone(), clock.clone());
        let retention = Retention {
            by: By::operator(),
            audit: Some(Arc::new(audit)),
            store,
            flows: flows.clone(),
            queries,
            projections,
            follower: Arc::new(Followers::of(&storage)),
            forget: Arc::new(|_| ()),
            clock,
        };
        Ok(Self {
            retention,
            flows,
            storage,
            stop,
            services,
        })
    }

    async fn prepare(
        storage: &Opened,
    ) -> Result<(Arc<dyn Ownership>, (runner::Service, runner::Handle)), StartError> {
        let (store, queries) = (storage.store.clone(), storage.queries.clone());
        let fence = match &storage.cluster {
            Some(cluster) => {
                let servers = cluster.living().await?;
                if servers > 0 {
                    return Err(StartError::Nodes(nodes::Error::InUse { servers }));
                }
                // A server that starts meanwhile is told by the version check.
                None
            }
            None => Some(Fence {
                name: Arc::from("writer"),
                token: store.raise_fence("writer").await?,
            }),
        };
        let options = runner::Options::of_one_server();
        let projecting = runner::Service::new(store, queries, options).await?;
        Ok((Arc::new(Sole(fence)), projecting))
    }

    /// Waits until the read models show all of the log, in which flows are found.
    ///
    /// # Errors
    /// [`StartError`]: they cannot.
    pub async fn catch_up(&self) -> Result<(), StartError> {
        let head = self.retention.store.head().await?;
        loop {
            match self
                .retention
                .projections
                .wait_for(head, CATCH_UP_STEP)
                .await
            {
                Ok(()) => return Ok(()),
                Err(lagging) if lagging.stopped => return Err(StartError::Behind(lagging)),
                Err(_) => {}
            }
        }
    }

    /// Lets go of everything, the log last.
    pub async fn close(self) {
        self.flows.drain().await;
        self.stop.cancel();
        self.services.close();
        self.services.wait().await;
        self.storage.close().await;
    }
}

/// Runs nothing and knows nothing.
#[derive(Debug)]
struct Nothing;

impl Executors for Nothing {
    fn snapshot(&self) -> Arc<dyn ExecutorSnapshot> {
        Arc::new(Self)
    }
    fn changes(&self) -> watch::Receiver<u64> {
        watch::channel(1).1
    }
}

impl ExecutorSnapshot for Nothing {
    fn number(&self) -> u64 {
        1
    }
    fn knows(&self, _: &str) -> bool {
        false
    }

    fn is_idempotent(&self, _: &str) -> bool {
        false
    }

    fn canonical_name<'a>(&'a self, method: &'a str) -> &'a str {
        method
    }

    fn slot_limit(&self, _: &str) -> usize {
        0
    }

    fn input_schema(&self, _: &str) -> Option<Arc<CompiledSchema>> {
        None
    }
}

impl Attempts for Nothing {
    fn launch(&self, _: Started) {}

    fn stop(&self, _: FlowId, _: TaskId, _: u32) {}

    fn alive(&self, _: FlowId) -> Vec<(TaskId, u32)> {
        Vec::new()
    }

    fn forsake(&self, _: &Partitions) {}

    fn forsake_flow(&self, _: FlowId) {}

    fn partitions(&self) -> Partitions {
        Partitions::default()
    }
}

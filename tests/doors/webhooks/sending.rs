//! A worker that sends through the guarded client, from deliveries in memory.

use axum::body::Bytes;
use std::sync::Arc;
use std::time::Duration;
use taskledger::clock::{Clock, SystemClock};
use taskledger::egress::{self, Egress, Policy, SystemLookup};
use taskledger::webhooks::delivery::{DeliveryId, Key, Secret};
use taskledger::webhooks::endpoint::EndpointId;
use taskledger::webhooks::memory::{Delivery, MemoryDeliveries, MemoryOwners, State};
use taskledger::webhooks::worker::{Counts, Handle, Options, Parts, Service};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// For something that is awaited, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// The limit of an attempt; the shortest there is.
pub(crate) const LIMIT: Duration = Duration::from_secs(1);

/// A running worker that may call 127.0.0.1 and nobody else.
pub(crate) struct Sending {
    pub(crate) store: Arc<MemoryDeliveries>,
    clock: Arc<SystemClock>,
    handle: Handle,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Sending {
    pub(crate) fn start() -> Self {
        let policy = Policy {
            allow_nets: vec!["127.0.0.1/32".parse().unwrap()],
            ..Policy::default()
        };
        let nobody = SystemLookup::of_server("127.0.0.1:9".parse().unwrap()).unwrap();
        let egress = Egress::new(egress::Options::new(policy, Arc::new(nobody))).unwrap();
        let (store, clock) = (
            Arc::<MemoryDeliveries>::default(),
            Arc::<SystemClock>::default(),
        );
        let parts = Parts {
            deliveries: store.clone(),
            owners: Arc::<MemoryOwners>::default(),
            sender: Arc::new(egress),
            clock: clock.clone(),
        };
        let options = Options {
            timeout: LIMIT,
            per_host_max: 64,
            ..Options::default()
        };
        let (service, handle) = Service::new(parts, options);
        let stop = CancellationToken::new();
        let task = tokio::spawn(service.run(stop.clone()));
        Self {
            store,
            clock,
            handle,
            stop,
            task,
        }
    }

    /// A new endpoint with these keys.
    pub(crate) fn endpoint(&self, url: &str, keys: &[&str]) -> EndpointId {
        let id = EndpointId(self.clock.uuid());
        let key = |secret: &&str| Key {
            secret: Secret(Arc::from(*secret)),
            expires_at: None,
        };
        self.store
            .add_endpoint(id, url, keys.iter().map(key).collect());
        id
    }

    /// A message that is due, with a body.
    pub(crate) fn message(&self, endpoint: EndpointId, body: &'static [u8]) -> DeliveryId {
        // Not yet due while it has no body.
        let later = self.clock.now().plus_ms(3_600_000);
        let id = self.store.add_message(endpoint, None, later);
        self.store.change_delivery(id, |delivery| {
            delivery.body = Some(Bytes::from_static(body));
            delivery.next_at = self.clock.now();
        });
        self.store.tell();
        id
    }

    /// Waits until so many attempts of a delivery are in its log.
    pub(crate) async fn tried(&self, id: DeliveryId, times: usize) -> Delivery {
        let waiting = async {
            while self.store.delivery(id).log.len() < times {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            panic!("{times} attempts: {:?}", self.store.delivery(id));
        }
        self.store.delivery(id)
    }

    /// What was counted, once everything is recorded.
    pub(crate) async fn end(self) -> Counts {
        self.stop.cancel();
        self.task.await.unwrap();
        self.handle.counts()
    }
}

/// Whether a delivery has arrived, and the status and the class that its last attempt shows.
pub(crate) fn shown(delivery: &Delivery) -> (bool, Option<u16>, Option<&'static str>) {
    let last = delivery.log.last().expect("it was tried");
    (delivery.state == State::Delivered, last.status, last.error)
}

//! Deliveries in memory, for tests: the plainest implementation of [`Deliveries`].
//!
//! Owns nothing that lasts. It can be made to fail, and shows everything that it was told.

pub use super::delivery::DeliveryState as State;
use super::delivery::{
    Attempt, AttemptReport, Cause, Deliveries, DeliveryId, Due, Health, Key, Lease, Leased, Next,
    Recorded, Secret, Unavailable,
};
use super::endpoint::{DisabledReason, EndpointId, EventName, Ordering};
use super::owners::{Owner, Owners};
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use taskledger_domain::{FlowId, TaskId, Timestamp};
use tokio::sync::Notify;
use uuid::Uuid;

/// An endpoint and who holds it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Where to send.
    pub url: Arc<str>,
    /// The user that owns it; `None`: nobody.
    pub owner: Option<Arc<str>>,
    /// Headers of its own.
    pub headers: Vec<(Arc<str>, Secret)>,
    /// Keys, the newest first.
    pub keys: Vec<Key>,
    /// Which messages wait for earlier ones.
    pub ordering: Ordering,
    /// A schedule of its own.
    pub schedule: Option<Arc<[u32]>>,
    /// How it fares.
    pub health: Health,
    /// It gets nothing.
    pub disabled: Option<DisabledReason>,
    token: i64,
    held_until: Option<Timestamp>,
}

/// A delivery and its log.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The endpoint that it is sent to.
    pub endpoint: EndpointId,
    /// About what.
    pub task: Option<TaskId>,
    /// The flow that it is about, if it is about one.
    pub flow: Option<FlowId>,
    /// What is sent; `None`: the delivery's number.
    pub body: Option<Bytes>,
    /// Where it stands.
    pub state: State,
    /// Not before this time.
    pub next_at: Timestamp,
    /// Attempts of the schedule so far.
    pub attempts: u32,
    /// Asked for by hand, and not tried since.
    pub by_hand: bool,
    /// Every attempt.
    pub log: Vec<Attempt>,
}

#[derive(Debug, Default)]
struct Rows {
    endpoints: BTreeMap<EndpointId, Endpoint>,
    deliveries: BTreeMap<DeliveryId, Delivery>,
    said: Vec<(EndpointId, EventName)>,
    fenced: usize,
    unavailable: bool,
}

/// [`Owners`] without a log, for tests; `Default` knows no flow.
#[derive(Debug, Default)]
pub struct MemoryOwners {
    flows: Mutex<HashMap<FlowId, Owner>>,
    unavailable: AtomicBool,
}

impl MemoryOwners {
    /// From now on the flow is this user's.
    pub fn give(&self, flow: FlowId, user: &str) {
        self.flows().insert(flow, Owner::User(Arc::from(user)));
    }

    /// Whether every question fails.
    pub fn set_unavailable(&self, unavailable: bool) {
        self.unavailable.store(unavailable, Relaxed);
    }

    fn flows(&self) -> MutexGuard<'_, HashMap<FlowId, Owner>> {
        self.flows
            .lock()
            .expect("no code panics while it holds the owners")
    }
}

#[async_trait]
impl Owners for MemoryOwners {
    async fn of(&self, flow: FlowId) -> Result<Owner, Unavailable> {
        match self.unavailable.load(Relaxed) {
            true => Err(Unavailable("it was made to fail".to_owned())),
            false => Ok(self.flows().get(&flow).cloned().unwrap_or(Owner::Unknown)),
        }
    }
}

/// [`Deliveries`] without a database, for tests; `Default` has no endpoint.
#[derive(Debug, Default)]
pub struct MemoryDeliveries {
    rows: Mutex<Rows>,
    changed: Notify,
}

impl MemoryDeliveries {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows
            .lock()
            .expect("no code panics while it holds the rows")
    }

    fn available(&self) -> Result<MutexGuard<'_, Rows>, Unavailable> {
        let rows = self.rows();
        match rows.unavailable {
            true => Err(Unavailable("it was made to fail".to_owned())),
            false => Ok(rows),
        }
    }

    /// Adds an endpoint.
    pub fn add_endpoint(&self, id: EndpointId, url: &str, keys: Vec<Key>) {
        let endpoint = Endpoint {
            url: Arc::from(url),
            owner: None,
            headers: Vec::new(),
            keys,
            ordering: Ordering::default(),
            schedule: None,
            health: Health::default(),
            disabled: None,
            token: 0,
            held_until: None,
        };
        self.rows().endpoints.insert(id, endpoint);
    }

    /// Changes an endpoint, which exists; nobody is told.
    pub fn change(&self, id: EndpointId, change: impl FnOnce(&mut Endpoint)) {
        change(
            self.rows()
                .endpoints
                .get_mut(&id)
                .expect("the endpoint exists"),
        );
    }

    /// Deletes an endpoint and its deliveries.
    pub fn delete(&self, id: EndpointId) {
        let mut rows = self.rows();
        rows.endpoints.remove(&id);
        rows.deliveries
            .retain(|_, delivery| delivery.endpoint != id);
    }

    /// Adds a message that is due at `at`. It has the delivery's number as its body and in its name.
    pub fn add_message(
        &self,
        endpoint: EndpointId,
        task: Option<TaskId>,
        at: Timestamp,
    ) -> DeliveryId {
        let mut rows = self.rows();
        let last = rows.deliveries.last_key_value();
        let id = DeliveryId(last.map_or(1, |(id, _)| id.0 + 1));
        let delivery = Delivery {
            endpoint,
            task,
            flow: None,
            body: None,
            state: State::Waiting,
            next_at: at,
            attempts: 0,
            by_hand: false,
            log: Vec::new(),
        };
        rows.deliveries.insert(id, delivery);
        drop(rows);
        self.tell();
        id
    }

    /// Changes a delivery, which exists; nobody is told.
    pub fn change_delivery(&self, id: DeliveryId, change: impl FnOnce(&mut Delivery)) {
        let mut rows = self.rows();
        let delivery = rows.deliveries.get_mut(&id);
        change(delivery.expect("the delivery exists"));
    }

    /// Asks for one more attempt by hand.
    pub fn redeliver(&self, id: DeliveryId) {
        let mut rows = self.rows();
        rows.deliveries
            .get_mut(&id)
            .expect("the delivery exists")
            .by_hand = true;
        drop(rows);
        self.tell();
    }

    /// Something may be due.
    pub fn tell(&self) {
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// Whether every call fails.
    pub fn set_unavailable(&self, unavailable: bool) {
        self.rows().unavailable = unavailable;
    }

    /// Everybody's leases are somebody else's now.
    pub fn fence_all(&self) {
        self.rows()
            .endpoints
            .values_mut()
            .for_each(|e| e.token += 1);
    }

    /// A delivery, which exists.
    pub fn delivery(&self, id: DeliveryId) -> Delivery {
        self.rows()
            .deliveries
            .get(&id)
            .expect("the delivery exists")
            .clone()
    }

    /// All deliveries.
    pub fn deliveries(&self) -> BTreeMap<DeliveryId, Delivery> {
        self.rows().deliveries.clone()
    }

    /// An endpoint, which exists.
    pub fn endpoint(&self, id: EndpointId) -> Endpoint {
        self.rows()
            .endpoints
            .get(&id)
            .expect("the endpoint exists")
            .clone()
    }

    /// What was said of endpoints.
    pub fn said(&self) -> Vec<(EndpointId, EventName)> {
        self.rows().said.clone()
    }

    /// Calls that showed an old lease.
    pub fn fenced(&self) -> usize {
        self.rows().fenced
    }

    /// Endpoints that somebody holds.
    pub fn held(&self) -> usize {
        let rows = self.rows();
        rows.endpoints
            .values()
            .filter(|e| e.held_until.is_some())
            .count()
    }
}

impl Rows {
    /// What could be sent to an endpoint, with its time, in order.
    fn ready(&self, id: EndpointId, endpoint: &Endpoint) -> Vec<(DeliveryId, Timestamp)> {
        let mut earlier = BTreeSet::new();
        let mut ready = Vec::new();
        for (delivery, row) in self.deliveries.iter().filter(|(_, d)| d.endpoint == id) {
            if row.by_hand {
                ready.push((*delivery, row.next_at.min(Timestamp(0))));
            } else if row.state == State::Waiting {
                let key = match endpoint.ordering {
                    Ordering::None => None,
                    Ordering::Task => row.task.map(Some),
                    Ordering::Endpoint => Some(None),
                };
                if key.is_none_or(|key| earlier.insert(key)) {
                    ready.push((*delivery, row.next_at));
                }
            }
        }
        ready
    }

    /// When an endpoint has to be looked at.
    fn next_at(&self, id: EndpointId, endpoint: &Endpoint) -> Option<Timestamp> {
        let ready = self.ready(id, endpoint).into_iter().map(|(_, at)| at);
        let at = ready.min().filter(|_| endpoint.disabled.is_none())?;
        Some(endpoint.health.open_until.map_or(at, |until| until.max(at)))
    }

    /// The endpoint of a lease that is still good.
    fn leased(&mut self, lease: &Lease) -> Result<&mut Endpoint, Recorded> {
        match self.endpoints.get_mut(&lease.endpoint) {
            None => Err(Recorded::Gone),
            Some(endpoint) if endpoint.token != lease.token => {
                self.fenced += 1;
                Err(Recorded::Fenced)
            }
            Some(endpoint) => Ok(endpoint),
        }
    }
}

#[async_trait]
impl Deliveries for MemoryDeliveries {
    async fn lease(
        &self,
        _: Uuid,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Leased>, Unavailable> {
        let mut rows = self.available()?;
        let free = |e: &Endpoint| e.held_until.is_none_or(|held| held <= now);
        let mut due: Vec<_> = rows
            .endpoints
            .iter()
            .filter(|(_, e)| free(e))
            .filter_map(|(id, e)| Some((rows.next_at(*id, e)?, *id)))
            .filter(|(at, _)| *at <= now)
            .collect();
        due.sort_unstable();
        due.truncate(limit);
        let mut taken = Vec::new();
        for (_, id) in due {
            let endpoint = rows.endpoints.get_mut(&id).expect("it was just found");
            endpoint.token += 1;
            endpoint.held_until = Some(until);
            taken.push(Leased {
                lease: Lease {
                    endpoint: id,
                    token: endpoint.token,
                },
                url: endpoint.url.clone(),
                owner: endpoint.owner.clone(),
                headers: endpoint.headers.clone(),
                keys: endpoint.keys.clone(),
                ordering: endpoint.ordering,
                schedule: endpoint.schedule.clone(),
                content_type: None,
                health: endpoint.health,
            });
        }
        Ok(taken)
    }

    async fn renew(&self, leases: &[Lease], until: Timestamp) -> Result<Vec<bool>, Unavailable> {
        let mut rows = self.available()?;
        let mut keep = |lease| match rows.leased(lease) {
            Ok(endpoint) => {
                endpoint.held_until = Some(until);
                true
            }
            Err(_) => false,
        };
        Ok(leases.iter().map(&mut keep).collect())
    }

    async fn due(
        &self,
        lease: &Lease,
        now: Timestamp,
        under_way: &[DeliveryId],
        limit: usize,
    ) -> Result<Vec<Due>, Unavailable> {
        let mut rows = self.available()?;
        let Ok(endpoint) = rows.leased(lease).cloned() else {
            return Ok(Vec::new());
        };
        if endpoint.disabled.is_some() {
            return Ok(Vec::new());
        }
        let ready = rows.ready(lease.endpoint, &endpoint).into_iter();
        let ready = ready.filter(|(id, at)| *at <= now && !under_way.contains(id));
        let due = ready.take(limit).map(|(id, _)| {
            let row = &rows.deliveries[&id];
            Due {
                id,
                message_id: Arc::from(format!("msg_{}", id.0)),
                task: row.task,
                flow: row.flow,
                body: row.body.clone().unwrap_or_else(|| id.0.to_string().into()),
                attempts: row.attempts,
                cause: if row.by_hand {
                    Cause::Manual
                } else {
                    Cause::Scheduled
                },
                traceparent: None,
            }
        });
        Ok(due.collect())
    }

    async fn record(&self, lease: &Lease, told: AttemptReport) -> Result<Recorded, Unavailable> {
        let mut rows = self.available()?;
        let known = rows.deliveries.contains_key(&told.delivery);
        match rows.leased(lease) {
            Err(refused) => return Ok(refused),
            Ok(_) if !known => return Ok(Recorded::Gone),
            Ok(endpoint) => {
                endpoint.health = told.health;
                endpoint.disabled = endpoint.disabled.or(told.disable);
            }
        }
        rows.said.extend(told.say.map(|say| (lease.endpoint, say)));
        let Some(row) = rows.deliveries.get_mut(&told.delivery) else {
            return Ok(Recorded::Gone);
        };
        if told.attempt.cause.by_hand() {
            row.by_hand = false;
        } else if told.next != Next::Unchanged {
            row.attempts += 1;
        }
        match told.next {
            Next::Delivered => row.state = State::Delivered,
            Next::RetryAt(at) => row.next_at = at,
            Next::Dead => row.state = State::Dead,
            Next::Unchanged => {}
        }
        row.log.push(told.attempt);
        Ok(Recorded::Yes)
    }

    async fn release(&self, lease: &Lease) -> Result<(), Unavailable> {
        if let Ok(endpoint) = self.available()?.leased(lease) {
            endpoint.held_until = None;
        }
        Ok(())
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, Unavailable> {
        let rows = self.available()?;
        let free = rows
            .endpoints
            .iter()
            .filter(|(_, e)| e.held_until.is_none());
        Ok(free.filter_map(|(id, e)| rows.next_at(*id, e)).min())
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }
}

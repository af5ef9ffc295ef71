//! The calls about webhooks: endpoints, their secrets, and deliveries.
//!
//! Owns: the rules that need more than the call itself (which receivers are allowed, which ids exist), and
//! what is shown of an endpoint. Secrets and values of headers are shown by [`Webhooks::create`],
//! [`Webhooks::rotate`] and [`Webhooks::secret`] alone. May not: know JSON-RPC, SQL.

mod checks;
mod counts;
mod reports;
mod view;

pub use checks::no_such_flow;
use checks::{is_disabled, too_many_secrets};
pub use view::{Deliveries, Listed, Page, Secrets, Tested, View, WithSecret};

use super::delivery::{DeliveryState, Secret};
use super::endpoint::{Endpoint, EndpointId, EventName, Filter, Life, Ordering};
use super::secret::{self, Signature};
use super::store::{
    self, Change, Created, DeliveryFilter, New, OLD_KEYS_MAX, Recover, Redelivered, Rotated, Store,
};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::task::Selector;
use taskledger_domain::{FlowId, Timestamp, Violation};
use taskledger_log::EventStore;
use taskledger_net::egress::Policy;
use taskledger_sealing::KeysError;
use tokio::time::{Instant, sleep};

/// How long a test is waited for: longer than an attempt takes by default, shorter than a call may.
const TEST_WAIT: Duration = Duration::from_secs(20);
/// Pause between two looks at it; another server may make the attempt.
const TEST_LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller can mend it.
    #[error("{}", .0.first().map_or("refused", |v| v.reason.as_str()))]
    Invalid(Vec<Violation>),
    /// There is no such endpoint, or no such delivery: the member that names it.
    #[error("`{0}` names nothing")]
    Unknown(&'static str),
    /// The log does not say where it ends.
    #[error(transparent)]
    Log(#[from] taskledger_log::Error),
    /// We must mend it.
    #[error(transparent)]
    Store(store::Error),
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Keys(error @ KeysError::None) => Self::Invalid(vec![Violation::of(
                "secret",
                "this server cannot keep secrets",
                error.to_string(),
                &Value::Null,
            )]),
            other @ (store::Error::Database(_)
            | store::Error::Late
            | store::Error::Damaged(_)
            | store::Error::Keys(_)) => Self::Store(other),
        }
    }
}

/// Carries out the methods `webhooks.*`, one function each, for whoever is allowed to call them.
#[derive(Debug)]
pub struct Webhooks {
    store: Arc<Store>,
    log: Arc<dyn EventStore>,
    policy: Arc<Policy>,
}

/// An endpoint to be made.
#[derive(Debug, Clone)]
pub struct NewWebhook {
    /// The caller's own id, or a fresh one.
    pub id: Option<EndpointId>,
    /// Where to send.
    pub url: String,
    /// Free text for people.
    pub description: Option<String>,
    /// The user that will own it; `None`: nobody.
    pub owner: Option<Arc<str>>,
    /// What to send.
    pub filter: Filter,
    /// Which messages wait for earlier ones.
    pub ordering: Ordering,
    /// Seconds before each attempt.
    pub schedule: Option<Arc<[u32]>>,
    /// Headers of its own.
    pub headers: Vec<(Arc<str>, Secret)>,
    /// The caller's own secret.
    pub secret: Option<Secret>,
    /// How a fresh one signs.
    pub signature: Signature,
}

/// The changes of an endpoint; `None`: it stays.
#[derive(Debug, Clone, Default)]
pub struct WebhookChange {
    /// Where to send.
    pub url: Option<String>,
    /// Free text for people.
    pub description: Option<String>,
    /// Which events; `Some(None)`: everything about tasks.
    pub events: Option<Option<Arc<[EventName]>>>,
    /// Which flow; `Some(None)`: any.
    pub flow: Option<Option<FlowId>>,
    /// The user whose flows it is about; `Some(None)`: all users.
    pub user: Option<Option<Arc<str>>>,
    /// Which labels its tasks must have; an empty one: none.
    pub labels: Option<Selector>,
    /// Which messages wait for earlier ones.
    pub ordering: Option<Ordering>,
    /// Seconds before each attempt; `Some(None)`: the server's.
    pub schedule: Option<Option<Arc<[u32]>>>,
    /// All headers of its own.
    pub headers: Option<Vec<(Arc<str>, Secret)>>,
}

impl Webhooks {
    /// Webhooks of what this log says, to receivers that the policy allows.
    #[must_use]
    pub fn new(store: Arc<Store>, log: Arc<dyn EventStore>, policy: Arc<Policy>) -> Self {
        Self { store, log, policy }
    }

    /// The store of endpoints and deliveries.
    #[must_use]
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    fn now(&self) -> Timestamp {
        self.store.clock().now()
    }

    fn shown(&self, endpoint: Endpoint) -> View {
        View::of(endpoint, self.now())
    }

    /// `webhooks.create`
    ///
    /// # Errors
    /// [`Error`].
    pub async fn create(&self, new: NewWebhook) -> Result<WithSecret, Error> {
        let url = self.allowed(&["url".into()], &new.url)?;
        if let Some(flow) = new.filter.flow {
            self.exists(flow).await?;
        }
        if let Some(secret) = &new.secret {
            self.is_its_own(secret, new.owner.as_ref()).await?;
        }
        let clock = self.store.clock();
        let secret = new
            .secret
            .unwrap_or_else(|| secret::fresh(clock, new.signature));
        let new = New {
            id: new.id.unwrap_or_else(|| EndpointId(clock.uuid())),
            url,
            description: Arc::from(new.description.unwrap_or_default()),
            owner: new.owner,
            filter: new.filter,
            life: Life::Lasting,
            ordering: new.ordering,
            schedule: new.schedule,
            headers: new.headers,
            secret: Some(secret.clone()),
            reported: None,
        };
        let webhook = self.made(&new, "url").await?;
        Ok(WithSecret {
            webhook: self.shown(webhook),
            secret: secret.0.to_string(),
        })
    }

    async fn made(&self, new: &New, field: &str) -> Result<Endpoint, Error> {
        let head = self.log.head().await?;
        match self.store.create(new, head, self.now()).await? {
            Created::Yes(endpoint) => Ok(*endpoint),
            Created::Full(max) => {
                let expected = format!("at most {max}; delete one first");
                let fault = Violation::of(field, "too many webhooks", expected, &max.into());
                Err(Error::Invalid(vec![fault]))
            }
            Created::Taken => {
                let actual = Value::from(new.id.to_string());
                let fault = Violation::of("id", "Id is taken", "a new id, or none", &actual);
                Err(Error::Invalid(vec![fault]))
            }
        }
    }

    /// `webhooks.get`
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get(&self, id: EndpointId) -> Result<View, Error> {
        let found = self.store.get(id).await?;
        found.map(|it| self.shown(it)).ok_or(Error::Unknown("id"))
    }

    /// Refuses the endpoint of somebody else as if it did not exist. `owner`: who asks; `None`: somebody who
    /// manages all of them.
    ///
    /// # Errors
    /// [`Error::Unknown`]; [`Error::Store`].
    pub async fn is_owned(&self, owner: Option<&Arc<str>>, id: EndpointId) -> Result<(), Error> {
        let Some(owner) = owner else { return Ok(()) };
        let found = self.store.owner_of(id).await?;
        match found.flatten() {
            Some(found) if found == *owner => Ok(()),
            Some(_) | None => Err(Error::Unknown("id")),
        }
    }

    /// `webhooks.list`, of this owner or all; `after` is the cursor of the page before.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list(
        &self,
        owner: Option<&Arc<str>>,
        after: i64,
        limit: usize,
    ) -> Result<Page<Listed>, Error> {
        let mut rows = self.store.list(owner, after, limit + 1).await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().map(|(no, _)| no.to_string());
        let webhooks = rows.into_iter().map(|(_, it)| self.shown(it)).collect();
        Ok(Page {
            rows: Listed { webhooks },
            next_cursor: last.filter(|_| more),
        })
    }

    /// `webhooks.update`
    ///
    /// # Errors
    /// [`Error`].
    pub async fn update(&self, id: EndpointId, change: WebhookChange) -> Result<View, Error> {
        let url = match &change.url {
            Some(url) => Some(self.allowed(&["url".into()], url)?),
            None => None,
        };
        if let Some(Some(flow)) = change.flow {
            self.exists(flow).await?;
        }
        let change = Change {
            url,
            description: change.description.map(Arc::from),
            events: change.events,
            flow: change.flow,
            user: change.user,
            labels: change.labels,
            ordering: change.ordering,
            schedule: change.schedule,
            headers: change.headers,
        };
        let changed = self.store.update(id, &change, self.now()).await?;
        changed.map(|it| self.shown(it)).ok_or(Error::Unknown("id"))
    }

    /// `webhooks.delete`: how many deliveries were cancelled.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete(&self, id: EndpointId) -> Result<u64, Error> {
        let deleted = self.store.delete(id, self.now()).await?;
        deleted.ok_or(Error::Unknown("id"))
    }

    /// `webhooks.enable`
    ///
    /// # Errors
    /// [`Error`].
    pub async fn enable(&self, id: EndpointId) -> Result<View, Error> {
        let enabled = self.store.enable(id, self.now()).await?;
        enabled.map(|it| self.shown(it)).ok_or(Error::Unknown("id"))
    }

    /// `webhooks.disable`
    ///
    /// # Errors
    /// [`Error`].
    pub async fn disable(&self, id: EndpointId) -> Result<View, Error> {
        let disabled = self.store.disable(id, self.now()).await?;
        disabled
            .map(|it| self.shown(it))
            .ok_or(Error::Unknown("id"))
    }

    /// `webhooks.rotate_secret`
    ///
    /// # Errors
    /// [`Error`].
    pub async fn rotate(
        &self,
        id: EndpointId,
        own: Option<Secret>,
        grace_seconds: u32,
    ) -> Result<WithSecret, Error> {
        let before = self.store.get(id).await?.ok_or(Error::Unknown("id"))?;
        let signature = match before.public_key {
            Some(_) => Signature::Pair,
            None => Signature::Shared,
        };
        if let Some(own) = &own {
            self.is_its_own(own, before.owner.as_ref()).await?;
        }
        let secret = own.unwrap_or_else(|| secret::fresh(self.store.clock(), signature));
        let now = self.now();
        let old_until = Timestamp(now.0 + i64::from(grace_seconds) * 1_000_000);
        match self.store.rotate(id, &secret, old_until, now).await? {
            Rotated::Yes(webhook) => Ok(WithSecret {
                webhook: self.shown(*webhook),
                secret: secret.0.to_string(),
            }),
            Rotated::Full { until } => Err(too_many_secrets(id, OLD_KEYS_MAX, until)),
            Rotated::Unknown => Err(Error::Unknown("id")),
        }
    }

    /// `webhooks.secret`. Who has asked is logged.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn secret(
        &self,
        id: EndpointId,
        principal: &str,
        correlation: &str,
    ) -> Result<Secrets, Error> {
        let keys = self.store.signing_keys(id, self.now()).await?;
        let mut keys = keys.ok_or(Error::Unknown("id"))?.into_iter();
        let present = keys.next().ok_or(Error::Unknown("id"))?;
        tracing::info!(
            endpoint.id = %id,
            principal,
            request.id = correlation,
            "the secret of a webhook was read"
        );
        Ok(Secrets {
            id,
            public_key: secret::public(&present.secret),
            secret: present.secret.0.to_string(),
            old: keys
                .map(|key| view::OldSecret {
                    secret: key.secret.0.to_string(),
                    expires_at: key.expires_at,
                })
                .collect(),
        })
    }

    /// `webhooks.test`: sends once, and tells what came of it, or after a while what it waits for.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn test(&self, id: EndpointId) -> Result<Tested, Error> {
        let found = self.store.get(id).await?.ok_or(Error::Unknown("id"))?;
        if found.disabled.is_some() {
            return Err(is_disabled("id", &Value::from(id.to_string())));
        }
        let made = self.store.test(id, self.now()).await?;
        let delivery = made.ok_or(Error::Unknown("id"))?;
        let begun = Instant::now();
        loop {
            let tested = self.tested(delivery).await?;
            let goes_on = tested.state == DeliveryState::Waiting && tested.waits_for.is_none();
            if !goes_on || begun.elapsed() >= TEST_WAIT {
                return Ok(tested);
            }
            sleep(TEST_LOOK_EVERY).await;
        }
    }

    async fn tested(&self, delivery: i64) -> Result<Tested, Error> {
        let filter = DeliveryFilter {
            below: Some(delivery.saturating_add(1)),
            ..DeliveryFilter::default()
        };
        let newest = self.store.deliveries(&filter, 1).await?.pop();
        let found = newest.filter(|view| view.id == delivery);
        found.map(Tested::from).ok_or(Error::Unknown("id"))
    }

    /// `webhooks.deliveries`
    ///
    /// # Errors
    /// [`Error`].
    pub async fn deliveries(
        &self,
        filter: &DeliveryFilter,
        limit: usize,
    ) -> Result<Page<Deliveries>, Error> {
        if let Some(id) = filter.endpoint
            && !self.store.knew(id).await?
        {
            return Err(Error::Unknown("id"));
        }
        let mut deliveries = self.store.deliveries(filter, limit + 1).await?;
        let more = deliveries.len() > limit;
        deliveries.truncate(limit);
        let last = deliveries.last().map(|view| view.id.to_string());
        Ok(Page {
            rows: Deliveries { deliveries },
            next_cursor: last.filter(|_| more),
        })
    }

    /// Refuses a delivery to the endpoint of somebody else as if it did not exist.
    ///
    /// # Errors
    /// [`Error::Unknown`]; [`Error::Store`].
    pub async fn is_delivered_for(
        &self,
        owner: Option<&Arc<str>>,
        delivery: i64,
    ) -> Result<(), Error> {
        let Some(owner) = owner else { return Ok(()) };
        let filter = DeliveryFilter {
            owner: Some(owner.clone()),
            below: Some(delivery.saturating_add(1)),
            ..DeliveryFilter::default()
        };
        let newest = self.store.deliveries(&filter, 1).await?.pop();
        match newest {
            Some(view) if view.id == delivery => Ok(()),
            Some(_) | None => Err(Error::Unknown("delivery_id")),
        }
    }

    /// `webhooks.redeliver`: the delivery. `scope`: whose the key is; keys of different callers are different.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn redeliver(
        &self,
        delivery: i64,
        request_key: Option<Arc<str>>,
        scope: Option<&str>,
    ) -> Result<i64, Error> {
        let key = request_key.as_deref().map_or(Value::Null, Value::from);
        let scoped = request_key.map(|key| match scope {
            Some(scope) => Arc::from(format!("{scope}\u{1f}{key}")),
            None => key,
        });
        let done = self.store.redeliver(delivery, scoped, self.now());
        match done.await? {
            Redelivered::Queued(id) => Ok(id),
            Redelivered::Already(id) if id == delivery => Ok(id),
            Redelivered::Already(id) => Err(Error::Invalid(vec![Violation::of(
                "request_key",
                format!("used for delivery {id} already"),
                "a key of its own for each delivery",
                &key,
            )])),
            Redelivered::Unknown => Err(Error::Unknown("delivery_id")),
            Redelivered::Disabled => Err(is_disabled("delivery_id", &delivery.into())),
        }
    }

    /// `webhooks.recover`: how many deliveries begin anew.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn recover(&self, id: EndpointId, which: Recover) -> Result<u64, Error> {
        let done = self.store.recover(id, which, self.now()).await?;
        done.ok_or(Error::Unknown("id"))
    }
}

//! Views of endpoints and deliveries.

use crate::breaker;
use crate::delivery::DeliveryState;
use crate::endpoint::{DisabledReason, Endpoint, EndpointId, EventName, KeyTimes, Life, Ordering};
use crate::secret::Signature;
use crate::store::{AttemptView, DeliveryView, WaitsFor};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use taskledger_domain::task::Selector;
use taskledger_domain::{FlowId, Timestamp};

/// Stands for what is not shown.
const HIDDEN: &str = "***";

/// An endpoint as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct View {
    id: EndpointId,
    url: Arc<str>,
    description: Arc<str>,
    events: Option<Arc<[EventName]>>,
    flow_id: Option<FlowId>,
    user_id: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Selector::is_empty")]
    labels: Selector,
    /// `lasting`, or `run` for the callback of one execution.
    kind: &'static str,
    ordering: Ordering,
    schedule: Option<Arc<[u32]>>,
    headers: BTreeMap<Arc<str>, &'static str>,
    signature: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<Arc<str>>,
    enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled: Option<Disabled>,
    failing_since: Option<Timestamp>,
    breaker: Breaker,
    secrets: Vec<KeyTimes>,
    since: u64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Disabled {
    reason: DisabledReason,
    at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Breaker {
    state: &'static str,
    /// Failed attempts since the last one that arrived.
    failures: u32,
    /// Since when it lets nothing through.
    since: Option<Timestamp>,
    /// When the next attempt may be made, if not now.
    next_try_at: Option<Timestamp>,
}

impl Breaker {
    fn of(endpoint: &Endpoint, now: Timestamp) -> Self {
        let (state, since, next_try_at) = match breaker::state(&endpoint.health, now) {
            breaker::State::Closed => ("closed", None, None),
            breaker::State::Open { since, until } => ("open", Some(since), Some(until)),
            breaker::State::HalfOpen { since } => ("half_open", Some(since), None),
        };
        Self {
            state,
            failures: endpoint.health.failures,
            since,
            next_try_at,
        }
    }
}

/// The result of a test so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tested {
    pub(super) delivery_id: i64,
    pub(super) state: DeliveryState,
    pub(super) waits_for: Option<WaitsFor>,
    pub(super) next_at: Option<Timestamp>,
    /// The one attempt, if it was made.
    pub(super) attempt: Option<AttemptView>,
}

impl From<DeliveryView> for Tested {
    fn from(mut view: DeliveryView) -> Self {
        Self {
            delivery_id: view.id,
            state: view.state,
            waits_for: view.waits_for,
            next_at: view.next_at,
            attempt: view.log.pop(),
        }
    }
}

/// An endpoint with its secret, which is shown once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WithSecret {
    /// The endpoint without its secret.
    #[serde(flatten)]
    pub webhook: View,
    /// What signs from now on.
    pub secret: String,
}

/// The secrets of an endpoint, as they are shown to whoever asks for them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Secrets {
    pub(super) id: EndpointId,
    pub(super) secret: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) public_key: Option<String>,
    /// Old secrets that are still valid.
    pub(super) old: Vec<OldSecret>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct OldSecret {
    pub(super) secret: String,
    pub(super) expires_at: Option<Timestamp>,
}

/// A page of endpoints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page<T> {
    /// What is on it.
    #[serde(flatten)]
    pub rows: T,
    /// Where the next one begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// See [`Page`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listed {
    pub(super) webhooks: Vec<View>,
}

/// See [`Page`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Deliveries {
    pub(super) deliveries: Vec<DeliveryView>,
}

impl View {
    /// The endpoint as it is at `now`.
    pub(super) fn of(endpoint: Endpoint, now: Timestamp) -> Self {
        let breaker = Breaker::of(&endpoint, now);
        let signs = |times: &KeyTimes| times.expires_at.is_none_or(|until| until > now);
        let signature = match endpoint.public_key {
            Some(_) => Signature::Pair,
            None => Signature::Shared,
        };
        Self {
            id: endpoint.id,
            url: endpoint.url,
            description: endpoint.description,
            events: endpoint.filter.events,
            flow_id: endpoint.filter.flow,
            user_id: endpoint.filter.user,
            labels: endpoint.filter.labels,
            kind: match endpoint.life {
                Life::Lasting => "lasting",
                Life::Run(_) => "run",
            },
            ordering: endpoint.ordering,
            schedule: endpoint.schedule,
            headers: endpoint
                .header_names
                .into_iter()
                .map(|name| (name, HIDDEN))
                .collect(),
            signature: signature.as_str(),
            public_key: endpoint.public_key,
            enabled: endpoint.disabled.is_none(),
            disabled: endpoint
                .disabled
                .map(|(reason, at)| Disabled { reason, at }),
            failing_since: endpoint.health.failing_since,
            breaker,
            secrets: endpoint.key_times.into_iter().filter(signs).collect(),
            since: endpoint.since,
            created_at: endpoint.created_at,
            updated_at: endpoint.updated_at,
        }
    }
}

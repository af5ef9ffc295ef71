//! Endpoints: which notices are sent to which address.

use super::delivery::Health;
use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::Arc;
use taskledger_domain::task::Selector;
use taskledger_domain::{CallbackId, FlowId, Position, RunId, Timestamp};
use taskledger_subscription::notice::Kind;
use uuid::Uuid;

/// An endpoint. For the callback of one execution it is that callback's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct EndpointId(pub Uuid);

impl fmt::Display for EndpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<CallbackId> for EndpointId {
    fn from(id: CallbackId) -> Self {
        Self(id.0)
    }
}

/// The events that an endpoint can subscribe to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventName {
    /// A notice about a task.
    Task(Kind),
    /// How a run stands, or what it returns; sent to the receivers of its reports alone.
    Run,
    /// An endpoint keeps failing.
    EndpointFailing,
    /// An endpoint was disabled.
    EndpointDisabled,
    /// An endpoint that was failing works again.
    EndpointRecovered,
    /// Somebody tries an endpoint out; sent to that one alone, whatever it asks for.
    Test,
}

impl EventName {
    /// What becomes of endpoints: only for those that name it.
    pub const ABOUT_ENDPOINTS: [Self; 3] = [
        Self::EndpointFailing,
        Self::EndpointDisabled,
        Self::EndpointRecovered,
    ];

    /// The name, in filters and in the member `type` of what is sent.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Task(kind) => kind.as_str(),
            Self::Run => "run_update",
            Self::EndpointFailing => "webhook.endpoint.failing",
            Self::EndpointDisabled => "webhook.endpoint.disabled",
            Self::EndpointRecovered => "webhook.endpoint.recovered",
            Self::Test => "webhook.test",
        }
    }

    /// The event with this name, if endpoints can ask for it.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let about = Self::ABOUT_ENDPOINTS.into_iter();
        let all = Kind::ALL.into_iter().map(Self::Task).chain(about);
        let mut all = all;
        all.find(|event| event.as_str() == name)
    }
}

impl Serialize for EventName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The order in which messages are sent: which of them wait for earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ordering {
    /// Nothing waits.
    None,
    /// One notice of a task at a time, in order; tasks do not wait for each other.
    #[default]
    Task,
    /// One notice at a time, in order.
    Endpoint,
}

impl Ordering {
    /// The name in calls and in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Task => "task",
            Self::Endpoint => "endpoint",
        }
    }
}

/// The filter of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only these; `None`: everything about tasks.
    pub events: Option<Arc<[EventName]>>,
    /// Only this flow.
    pub flow: Option<FlowId>,
    /// Only flows of this user.
    pub user: Option<Arc<str>>,
    /// Only tasks with these labels.
    pub labels: Selector,
}

/// The lifetime of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Until it is deleted.
    Lasting,
    /// The callback of one execution: told of that run alone, gone when all of it has arrived or was
    /// given up. The run is known once the log shows that it has started.
    Run(Option<RunId>),
}

/// Why an endpoint gets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DisabledReason {
    /// Somebody asked for it.
    Requested,
    /// It answered 410.
    Gone,
    /// Nothing has arrived for days.
    Failing,
}

impl DisabledReason {
    /// The name in answers and in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Gone => "gone",
            Self::Failing => "failing",
        }
    }
}

/// The lifetime of a signing secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KeyTimes {
    /// Since when it signs.
    pub created_at: Timestamp,
    /// Until when; `None`: the present one.
    pub expires_at: Option<Timestamp>,
}

/// An endpoint as its owner sees it. Secrets and values of headers are not in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// Identifies the endpoint in later calls.
    pub id: EndpointId,
    /// Where to send.
    pub url: Arc<str>,
    /// Free text for people; empty when none was given.
    pub description: Arc<str>,
    /// The user that owns it; `None`: nobody.
    pub owner: Option<Arc<str>>,
    /// What to send.
    pub filter: Filter,
    /// How long it lives.
    pub life: Life,
    /// Which messages wait for earlier ones.
    pub ordering: Ordering,
    /// Seconds before each attempt, instead of the server's.
    pub schedule: Option<Arc<[u32]>>,
    /// Names of the headers of its own.
    pub header_names: Vec<Arc<str>>,
    /// Of each secret that signs, the newest first; none: nothing does.
    pub key_times: Vec<KeyTimes>,
    /// What receivers check signatures with, for a pair of keys; `None`: the secret that both know.
    pub public_key: Option<Arc<str>>,
    /// Events above this position are sent.
    pub since: Position,
    /// Why and since when it gets nothing; `None`: it is enabled.
    pub disabled: Option<(DisabledReason, Timestamp)>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its owner changed it last: its members, its secret, or whether it is enabled. What becomes
    /// of attempts does not count.
    pub updated_at: Timestamp,
    /// How it fares.
    pub health: Health,
}

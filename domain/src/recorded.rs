//! An event as the log holds it: the fact, its position and time, and who recorded it.

use crate::flow::Event;
use crate::{EventId, FlowId, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Place of an event in the whole log. Starts at 1, rises strictly in commit order. 0 = before the first.
pub type Position = u64;
/// Place of an event in its stream. Starts at 1, dense. 0 = the stream does not exist.
pub type Version = u64;

/// The actor that caused an event, and the ids of the request that it belongs to. Never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// The principal: `anonymous` while nobody is authenticated, `engine`, or `retention`.
    pub actor: Arc<str>,
    /// The id of the request that led here; kept by everything that follows from it.
    pub correlation: Arc<str>,
    /// The event that led here, when an earlier event did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causation: Option<EventId>,
    /// W3C `traceparent` of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Arc<str>>,
}

/// One entry of the log. The order within a flow is that of `version`.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Place in the log.
    pub position: Position,
    /// The flow whose history it belongs to.
    pub flow: FlowId,
    /// Place in the flow's stream.
    pub version: Version,
    /// Identity of the event.
    pub id: EventId,
    /// When the command was decided; rules use this time.
    pub time: Timestamp,
    /// When the log took it; never runs backwards along `position`.
    pub recorded_at: Timestamp,
    /// Who and why.
    pub metadata: Metadata,
    /// The event as it was decided.
    pub event: Arc<Event>,
}

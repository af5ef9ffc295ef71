//! The types that doors and the application exchange: plain requests, replies, views and errors.
//!
//! Nothing here knows a protocol. A door makes a [`Request`] from its own message, hands it to
//! [`Service`](super::service::Service) with a [`Context`](super::context::Context), and writes the
//! [`Reply`] in its own words. Requests and replies that concern a flow can be serialized, because they
//! travel between nodes (`routing`) and are kept under idempotency keys.

mod auth;
pub mod broker;
mod callback;
mod lineage;
mod recorded;
mod replies;
mod requests;
pub mod runs;
pub mod schedules;
mod system;
mod target;
mod use_case;
pub mod views;
mod watching;
pub mod webhooks;
pub mod work;
pub mod workflows;

pub use super::authentication::{Authenticate, Denied, Session};
pub use super::encoder::{Moment, TreeEncoder};
pub use super::error::{Error, Failure, Refused};
pub use super::events::{Cursor as EventsCursor, Page as EventsPage, Query as EventsQuery};
pub use super::explain::{
    ATTEMPTS_MAX, Ahead, AwaitedWorkers, Facts, Queue, SlotHolder, TaskEnd, TaskOutcome,
};
pub use super::history::{Cursor as HistoryCursor, EventType, Query as History, Scope};
pub use super::known_executors::KnownExecutors;
pub use super::limits::{EarlyTurn, Turn};
pub use super::naming::{CallNames, Index as NameIndex, TaskIds};
pub use super::past::{AsOf, Then};
pub use super::pieces::{Cut, PIECE_TIME_MAX, PieceSender, Pieces, Unsent, in_time, pieces};
pub use super::queries::{Consistency, Page};
pub use super::readings::Encoded;
pub use super::routing::PATH as PEER_CALLS;
pub use super::service::{Access, HasAccess};
pub use crate::sealing::Secret;
pub use auth::{
    AuditEntry, AuditPage, AuditSearch, CreatedToken, DeniedJwt, DeniedView, SecretView, TokenPage,
    TokenView,
};
pub use lineage::{Lineage, Origin};
pub use recorded::Recorded;
pub use replies::{
    Copied, Created, DroppedDependency, Explained, HistoryPage, Reply, Started, Warning,
};
pub use requests::{Cancel, Copy, Delete, Execute, IdCheck, Request, Retry, Update};
pub use system::{
    COMMAND_EXECUTOR, Check, DRAINING, Deliveries, Draining, ExecutorView, Health, NodeHealth,
    NodeShare, Rebuild, SlotUsage, ZoneHealth,
};
pub use target::Target;
pub use taskledger_auth::Caller;
pub use use_case::{Cost, UseCase};
pub use watching::{Run, Subscribe, Subscribed, Watch, Watching};
pub use workflows::RunProgress;

//! Retention: finished flows are copied to an archive folder, ended in the log and dropped from it, so that disk use
//! stays bounded.
//!
//! Owns: which flows go, the archive's files, and the order of things, which makes each crash
//! harmless: a file is durable before the event that names it is written, and that event is durable,
//! and known to all who follow the log, before anything is deleted. What a crash leaves between is
//! taken up by the next pass. May not touch: SQL, rules (a flow itself refuses to be archived),
//! transports.

mod age;
mod batch;
mod file;
mod pass;
mod service;

pub use age::{AGE_MAX, AGE_MIN, age};
pub use pass::{Done, Error};
pub use service::{Schedule, Service};

use crate::application::Flows;
use crate::clock::SharedClock;
use crate::store::EventStore;
use crate::subscription::runner::Handle as Projections;
use async_trait::async_trait;
use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::{AuditLog, By};
use taskledger_domain::flow::Rest;
use taskledger_domain::{FlowId, Position};
use taskledger_projections::ReadModels;

/// The policy: which flows are archived, and where to.
#[derive(Debug, Clone)]
pub struct Policy {
    /// A flow's last event must be older.
    pub age: Duration,
    /// How much at rest it must be.
    pub rest: Rest,
    /// Folder of the files; made when it is missing.
    pub archive: PathBuf,
    /// How much of the writer's time may be taken.
    pub pace: Pace,
}

/// The speed at which events are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Others write too: behind each transaction comes a pause that is longer.
    Gentle,
    /// Nobody else is there.
    Full,
}

/// Somebody who follows the log and must have seen an event before it may go.
#[async_trait]
pub trait Follower: Send + Sync {
    /// How far it has come, durably.
    ///
    /// # Errors
    /// [`Unknown`]: the flows stay, and it is asked again.
    async fn position(&self) -> Result<Position, Unknown>;
}

/// It cannot be told how far a [`Follower`] has come; for the log of the server.
#[derive(Debug, thiserror::Error)]
#[error("it is not known how far those are who follow the log: {0}")]
pub struct Unknown(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// Hears of flows that are gone.
pub type Forget = Arc<dyn Fn(&HashSet<FlowId>) + Send + Sync>;

/// The stores that archiving works on.
#[derive(Clone)]
pub struct Retention {
    /// The log.
    pub store: Arc<dyn EventStore>,
    /// The mailboxes, where flows are ended.
    pub flows: Arc<Flows>,
    /// Where flows at rest are found.
    pub queries: Arc<ReadModels>,
    /// How far those are.
    pub projections: Projections,
    /// Who else reads the log.
    pub follower: Arc<dyn Follower>,
    /// Who archives.
    pub by: By,
    /// Told which file holds what is about to leave; if it cannot be written there, nothing leaves.
    pub audit: Option<Arc<AuditLog>>,
    /// Told of flows that are gone, so that nothing of them is remembered.
    pub forget: Forget,
    /// Time, and names of files.
    pub clock: SharedClock,
}

impl fmt::Debug for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retention").finish_non_exhaustive()
    }
}

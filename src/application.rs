//! The application layer, between the doors and the rules: it knows who calls, turns each call into a command or query,
//! and makes the reply.
//!
//! Owns the hot flows and their mailboxes, the slots, idempotency, and the consistency of reads.
//! Doors hold a [`Service`] and use the types of [`api`]; the rest is for those who put a server together.
//! May use `domain`, `store`, `projections` and `webhooks`; knows no transport and no SQL.
//! Data comes in as typed requests from doors and other nodes, and as outcomes from `engine`.

mod admission;
pub mod api;
pub mod archiving;
pub mod authentication;
pub mod authorize;
mod awaited;
mod batch;
mod begins;
mod checks;
mod claim_ends;
mod claiming;
mod commands;
pub mod context;
mod copying;
mod declared;
mod defaults;
mod directory;
mod driver;
mod encoder;
mod entering;
pub mod error;
pub mod events;
pub mod explain;
pub mod facts;
pub mod figures;
pub mod flows;
mod guard;
pub mod history;
pub mod idempotency;
mod inbox;
mod known_executors;
pub mod leases;
mod leasing;
pub mod limits;
mod lineage;
mod loading;
mod looking;
pub mod mailbox;
pub mod naming;
mod new_methods;
mod noted;
mod offers;
pub mod outcomes;
mod overview;
pub mod ownership;
mod partitions;
mod past;
mod pieces;
mod placing;
pub mod ports;
mod positions;
mod published_ids;
mod queries;
mod reach;
pub mod readings;
pub mod routing;
pub mod rows;
mod runs;
pub mod schema_cache;
mod sending;
pub mod service;
mod siblings;
pub mod slots;
mod stream_reader;
mod suspending;
mod task_names;
mod ticketing;
mod timers;
mod undelivered;
mod validation;
pub mod watching;
mod working;

pub use api::{IdCheck, Target};
pub use commands::ExecuteOptions;
pub use context::Context;
pub use directory::Directory;
pub use encoder::{Moment, TreeEncoder};
pub use error::{Error, Failure, Refused};
pub use flows::Flows;
pub use naming::CallNames;
pub use offers::RemoteWork;
pub use ownership::{Ownership, Partitions};
pub use past::{AsOf, Then};
pub use positions::{Positions, SeenBy};
pub use queries::{Consistency, Page};
pub use readings::Readings;
pub use rows::RowCache;
pub use service::Service;
pub use validation::Validation;

use crate::clock::SharedClock;
use crate::store::EventStore;
use crate::subscription::live::Live;
use crate::subscription::rebuild::Rebuilds;
use crate::subscription::runner::Handle as Projections;
use limits::Limits;
use std::fmt;
use std::sync::Arc;
use taskledger_domain::flow::WaitBounds;

/// The parts that use cases work on. One per server; doors reach it through [`Service`] only.
pub struct App {
    /// The log.
    pub store: Arc<dyn EventStore>,
    /// Time and ids.
    pub clock: SharedClock,
    /// The hot flows.
    pub flows: Arc<Flows>,
    /// The read models' progress.
    pub projections: Projections,
    /// Their contents.
    pub queries: Arc<taskledger_projections::ReadModels>,
    /// Their rebuilding.
    pub rebuilds: Rebuilds,
    /// Long answers.
    pub readings: Readings,
    /// Tasks to flows.
    pub directory: Arc<Directory>,
    /// Inputs against schemas.
    pub validation: Arc<Validation>,
    /// Confirmed rows.
    pub rows: Arc<RowCache>,
    /// Where each flow's history ends.
    pub positions: Arc<Positions>,
    /// What happens, for those who watch.
    pub live: Arc<Live>,
    /// How much callers may ask and add.
    pub limits: Arc<Limits>,
    /// How long tasks of runs wait that begin here, if they do not say so themselves.
    pub wait_bounds: WaitBounds,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("flows", &self.flows)
            .finish_non_exhaustive()
    }
}

/// Events that the read models may be behind before appends are answered `Busy`.
pub const LAG_EVENTS_MAX: u64 = 50_000;

impl App {
    /// Refuses new commands while the read models are too far behind, so that reads stay possible.
    fn refuse_when_behind(&self) -> Result<(), Error> {
        // Told on the way of commands, because a server that only writes must forget flows too.
        self.positions.reached(self.projections.checkpoint());
        let lag = self.projections.lag();
        if lag <= LAG_EVENTS_MAX {
            return Ok(());
        }
        Err(Error::Busy {
            reason: format!("the read models lag {lag} events behind the log"),
            retry_after_ms: 250,
        })
    }
}

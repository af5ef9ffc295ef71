//! Workflow documents that users keep by name, with all their versions.
//!
//! Owns the tables, on SQLite (`workflows.db` in the data folder) or PostgreSQL, under one code. Each name of an owner
//! is a stream of events, `saved` and `deleted`, whose number is the version; a deletion removes the documents and
//! leaves the events. May not: read documents, or decide who may do what. It cannot be made again from the log, so it
//! is never thrown away.

mod connect;
mod pins;
mod reading;
mod saving;
mod version;

pub use connect::{STEPS, WORKFLOWS_FILE};
pub use pins::{PIN_LIFETIME_MS, Pinned};
pub use saving::{BYTES_MAX, NAMES_MAX, Refusal, Saved, VERSIONS_MAX};
pub use version::{Document, Event, EventKind, Form, NewVersion, Version};

use taskledger_beside::{Connections, store_error, store_shell, store_write};

store_error!("workflows");

/// The tables in one place. Lasts as long as the server; `close` lets go of the connections.
pub struct DocumentStore {
    connections: Connections,
}

store_shell!(DocumentStore, "workflows");
store_write!(DocumentStore);

impl DocumentStore {
    fn new(connections: Connections) -> Self {
        Self { connections }
    }
}

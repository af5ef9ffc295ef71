//! Webhooks: signed notices, sent to addresses outside until they arrive.
//!
//! Owns: endpoints (where to send what), the outbox that reads the log and notes what must be sent, the
//! worker that sends it, and everything that is known of each attempt. All of it is durable and lies
//! beside the log; what is in memory can be lost at any time. May use: `subscription` (notices, the log in
//! order), `egress` (every request goes through its guard), `store` (reading). May not: append to the log,
//! know JSON-RPC.
//! Events come from the log, orders from the doors, attempts go out through `egress`.

pub mod api;
pub mod attempt;
pub mod breaker;
pub mod callback;
pub mod delivery;
pub mod endpoint;
pub mod headers;
pub mod memory;
pub mod outbox;
pub mod owners;
pub mod reports;
pub mod schedule;
pub mod secret;
pub mod signature;
pub mod store;
pub mod worker;

pub use taskledger_net::egress::URL_CHARS_MAX;

use std::path::PathBuf;
use std::sync::Arc;
use taskledger_net::egress::Egress;

/// Settings.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// File with the keys of secrets; `None`: one in the data folder, or none on a database.
    pub secrets_key_file: Option<PathBuf>,
    /// The way out; `None`: one of its own, to public addresses over TLS alone.
    pub egress: Option<Arc<Egress>>,
    /// How much is sent at once, and when what has failed is sent again.
    pub worker: worker::Options,
}

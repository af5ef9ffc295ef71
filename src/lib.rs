//! taskledger: a task-orchestration server. One event-sourced core, several doors.

// `json!` of the longest schemas of OpenRPC.
#![recursion_limit = "256"]

pub mod application;
pub mod auth;
pub mod cli;
pub mod config;
pub mod engine;
pub mod metrics;
pub mod nodes;
pub mod retention;
pub mod runtime;
pub mod server;
pub mod telemetry;
pub mod transport;

// The parts that are crates of their own, under the names by which the rest knows them.
pub use taskledger_clock as clock;
pub use taskledger_log as store;
pub use taskledger_meters as meters;
pub use taskledger_net::{egress, secret_file, tls};
pub use taskledger_private as private;
pub use taskledger_sealing as sealing;
pub use taskledger_subscription as subscription;
pub use taskledger_webhooks as webhooks;

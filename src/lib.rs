//! taskledger: a task-orchestration server. One event-sourced core, several doors.

pub mod application;
pub mod cli;
pub mod clock;
pub mod config;
pub mod conformance;
pub mod egress;
pub mod engine;
pub mod nodes;
pub mod private;
pub mod retention;
pub mod server;
pub mod store;
pub mod subscription;
pub mod telemetry;
pub mod tls;
pub mod transport;
pub mod webhooks;

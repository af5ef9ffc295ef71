//! taskledger: a task-orchestration server. One event-sourced core, several doors.

pub mod clock;
pub mod engine;
pub mod store;
pub mod subscription;

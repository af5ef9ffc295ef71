//! Parameters of `schedules.*`.

pub mod create;
pub mod delete;
pub mod get;
mod kinds;
pub mod list;
pub mod pause;
pub mod run_now;
pub mod update;
mod what;

//! Parameters of `workflows.*`.

pub mod create;
pub mod delete;
pub mod diff;
pub mod dry_run;
pub mod get;
mod kinds;
pub mod list;
pub mod progress;
pub mod run;
pub mod save;
pub mod schemas;
pub mod validate;
pub mod versions;

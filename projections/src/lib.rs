//! The read models: tables for queries, folded from the log. Tables that people query, folded from the log.
//!
//! Owns: the fold from events to rows ([`TaskRow`]), the tables and their feeding
//! ([`ReadModels::apply`]), and the queries (methods of [`ReadModels`]), which answer typed views
//! ([`TaskView`]). May not: append to the log, decide, know a protocol.
//! Events come from `subscription`; answers go to `application`. Everything here can be deleted and
//! comes back from the log.

mod checkpoint;
mod damage;
mod dump;
mod error;
mod past;
mod projector;
mod queries;
mod read_models;
mod task_row;
mod tasks;
mod view;

pub use checkpoint::CHECKPOINT_QUERY;
pub use damage::{DAMAGED_FLOWS_MAX, DamagedFlow, DamagedFlows};
pub use error::Error;
pub use past::{Past, Sources, WithRun};
pub use projector::Projector;
pub use queries::{
    AtRest, Attempt, Cursor, FlowSummary, LIST_BYTES_MAX, List, ListFilter, Made, Node, OpenRun,
    Order, Parts, Reading, Returned, RunCursor, RunFilter, RunList, RunRow, RunSnapshot,
    RunSummary, Snapshot, Start, Usage, Wait,
};
pub use read_models::{
    Elsewhere, Found, Options, Place, Postgres, READERS_MIN, ReadModels, Rebuild, SCHEMA_DEFAULT,
    Swap,
};
pub use task_row::{Change, TaskRow, new_owner};
pub use taskledger_sql::with_sources;
pub use tasks::TaskProjector;
pub use view::{Blocker, RunView, TaskView};

//! THE READING ROOMS. Tables that people query, folded from the log.
//!
//! Owns: the fold from events to rows ([`TaskRow`]), the tables and their feeding
//! ([`ReadModels::apply`]), and the queries (methods of [`ReadModels`]), which answer typed views
//! ([`TaskView`]). May not: append to the log, decide, know a protocol.
//! Events come from `subscription`; answers go to `application`. Everything here can be deleted and
//! comes back from the log.

mod checkpoint;
mod dump;
mod error;
mod past;
mod projector;
mod queries;
mod read_models;
pub mod sql;
mod task_row;
mod tasks;
#[cfg(test)]
#[path = "../../tests/common/postgres.rs"]
mod test_postgres;
mod view;

pub use error::{Error, with_sources};
pub use past::{Past, Sources, WithRun};
pub use projector::Projector;
pub use queries::{
    AtRest, Attempt, Cursor, FlowSummary, LIST_BYTES_MAX, List, ListFilter, Node, OpenRun, Order,
    Reading, RunSummary, Snapshot, Start,
};
pub use read_models::{
    Elsewhere, Found, Options, Place, Postgres, READERS_MIN, ReadModels, Rebuild, SCHEMA_DEFAULT,
    Swap,
};
pub use sql::Tx;
pub use task_row::{Change, TaskRow, covers};
pub use tasks::TaskProjector;
pub use view::{Blocker, RunView, TaskView};

use taskledger_domain::FlowId;

/// The partition, 0 to 255, that a flow belongs to: FNV-1a of its id, so that ids that a caller
/// chose spread as well as random ones.
#[must_use]
pub fn partition(flow: FlowId) -> u8 {
    let hash = flow
        .0
        .as_bytes()
        .iter()
        .fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
    hash.to_be_bytes().iter().fold(0, |all, byte| all ^ byte)
}

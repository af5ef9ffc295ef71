//! What reads of tasks are asked with and answered with, as the read models have it.

pub use taskledger_projections::{
    Attempt, Blocker, Cursor as ListCursor, ListFilter, Order, RunSummary, RunView,
    Start as ListStart, TaskRow, TaskView,
};

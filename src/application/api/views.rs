//! Queries and views of tasks, as the read models have them.

pub use taskledger_projections::{
    Attempt, Blocker, Cursor as ListCursor, ListFilter, Order, RunSummary, RunView,
    Start as ListStart, TaskRow, TaskView,
};

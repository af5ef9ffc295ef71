//! The query of `tasks.history`: which task or flow, in which order, from where.

use super::{Cursor, EventType};
use serde::{Deserialize, Serialize};
use taskledger_domain::TaskId;
use taskledger_projections::Order;

/// The extent of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Scope {
    /// The task's events, and those of the runs that covered it.
    #[default]
    Task,
    /// All events of its flow.
    Flow,
}

/// The parameters of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// A task that exists or existed.
    pub task: TaskId,
    /// The task's own events, or all of its flow.
    pub scope: Scope,
    /// Entries of a page, at least 1.
    pub limit: usize,
    /// Oldest or newest first.
    pub order: Order,
    /// The cursor that the previous page printed; made with the same order.
    pub cursor: Option<Cursor>,
    /// Only these types; `None` for all.
    pub types: Option<Vec<EventType>>,
}

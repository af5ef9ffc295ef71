//! Compares a task before and after a change, to find what the change means for other rows.

use super::counts::Cell;
use crate::TaskRow;
use std::sync::Arc;
use taskledger_domain::{RunId, TaskId, Timestamp};

/// What of a task the figures above it depend on.
pub(super) struct Facets {
    pub(super) cell: Cell,
    pub(super) user: Option<Arc<str>>,
    pub(super) owner: Option<Arc<str>>,
    pub(super) created_at: Timestamp,
    pub(super) millionths: i64,
    pub(super) waiting: bool,
    pub(super) deadline: bool,
    /// It runs something: groups are not counted by their runs.
    pub(super) runs: bool,
    pub(super) run_id: Option<RunId>,
    pub(super) parent: Option<TaskId>,
}

impl Facets {
    pub(super) fn of(row: &TaskRow) -> Self {
        Self {
            cell: Cell {
                status: row.status,
                priority: row.priority,
                root: row.is_root(),
            },
            user: row.user_id.clone(),
            owner: row.owner.clone(),
            created_at: row.created_at,
            millionths: i64::from(row.progress.millionths()),
            waiting: row.next_attempt_at.is_some(),
            deadline: row.deadline.is_some(),
            runs: !row.is_group(),
            run_id: row.run_id,
            parent: row.parent_id,
        }
    }
}

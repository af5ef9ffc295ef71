//! The protocol's JSON for a task. Payloads are spliced as text, never parsed again.
//! spec: data-model / Task Schema, with our own members behind the protocol's.

use crate::TaskRow;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use std::sync::Arc;
use taskledger_domain::flow::{RunState, StatusCounts};
use taskledger_domain::task::Status;
use taskledger_domain::{RunId, TaskId};

/// A required dependency that keeps a pending task from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Blocker {
    /// The dependency.
    pub id: TaskId,
    /// Failed or cancelled.
    pub status: Status,
}

/// How the run of a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    /// The run.
    pub id: RunId,
    /// How it stands.
    pub state: RunState,
    /// Its tasks by status.
    pub counts: StatusCounts,
}

/// A task with what other rows say about it. Serializes as the protocol's task object.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskView {
    /// The task.
    pub row: Arc<TaskRow>,
    /// Required dependencies that failed or were cancelled; empty unless it is pending.
    pub blocked_by: Vec<Blocker>,
    /// Its latest run, when it is the root of that run.
    pub run: Option<RunView>,
}

impl TaskView {
    /// A task about which other rows say nothing.
    #[must_use]
    pub fn plain(row: impl Into<Arc<TaskRow>>) -> Self {
        Self {
            row: row.into(),
            blocked_by: Vec::new(),
            run: None,
        }
    }
}

impl Serialize for TaskView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = self.row.as_ref();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &row.id)?;
        map.serialize_entry("parent_id", &row.parent_id)?;
        map.serialize_entry("user_id", &row.user_id)?;
        map.serialize_entry("name", &row.name)?;
        map.serialize_entry("status", &row.status)?;
        map.serialize_entry("priority", &row.priority)?;
        map.serialize_entry("inputs", &row.inputs)?;
        map.serialize_entry("schemas", &row.schemas)?;
        map.serialize_entry("params", &row.params)?;
        map.serialize_entry("result", &row.result)?;
        map.serialize_entry("error", &row.error)?;
        map.serialize_entry("dependencies", &row.dependencies)?;
        map.serialize_entry("progress", &row.progress)?;
        map.serialize_entry("created_at", &row.created_at)?;
        map.serialize_entry("started_at", &row.started_at)?;
        map.serialize_entry("updated_at", &row.updated_at)?;
        map.serialize_entry("completed_at", &row.completed_at)?;
        map.serialize_entry("root_task_id", &row.flow_id)?;
        map.serialize_entry("attempt", &row.attempt)?;
        if let Some(at) = row.next_attempt_at {
            map.serialize_entry("next_attempt_at", &at)?;
        }
        if !self.blocked_by.is_empty() {
            map.serialize_entry("blocked_by", &self.blocked_by)?;
        }
        if let Some(run) = &self.run {
            map.serialize_entry("run", run)?;
        }
        map.end()
    }
}

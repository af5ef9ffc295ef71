//! Refusals: reasons that the caller can mend. A refused command changes nothing.

use super::state::Archived;
use crate::{TaskId, Violation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The family of a refusal, in order of precedence when several apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// No such task, or not for this caller.
    NotFound,
    /// A value is not acceptable in itself.
    Invalid,
    /// The tasks of the call are no tree.
    InvalidTree,
    /// `parent_id` names no possible parent.
    InvalidParent,
    /// A dependency names no task of the flow.
    InvalidDependency,
    /// Dependencies would close a cycle.
    Circular,
    /// No executor has the task's method.
    ExecutorNotFound,
    /// A running run covers the task.
    AlreadyExecuting,
    /// The task's status does not allow it.
    InvalidTransition,
    /// The task cannot be deleted.
    CannotDelete,
    /// The outcome belongs to an attempt that is no longer the current one. Only the engine sees it.
    StaleAttempt,
    /// The specification on which the command was built has changed: build it again. Only the
    /// application sees it.
    SpecificationMoved,
}

/// Why a command was refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rejection {
    /// The family.
    pub kind: Kind,
    /// What is wrong, all of it.
    pub violations: Vec<Violation>,
    /// Further members for the caller: `cycle`, `children`, `dependents`, `task_ids`.
    pub details: Map<String, Value>,
}

impl Rejection {
    /// A refusal for these reasons.
    #[must_use]
    pub fn new(kind: Kind, violations: Vec<Violation>) -> Self {
        Self {
            kind,
            violations,
            details: Map::new(),
        }
    }

    /// A refusal for one reason.
    #[must_use]
    pub fn one(kind: Kind, violation: Violation) -> Self {
        Self::new(kind, vec![violation])
    }

    /// Unknown task.
    #[must_use]
    pub fn not_found(field: &str, task: TaskId) -> Self {
        let expected = "the id of a stored task";
        Self::one(
            Kind::NotFound,
            Violation::of(
                field,
                "Task not found",
                expected,
                &Value::String(task.to_string()),
            ),
        )
    }

    /// A task of a flow that was archived: as unknown as others, with where to look.
    #[must_use]
    pub fn archived(field: &str, task: TaskId, archived: &Archived) -> Self {
        let reason = format!(
            "Task was archived at {} in file `{}`",
            archived.at, archived.copy.file
        );
        let expected = "the id of a stored task";
        let actual = Value::String(task.to_string());
        Self::one(
            Kind::NotFound,
            Violation::of(field, reason, expected, &actual),
        )
    }

    /// The same with a list of task ids beside the reasons; at most [`Self::IDS_MAX`] are listed.
    #[must_use]
    pub fn with_ids(mut self, member: &str, ids: impl IntoIterator<Item = TaskId>) -> Self {
        let ids = ids
            .into_iter()
            .take(Self::IDS_MAX)
            .map(|id| Value::String(id.to_string()))
            .collect();
        self.details.insert(member.to_owned(), Value::Array(ids));
        self
    }

    /// The same with the member `cycle`: each task waits for the next, the first is repeated at the
    /// end. Whole, unless it is longer than any cycle that one call can write
    /// ([`Self::CYCLE_IDS_MAX`]). spec: semantics / Trees and flows
    #[must_use]
    pub fn with_cycle(mut self, ids: impl IntoIterator<Item = TaskId>) -> Self {
        let ids = ids
            .into_iter()
            .take(Self::CYCLE_IDS_MAX)
            .map(|id| Value::String(id.to_string()))
            .collect();
        self.details.insert("cycle".to_owned(), Value::Array(ids));
        self
    }

    /// Ids of a cycle listed in a refusal: the tasks of a call, and the first again.
    pub const CYCLE_IDS_MAX: usize = crate::limits::TASKS_PER_CALL_MAX + 1;
    /// Ids listed in a refusal, so that its answer stays small.
    pub const IDS_MAX: usize = 1000;
}

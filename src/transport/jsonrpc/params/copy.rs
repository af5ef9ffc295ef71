//! `tasks.copy`. spec: interface / tasks.copy

use super::super::reader::{BOOLEAN, Parameters, Reader, TASK_ID};
use taskledger_domain::{TaskId, Violation};

/// What to copy, and where to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The original.
    pub task_id: TaskId,
    /// Whether everything that a run of the task would cover is copied too.
    pub copy_children: bool,
    /// The copy becomes a subtree below this task; without it, a new flow.
    pub parent_id: Option<TaskId>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let original = reader.required("task_id", TASK_ID, "The task to copy.");
        let copy_children = reader.with_default(
            "copy_children",
            BOOLEAN,
            false,
            "Whether everything that a run of the task would cover is copied too.",
        );
        let parent_id = reader.optional(
            "parent_id",
            TASK_ID,
            "The copy becomes a subtree below this task; without it, a new flow.",
        );
        reader.finish(|| {
            Some(Self {
                task_id: original?,
                copy_children,
                parent_id,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ID, faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_copy_is_one_task_and_a_new_flow_unless_asked() {
        let read = Params::read(&map(json!({"task_id": ID}))).unwrap();
        assert!(!read.copy_children);
        assert_eq!(read.parent_id, None);
        assert_eq!(
            faults(Params::read(&map(json!({"task_id": ID, "parent_id": "p"})))),
            [("parent_id".into(), "Invalid UUID format".into())]
        );
    }
}

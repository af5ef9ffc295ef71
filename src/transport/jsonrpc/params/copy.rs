//! `tasks.copy`. spec: interface / tasks.copy

use super::super::reader::{Reader, boolean, task_id};
use serde_json::{Map, Value};
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

impl Params {
    /// The parameters in declared order.
    pub const NAMES: &[&str] = &["task_id", "copy_children", "parent_id"];

    /// Reads the parameters.
    ///
    /// # Errors
    /// Every violation.
    pub fn read(map: &Map<String, Value>) -> Result<Self, Vec<Violation>> {
        let mut reader = Reader::new(map);
        let original = reader.required("task_id", task_id);
        let copy_children = reader.optional("copy_children", boolean);
        let parent_id = reader.optional("parent_id", task_id);
        reader.finish(|| {
            Some(Self {
                task_id: original?,
                copy_children: copy_children.unwrap_or(false),
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

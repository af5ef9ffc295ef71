//! `tasks.retry`: runs a failed task again, and what waits for it.

use super::super::reader::{Reader, task_id};
use serde_json::{Map, Value};
use taskledger_domain::{TaskId, Violation};

/// Which task to run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The failed task.
    pub task_id: TaskId,
}

impl Params {
    /// The parameters in declared order.
    pub const NAMES: &[&str] = &["task_id"];

    /// Reads the parameters.
    ///
    /// # Errors
    /// Every violation.
    pub fn read(map: &Map<String, Value>) -> Result<Self, Vec<Violation>> {
        let mut reader = Reader::new(map);
        let task_id = reader.required("task_id", task_id);
        reader.finish(|| Some(Self { task_id: task_id? }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ID, faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_task_can_be_named() {
        assert!(Params::read(&map(json!({"task_id": ID}))).is_ok());
        assert_eq!(
            faults(Params::read(&map(json!({"task_id": ID, "tasks": []})))),
            [("tasks".into(), "unknown parameter".into())]
        );
    }
}

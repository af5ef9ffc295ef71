//! `tasks.retry`: runs a failed task again, and what waits for it.

use super::super::reader::{Parameters, Reader, TASK_ID};
use taskledger_domain::{TaskId, Violation};

/// Which task to run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The failed task.
    pub task_id: TaskId,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task_id = reader.required("task_id", TASK_ID, "The failed task to run again.");
        super::use_streaming(&mut reader);
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

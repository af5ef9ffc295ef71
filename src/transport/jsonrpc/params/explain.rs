//! `tasks.explain`.

use super::super::reader::{Parameters, Reader, TASK_ID};
use taskledger_domain::{TaskId, Violation};

/// Which task to explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The task.
    pub task_id: TaskId,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task_id = reader.required("task_id", TASK_ID, "The task to explain.");
        reader.finish(|| Some(Self { task_id: task_id? }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ID, faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn the_task_is_all_that_is_asked() {
        assert!(Params::read(&map(json!({"task_id": ID}))).is_ok());
        assert_eq!(
            faults(Params::read(&map(json!({"as_of": 3})))),
            [
                ("task_id".into(), "missing".into()),
                ("as_of".into(), "unknown parameter".into())
            ]
        );
    }
}

//! `tasks.explain`.

use super::super::reader::{Parameters, Reader, TASK_ID};
use taskledger_domain::{TaskId, Violation};

/// Which task to explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// A stored task, in any status.
    pub task_id: TaskId,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task_id = reader.required("task_id", TASK_ID, "The task to explain.");
        // The state itself is read, which is as strong as it gets.
        super::consistency(&mut reader);
        reader.finish(|| Some(Self { task_id: task_id? }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ID, faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_task_is_asked_for_and_as_all_reads_a_consistency() {
        assert!(Params::read(&map(json!({"task_id": ID}))).is_ok());
        let eventual = json!({"task_id": ID, "consistency": "eventual"});
        assert!(Params::read(&map(eventual)).is_ok());
        assert_eq!(
            faults(Params::read(&map(
                json!({"task_id": ID, "consistency": "weak"})
            ))),
            [("consistency".into(), "not a consistency".into())]
        );
        assert_eq!(
            faults(Params::read(&map(json!({"as_of": 3})))),
            [
                ("task_id".into(), "missing".into()),
                ("as_of".into(), "unknown parameter".into())
            ]
        );
    }
}

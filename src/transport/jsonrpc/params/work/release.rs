//! `tasks.release`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::held;
use taskledger_domain::{LeaseId, TaskId, Violation};

/// What is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The task that the worker holds.
    pub task: TaskId,
    /// The lease; `None`: no lease of this server.
    pub lease: Option<LeaseId>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let (task, lease) = held(&mut reader);
        reader.finish(|| {
            Some(Self {
                task: task?,
                lease: lease?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{ID, faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_task_and_its_lease_are_named() {
        assert!(Params::read(&map(json!({"task_id": ID, "lease": ID}))).is_ok());
        assert_eq!(
            faults(Params::read(&map(json!({"task_id": ID, "reason": "x"})))),
            [
                ("lease".into(), "missing".into()),
                ("reason".into(), "unknown parameter".into())
            ]
        );
    }
}

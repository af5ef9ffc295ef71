//! `tasks.delete`. spec: interface / tasks.delete

use super::super::reader::{BOOLEAN, Parameters, Reader, TASK_ID};
use taskledger_domain::{TaskId, Violation};

/// Which task to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// A stored task; only a pending one can be deleted.
    pub task_id: TaskId,
    /// Whether everything below it goes with it.
    pub cascade: bool,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task_id = reader.required("task_id", TASK_ID, "The pending task to delete.");
        let cascade = reader.with_default(
            "cascade",
            BOOLEAN,
            false,
            "Whether everything below it goes with it.",
        );
        reader.finish(|| {
            Some(Self {
                task_id: task_id?,
                cascade,
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
    fn a_delete_does_not_cascade_unless_asked() {
        let cascade = |params| Params::read(&map(params)).map(|read| read.cascade);
        assert_eq!(cascade(json!({"task_id": ID})), Ok(false));
        assert_eq!(cascade(json!({"task_id": ID, "cascade": true})), Ok(true));
        assert_eq!(
            faults(Params::read(&map(json!({"task_id": ID, "casacde": true})))),
            [("casacde".into(), "unknown parameter".into())]
        );
    }
}

//! `tasks.delete`. spec: interface / tasks.delete

use super::super::reader::{Reader, boolean, task_id};
use serde_json::{Map, Value};
use taskledger_domain::{TaskId, Violation};

/// Which task to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The task.
    pub task_id: TaskId,
    /// Whether everything below it goes with it.
    pub cascade: bool,
}

impl Params {
    /// The parameters in declared order.
    pub const NAMES: &[&str] = &["task_id", "cascade"];

    /// Reads the parameters.
    ///
    /// # Errors
    /// Every violation.
    pub fn read(map: &Map<String, Value>) -> Result<Self, Vec<Violation>> {
        let mut reader = Reader::new(map);
        let task_id = reader.required("task_id", task_id);
        let cascade = reader.optional("cascade", boolean);
        reader.finish(|| {
            Some(Self {
                task_id: task_id?,
                cascade: cascade.unwrap_or(false),
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

//! `tasks.tree`. spec: interface / tasks.tree

use super::super::reader::{Reader, task_id};
use crate::application::Consistency;
use serde_json::{Map, Value};
use taskledger_domain::{TaskId, Violation};

/// Which task to show with everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The root of the answer; any task of a flow.
    pub task_id: TaskId,
    /// Whether to wait for earlier writes.
    pub consistency: Consistency,
}

impl Params {
    /// The parameters in declared order.
    pub const NAMES: &[&str] = &["task_id", "consistency"];

    /// Reads the parameters.
    ///
    /// # Errors
    /// Every violation.
    pub fn read(map: &Map<String, Value>) -> Result<Self, Vec<Violation>> {
        let mut reader = Reader::new(map);
        let task_id = reader.required("task_id", task_id);
        let consistency = reader.optional("consistency", super::consistency);
        reader.finish(|| {
            Some(Self {
                task_id: task_id?,
                consistency: consistency.unwrap_or_default(),
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
    fn the_root_is_required() {
        assert_eq!(
            Params::read(&map(json!({"task_id": ID}))).map(|p| p.task_id.to_string()),
            Ok(ID.to_owned())
        );
        assert_eq!(
            faults(Params::read(&map(json!({"consistency": "weak"})))),
            [
                ("task_id".into(), "missing".into()),
                ("consistency".into(), "not a consistency".into())
            ]
        );
    }
}

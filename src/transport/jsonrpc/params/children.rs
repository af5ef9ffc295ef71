//! `tasks.children`. spec: interface / tasks.children

use super::super::reader::{Reader, task_id};
use crate::application::Consistency;
use serde_json::{Map, Value};
use taskledger_domain::{TaskId, Violation};

/// Whose children to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The parent.
    pub parent_id: TaskId,
    /// Whether to wait for earlier writes.
    pub consistency: Consistency,
}

impl Params {
    /// The parameters in declared order.
    pub const NAMES: &[&str] = &["parent_id", "consistency"];

    /// Reads the parameters.
    ///
    /// # Errors
    /// Every violation.
    pub fn read(map: &Map<String, Value>) -> Result<Self, Vec<Violation>> {
        let mut reader = Reader::new(map);
        let parent_id = reader.required("parent_id", task_id);
        let consistency = reader.optional("consistency", super::consistency);
        reader.finish(|| {
            Some(Self {
                parent_id: parent_id?,
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
    fn the_parent_is_named_parent_id() {
        assert!(Params::read(&map(json!({"parent_id": ID}))).is_ok());
        assert_eq!(
            faults(Params::read(&map(json!({"parent_id": 7})))),
            [("parent_id".into(), "not a string".into())]
        );
    }
}

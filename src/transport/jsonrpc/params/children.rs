//! `tasks.children`. spec: interface / tasks.children

use super::super::reader::{Parameters, Reader, TASK_ID};
use crate::application::api::Consistency;
use taskledger_domain::{TaskId, Violation};

/// Whose children to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The parent.
    pub parent_id: TaskId,
    /// Whether to wait for earlier writes.
    pub consistency: Consistency,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let parent_id = reader.required("parent_id", TASK_ID, "The task whose children to show.");
        let consistency = super::consistency(&mut reader);
        reader.finish(|| {
            Some(Self {
                parent_id: parent_id?,
                consistency,
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

//! `tasks.get`. spec: interface / tasks.get

use super::super::reader::{BOOLEAN, Parameters, Reader, TASK_ID};
use crate::application::api::{AsOf, Consistency};
use taskledger_domain::{TaskId, Violation};

/// Which task to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// A stored task; with `as_of` also one that was deleted since.
    pub task_id: TaskId,
    /// Whether to wait for earlier writes.
    pub consistency: Consistency,
    /// When; `None` for now.
    pub as_of: Option<AsOf>,
    /// Whether to show what its latest attempt worked on.
    pub include_input: bool,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task_id = reader.required("task_id", TASK_ID, "The task to show.");
        let consistency = super::consistency(&mut reader);
        let as_of = super::as_of::as_of(&mut reader);
        let about = "Whether the answer has `attempt_input`, what the latest attempt worked on, and its `lineage`. Without effect together with `as_of`.";
        let include_input = reader.with_default("include_input", BOOLEAN, false, about);
        reader.finish(|| {
            Some(Self {
                task_id: task_id?,
                consistency,
                as_of,
                include_input,
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
    fn a_read_is_consistent_unless_told_otherwise() {
        let read = |consistency| {
            Params::read(&map(json!({"task_id": ID, "consistency": consistency})))
                .unwrap()
                .consistency
        };
        assert_eq!(read(json!(null)), Consistency::Strong);
        assert_eq!(read(json!("strong")), Consistency::Strong);
        assert_eq!(read(json!("eventual")), Consistency::Eventual);
    }

    #[test]
    fn an_id_that_is_no_uuid_v4_is_refused_in_the_words_of_the_protocol() {
        for id in ["task-uuid", "", "0f8fad5b-d9cb-169f-a165-70867728950e"] {
            assert_eq!(
                faults(Params::read(&map(json!({"task_id": id})))),
                [("task_id".into(), "Invalid UUID format".into())]
            );
        }
        assert_eq!(
            faults(Params::read(&map(json!({"id": ID})))),
            [
                ("task_id".into(), "missing".into()),
                ("id".into(), "unknown parameter".into())
            ]
        );
    }
}

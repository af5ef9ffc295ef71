//! `tasks.tree`. spec: interface / tasks.tree

use super::super::reader::{Parameters, Reader, TASK_ID};
use crate::application::api::{AsOf, Consistency};
use taskledger_domain::{TaskId, Violation};

/// Which task to show with everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The root of the answer; any task of a flow.
    pub task_id: TaskId,
    /// Whether to wait for earlier writes.
    pub consistency: Consistency,
    /// When; `None` for now.
    pub as_of: Option<AsOf>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task_id = reader.required(
            "task_id",
            TASK_ID,
            "The root of the answer; any task of a flow.",
        );
        let consistency = super::consistency(&mut reader);
        let as_of = super::as_of::as_of(&mut reader);
        reader.finish(|| {
            Some(Self {
                task_id: task_id?,
                consistency,
                as_of,
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

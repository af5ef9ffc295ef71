//! `tasks.get`. spec: interface / tasks.get

use super::super::calling::{answer, boxed};
use crate::application::Service;
use crate::application::api::{AsOf, Consistency};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::params::as_of::as_of;
use crate::transport::jsonrpc::params::consistency;
use crate::transport::jsonrpc::reader::{BOOLEAN, Parameters, Reader, TASK_ID};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::task_json::{TaskJson, ThenJson, WithInputJson};
use crate::transport::jsonrpc::text::raw;
use crate::transport::openrpc::about::past::lineage;
use crate::transport::openrpc::about::{About, Example, FETCH, GROUP, fetch, group, with_as_of};
use crate::transport::openrpc::schema_parts::at;
use serde_json::json;
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
        let consistency = consistency(&mut reader);
        let as_of = as_of(&mut reader);
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

pub(super) fn method() -> Method<Service> {
    Method {
        name: "tasks.get",
        title: "Get Task",
        summary: "Show a task, now or as it was",
        tags: &["task", "read"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                match p.as_of {
                    None if p.include_input => {
                        let found = service.get_with_input(&call.context, p.task_id, p.consistency);
                        let found = answer(&service, found.await);
                        found.map(|(task, lineage)| raw(&WithInputJson(&task, lineage.as_ref())))
                    }
                    None => {
                        let found = service.get(&call.context, p.task_id, p.consistency).await;
                        answer(&service, found).map(|task| raw(&TaskJson(&task)))
                    }
                    Some(at) => {
                        let found = service.get_as_of(&call.context, p.task_id, at).await;
                        answer(&service, found).map(|then| raw(&ThenJson(&then)))
                    }
                }
            })
        },
    }
}

fn about() -> About {
    About {
        description: "Shows a task with all its members; for the root of a run, `run` shows the status of the run. With `as_of`, the answer is rebuilt from the flow's events up to then, which takes time in proportion to their number.",
        result: "task",
        schema: json!({"allOf": [at("Task"), {"type": "object", "properties": {
            "attempt_input": {"type": "object", "description": "With `include_input`: what the latest attempt worked on; absent when all of it is literal, or a result has been replaced since."},
            "lineage": lineage("With `include_input`: where values of it came from; absent when all of them are literal."),
        }}]}),
        errors: &[ErrorKind::TaskNotFound],
        examples: vec![
            Example {
                name: "a group",
                description: "A task that has not run.",
                params: json!({"task_id": GROUP}),
                result: group(),
            },
            Example {
                name: "as it was",
                description: "After the third event of the log.",
                params: json!({"task_id": FETCH, "as_of": 3}),
                result: with_as_of(fetch()),
            },
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{ID, faults, map};
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

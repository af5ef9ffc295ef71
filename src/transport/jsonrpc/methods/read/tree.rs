//! `tasks.tree`. spec: interface / tasks.tree

use super::super::calling::{answer, boxed};
use crate::application::Service;
use crate::application::api::{AsOf, Consistency};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::params::as_of::as_of;
use crate::transport::jsonrpc::params::consistency;
use crate::transport::jsonrpc::reader::{Parameters, Reader, TASK_ID};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::text::Text;
use crate::transport::jsonrpc::tree_json::TreeJson;
use crate::transport::openrpc::about::{
    About, COUNT, Example, GROUP, count, fetch, group, with_as_of,
};
use crate::transport::openrpc::schema_parts::at;
use serde_json::json;
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
        let consistency = consistency(&mut reader);
        let as_of = as_of(&mut reader);
        reader.finish(|| {
            Some(Self {
                task_id: task_id?,
                consistency,
                as_of,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "tasks.tree",
        title: "Get Task Tree",
        summary: "Show a task with all its descendants, now or as they were",
        tags: &["task", "read"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                let json = TreeJson::default();
                let found = match p.as_of {
                    None => {
                        let tree = service.tree(&call.context, p.task_id, p.consistency, json);
                        tree.await
                    }
                    Some(at) => {
                        let tree = service.tree_as_of(&call.context, p.task_id, at, json);
                        tree.await
                    }
                };
                answer(&service, found).map(Text::from)
            })
        },
    }
}

fn about() -> About {
    About {
        description: "Shows a task with everything below it, nested. With `as_of`, what would have been answered then.",
        result: "tree",
        schema: at("TaskTreeNode"),
        errors: &[ErrorKind::TaskNotFound],
        examples: vec![
            Example {
                name: "a group",
                description: "With its two tasks.",
                params: json!({"task_id": GROUP, "consistency": "strong"}),
                result: json!({"task": group(), "children": [
                    {"task": fetch(), "children": []},
                    {"task": count(), "children": []},
                ]}),
            },
            Example {
                name: "as it was",
                description: "After the third event of the log.",
                params: json!({"task_id": COUNT, "as_of": 3}),
                result: with_as_of(json!({"task": count(), "children": []})),
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

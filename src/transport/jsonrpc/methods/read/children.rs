//! `tasks.children`. spec: interface / tasks.children

use super::super::calling::{answer, boxed};
use crate::application::Service;
use crate::application::api::Consistency;
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::params::consistency;
use crate::transport::jsonrpc::reader::{Parameters, Reader, TASK_ID};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::jsonrpc::text::Text;
use crate::transport::jsonrpc::tree_json::ChildrenJson;
use crate::transport::openrpc::about::{About, Example, GROUP, count, fetch};
use crate::transport::openrpc::schema_parts::{at, object};
use serde_json::json;
use taskledger_domain::{TaskId, Violation};

/// The parent whose children are shown.
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
        let consistency = consistency(&mut reader);
        reader.finish(|| {
            Some(Self {
                parent_id: parent_id?,
                consistency,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "tasks.children",
        title: "Get Children",
        summary: "Show the direct children of a task",
        tags: &["task", "read"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                let json = ChildrenJson::default();
                let found = service.children(&call.context, p.parent_id, p.consistency, json);
                answer(&service, found.await).map(Text::from)
            })
        },
    }
}

fn about() -> About {
    About {
        description: "Shows the tasks directly below a task, in the order of their creation.",
        result: "children",
        schema: object(json!({"children": {"type": "array", "items": at("Task")}})),
        errors: &[ErrorKind::TaskNotFound],
        examples: vec![Example {
            name: "of a group",
            description: "Not those below them.",
            params: json!({"parent_id": GROUP}),
            result: json!({"children": [fetch(), count()]}),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{ID, faults, map};
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

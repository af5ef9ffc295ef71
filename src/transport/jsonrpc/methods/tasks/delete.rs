//! `tasks.delete`. spec: interface / tasks.delete

use crate::application::Service;
use crate::application::api::{Delete, Request};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::methods::calling::{boxed, called};
use crate::transport::jsonrpc::reader::{BOOLEAN, Parameters, Reader, TASK_ID};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::{About, COUNT, Example, GROUP};
use crate::transport::openrpc::schema_parts::object;
use serde_json::json;
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

pub(super) fn method() -> Method<Service> {
    Method {
        name: "tasks.delete",
        title: "Delete Task",
        summary: "Delete a pending task, with `cascade` everything below it too",
        tags: &["task", "delete"],
        params: Params::declared(),
        changes: Changes::Flows,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                let delete = Delete {
                    task: p.task_id,
                    cascade: p.cascade,
                };
                called(&service, &call.context, Request::Delete(delete)).await
            })
        },
    }
}

fn about() -> About {
    About {
        description: "Removes a pending task that has no children and that nothing depends on; with `cascade`, everything below it too. Reads do not show it any more; the history keeps it.",
        result: "deleted",
        schema: object(json!({"success": {"type": "boolean", "enum": [true]}})),
        errors: &[ErrorKind::TaskNotFound, ErrorKind::NotDeletable],
        examples: vec![
            Example {
                name: "a leaf",
                description: "A task without children and dependents.",
                params: json!({"task_id": COUNT}),
                result: json!({"success": true}),
            },
            Example {
                name: "a subtree",
                description: "A group with what is in it.",
                params: json!({"task_id": GROUP, "cascade": true}),
                result: json!({"success": true}),
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

//! `tasks.update`. spec: interface / tasks.update

use crate::application::Service;
use crate::application::api::{Request, Update};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::methods::calling::{boxed, called};
use crate::transport::jsonrpc::reader::{Fault, Kind, Parameters, Reader, Refusal, TASK_ID};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::{About, COUNT, Example};
use crate::transport::openrpc::schema_parts::{at, object};
use serde_json::{Value, json};
use taskledger_domain::task::spec;
use taskledger_domain::task::spec::Updates;
use taskledger_domain::{TaskId, Violation};

/// What to change in which task.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// A stored task; what may be changed depends on its status.
    pub task_id: TaskId,
    /// The changes, perhaps with faults, those of other parameters included.
    pub updates: Updates,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task_id = reader.required("task_id", TASK_ID, "The task to change.");
        let updates = reader.required(
            "updates",
            UPDATES,
            "The members to change, with their new values; the merged task is checked as a whole.",
        );
        let mut faults = match (reader.finish(|| Some(())), task_id, updates) {
            (Ok(()), Some(task_id), Some(updates)) => return Ok(Self { task_id, updates }),
            // What else is wrong with the updates is told with it.
            (Err(faults), Some(task_id), Some(updates)) if !faults.is_empty() => {
                let updates = updates.with_faults(faults);
                return Ok(Self { task_id, updates });
            }
            (faults, _, updates) => {
                let of_updates = updates.map(|updates| updates.faults);
                (
                    faults.err().unwrap_or_default(),
                    of_updates.unwrap_or_default(),
                )
            }
        };
        faults.0.append(&mut faults.1);
        Err(faults.0)
    }
}

const UPDATES: UpdatesKind = UpdatesKind;

/// The members of a task that are to change.
struct UpdatesKind;

impl Kind for UpdatesKind {
    type Out = Updates;

    fn schema(&self) -> Value {
        json!({"$ref": "#/components/schemas/TaskUpdates"})
    }

    fn parse(&self, value: &Value) -> Result<Updates, Refusal> {
        let members = value
            .as_object()
            .ok_or(Fault::new("not an object", "an object"))?;
        Ok(spec::read_updates(members))
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "tasks.update",
        title: "Update Task",
        summary: "Change fields of a task",
        tags: &["task", "update"],
        params: Params::declared(),
        changes: Changes::Flows,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                let update = Update {
                    task: p.task_id,
                    updates: p.updates,
                };
                called(&service, &call.context, Request::Update(Box::new(update))).await
            })
        },
    }
}

fn about() -> About {
    About {
        description: "Changes members of a task. Name and priority can always be changed; inputs, schemas, params and dependencies while it is pending or failed; user and parent while it is pending.",
        result: "updated",
        schema: object(json!({"id": at("TaskId"), "status": at("Status")})),
        errors: &[
            ErrorKind::TaskNotFound,
            ErrorKind::InvalidTree,
            ErrorKind::InvalidParent,
            ErrorKind::InvalidDependency,
            ErrorKind::CircularDependency,
            ErrorKind::AlreadyExecuting,
            ErrorKind::InvalidTransition,
        ],
        examples: vec![Example {
            name: "new name and priority",
            description: "The task keeps everything else.",
            params: json!({"task_id": COUNT, "updates": {"name": "count words", "priority": 1}}),
            result: json!({"id": COUNT, "status": "pending"}),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{ID, faults, map};

    #[test]
    fn faults_of_the_task_and_of_its_updates_are_told_at_once() {
        let read = Params::read(&map(
            json!({"task_id": "x", "updates": {"name": "", "status": "completed"}}),
        ));
        let fields: Vec<_> = faults(read).into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["task_id", "status", "name"]);
    }

    #[test]
    fn a_name_alone_changes_nothing_else() {
        let read = Params::read(&map(json!({"task_id": ID, "updates": {"name": "new"}}))).unwrap();
        assert_eq!(
            read.updates,
            Updates {
                name: Some("new".to_owned()),
                ..Updates::default()
            }
        );
    }
}

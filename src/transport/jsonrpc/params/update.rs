//! `tasks.update`. spec: interface / tasks.update

use super::super::reader::{Fault, Kind, Parameters, Reader, Refusal, TASK_ID};
use serde_json::{Value, json};
use taskledger_domain::task::spec::{self, Updates};
use taskledger_domain::{TaskId, Violation};

/// What to change in which task.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// A stored task; what may be changed depends on its status.
    pub task_id: TaskId,
    /// The changes.
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
        reader.finish(|| {
            Some(Self {
                task_id: task_id?,
                updates: updates?,
            })
        })
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
        spec::updates(members).map_err(Refusal::Inside)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ID, faults, map};
    use super::*;

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

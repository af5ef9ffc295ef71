//! `tasks.update`. spec: interface / tasks.update

use super::super::reader::{Reader, object, task_id};
use serde_json::{Map, Value};
use taskledger_domain::task::spec::{self, Updates};
use taskledger_domain::{TaskId, Violation};

/// What to change in which task.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// The task.
    pub task_id: TaskId,
    /// The changes.
    pub updates: Updates,
}

impl Params {
    /// The parameters in declared order.
    pub const NAMES: &[&str] = &["task_id", "updates"];

    /// Reads the parameters.
    ///
    /// # Errors
    /// Every violation.
    pub fn read(map: &Map<String, Value>) -> Result<Self, Vec<Violation>> {
        let mut reader = Reader::new(map);
        let task_id = reader.required("task_id", task_id);
        let updates =
            reader
                .required("updates", object)
                .and_then(|updates| match spec::updates(updates) {
                    Ok(updates) => Some(updates),
                    Err(violations) => {
                        reader.add(violations);
                        None
                    }
                });
        reader.finish(|| {
            Some(Self {
                task_id: task_id?,
                updates: updates?,
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

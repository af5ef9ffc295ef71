//! `tasks.sibling_output`.

use super::super::super::reader::{Parameters, Reader, text};
use super::kinds::held;
use taskledger_domain::limits::NAME_CHARS_MAX;
use taskledger_domain::{LeaseId, TaskId, Violation};

/// Beside which task a worker looks, and for which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// The task that the worker holds.
    pub task: TaskId,
    /// The lease; `None`: no lease of this server.
    pub lease: Option<LeaseId>,
    /// The other task.
    pub name: String,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let (task, lease) = held(&mut reader);
        let name = reader.required(
            "name",
            text(NAME_CHARS_MAX),
            "The name of another task below the same parent, or its id.",
        );
        reader.finish(|| {
            Some(Self {
                task: task?,
                lease: lease?,
                name: name?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{ID, faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_task_its_lease_and_a_name_are_read() {
        let given = json!({"task_id": ID, "lease": ID, "name": "fetch"});
        assert_eq!(Params::read(&map(given)).unwrap().name, "fetch");
        let fields: Vec<_> = faults(Params::read(&map(json!({"name": ""}))))
            .into_iter()
            .map(|(field, _)| field)
            .collect();
        assert_eq!(fields, ["task_id", "lease", "name"]);
    }
}

//! `tasks.suspend`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::{Object, held};
use taskledger_domain::{LeaseId, Payload, TaskId, Violation};

/// What a worker wants a person to be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// The task that the worker holds.
    pub task: TaskId,
    /// The lease; `None`: no lease of this server.
    pub lease: Option<LeaseId>,
    /// The question, with everything that belongs to it.
    pub request: Payload,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let (task, lease) = held(&mut reader);
        let about = "What is asked: `question`, `asks` (input, auth), `response_type` (text, confirm, choice, form), `choices`, `schema` or `fields`, `context`, `channel_hint`, `timeout_seconds`, `fallback_policy`, `fallback_value`, `retry_policy`. At most 64 KiB.";
        let request = reader.required("request", Object, about);
        reader.finish(|| {
            Some(Self {
                task: task?,
                lease: lease?,
                request: request?,
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
    fn a_question_is_an_object() {
        let given = json!({"task_id": ID, "lease": ID, "request": {"question": "?"}});
        assert!(Params::read(&map(given)).is_ok());
        assert_eq!(
            faults(Params::read(&map(
                json!({"task_id": ID, "lease": ID, "request": "?"})
            ))),
            [("request".into(), "not an object".into())]
        );
    }
}

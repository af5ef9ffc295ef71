//! `tasks.respond`.

use super::super::super::reader::{Parameters, Reader, TASK_ID, text};
use super::kinds::{Answer, SuspensionText};
use taskledger_domain::limits::KEY_CHARS_MAX;
use taskledger_domain::{Payload, SuspensionId, TaskId, Violation};

/// What a person answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// The suspended task.
    pub task: TaskId,
    /// Identifies the wait that is answered.
    pub suspension: SuspensionId,
    /// An object with the answer as `value`.
    pub answer: Payload,
    /// The person on whose behalf the caller answers.
    pub on_behalf_of: Option<String>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let task = reader.required("task_id", TASK_ID, "The suspended task.");
        let about = "The `suspension_id` that the task shows: an answer to an earlier question is none to this one.";
        let suspension = reader.required("suspension_id", SuspensionText, about);
        let about = "The answer: true or false, one of the choices, a text, or an object, as the question says.";
        let answer = reader.required("value", Answer, about);
        let on_behalf_of = reader.optional(
            "responded_by",
            text(KEY_CHARS_MAX),
            "For whom the caller answers, as a note; who answered is always the caller.",
        );
        reader.finish(|| {
            Some(Self {
                task: task?,
                suspension: suspension?,
                answer: answer?,
                on_behalf_of,
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
    fn answers_are_anything_but_nothing() {
        for value in [json!(true), json!(0), json!("x"), json!({"a": [1]})] {
            let given = json!({"task_id": ID, "suspension_id": ID, "value": value});
            let read = Params::read(&map(given)).unwrap();
            assert_eq!(read.answer.to_map()["value"], value);
        }
        for value in [json!(""), json!([1])] {
            let given = json!({"task_id": ID, "suspension_id": ID, "value": value});
            assert_eq!(
                faults(Params::read(&map(given))),
                [("value".into(), "no answer".into())]
            );
        }
        assert_eq!(
            faults(Params::read(&map(
                json!({"task_id": ID, "suspension_id": "no"})
            ))),
            [
                ("suspension_id".into(), "Invalid UUID format".into()),
                ("value".into(), "missing".into()),
            ]
        );
    }
}

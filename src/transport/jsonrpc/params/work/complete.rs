//! `tasks.complete`.

use super::super::super::reader::{Parameters, Reader};
use super::kinds::{Outcome, held};
use crate::application::api::work::Output;
use taskledger_domain::{LeaseId, TaskId, Violation};

/// What came of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// The task that the worker holds.
    pub task: TaskId,
    /// The lease; `None`: no lease of this server.
    pub lease: Option<LeaseId>,
    /// Becomes the task's `result`.
    pub output: Output,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let (task, lease) = held(&mut reader);
        let about = "Becomes the `result` of the task. At most 1 MiB of JSON and 100 levels; if the output is refused, the attempt continues, and the history shows the refusal. On a socket the whole message has at most 64 KiB; larger ones go over POST.";
        let output = reader.required("output", Outcome, about);
        reader.finish(|| {
            Some(Self {
                task: task?,
                lease: lease?,
                output: output?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{ID, faults, map};
    use super::*;
    use serde_json::json;
    use taskledger_domain::contract::TooLarge;
    use taskledger_domain::limits::{PAYLOAD_BYTES_MAX, PAYLOAD_DEPTH_MAX};

    #[test]
    fn an_output_is_an_object() {
        let given = json!({"task_id": ID, "lease": ID, "output": {"a": [1]}});
        let read = Params::read(&map(given)).unwrap();
        assert_eq!(read.output.whole().unwrap().as_str(), r#"{"a":[1]}"#);
        for wrong in [json!([1]), json!("text"), json!(1)] {
            let given = json!({"task_id": ID, "lease": ID, "output": wrong});
            assert_eq!(
                faults(Params::read(&map(given))),
                [("output".into(), "not an object".into())]
            );
        }
        assert_eq!(
            faults(Params::read(&map(json!({"task_id": ID, "lease": ID})))),
            [("output".into(), "missing".into())]
        );
    }

    #[test]
    fn an_output_is_as_deep_as_inputs_may_be_and_of_one_that_is_larger_the_size_is_kept() {
        let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"x": inner}));
        let of = |output| map(json!({"task_id": ID, "lease": ID, "output": output}));
        assert!(Params::read(&of(nested(PAYLOAD_DEPTH_MAX))).is_ok());
        assert_eq!(
            faults(Params::read(&of(nested(PAYLOAD_DEPTH_MAX + 1)))),
            [("output".into(), "Nested too deep: 101 levels".into())]
        );
        let large = |bytes: usize| json!({"x": "y".repeat(bytes - r#"{"x":""}"#.len())});
        let read = |bytes| Params::read(&of(large(bytes))).unwrap().output;
        assert!(read(PAYLOAD_BYTES_MAX).whole().is_some());
        let too_large = TooLarge {
            key: Some("x".to_owned()),
            key_bytes: 1_048_571,
            bytes: 1_048_577,
            limit: PAYLOAD_BYTES_MAX as u64,
        };
        assert_eq!(read(PAYLOAD_BYTES_MAX + 1), Output::TooLarge(too_large));
    }
}

//! `tasks.fail`.

use super::super::super::reader::{BOOLEAN, Parameters, Reader, text};
use super::kinds::held;
use taskledger_domain::{LeaseId, TaskId, Violation};

/// Bytes of an error.
pub const ERROR_BYTES_MAX: usize = 65_536;

/// Why an attempt has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// The claimed task.
    pub task: TaskId,
    /// The lease; `None`: no lease of this server.
    pub lease: Option<LeaseId>,
    /// Becomes the task's `error`; never empty, at most [`ERROR_BYTES_MAX`] bytes.
    pub error: String,
    /// Whether another attempt may do better.
    pub retryable: bool,
    /// Whether the worker does not do the task.
    pub rejected: bool,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let (task, lease) = held(&mut reader);
        let error = reader.required(
            "error",
            text(ERROR_BYTES_MAX),
            "What went wrong, for people; becomes the `error` of the task. What exceeds 65,536 bytes is cut off.",
        );
        let retryable = reader.with_default(
            "retryable",
            BOOLEAN,
            true,
            "Whether another attempt may do better; `false` fails the task at once.",
        );
        let rejected = reader.with_default(
            "rejected",
            BOOLEAN,
            false,
            "Whether the worker rejects the task because of a policy and not because of a fault: no attempt follows, and a run that failed only for this reason is rejected.",
        );
        reader.finish(|| {
            Some(Self {
                task: task?,
                lease: lease?,
                error: cut(error?),
                retryable,
                rejected,
            })
        })
    }
}

/// Characters are counted above, of which some take several bytes.
fn cut(mut error: String) -> String {
    error.truncate(error.floor_char_boundary(ERROR_BYTES_MAX));
    error
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{ID, faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn an_attempt_may_be_tried_again_unless_the_worker_says_otherwise() {
        let given = json!({"task_id": ID, "lease": ID, "error": "no paper"});
        assert!(Params::read(&map(given.clone())).unwrap().retryable);
        let mut last = given;
        last["retryable"] = json!(false);
        assert!(!Params::read(&map(last)).unwrap().retryable);
    }

    #[test]
    fn an_error_has_a_limit() {
        let of = |error: String| json!({"task_id": ID, "lease": ID, "error": error});
        let long = Params::read(&map(of("é".repeat(ERROR_BYTES_MAX - 1)))).unwrap();
        assert_eq!(long.error.len(), ERROR_BYTES_MAX);
        let odd = Params::read(&map(of(format!("x{}", "é".repeat(ERROR_BYTES_MAX - 1))))).unwrap();
        assert_eq!(odd.error.len(), ERROR_BYTES_MAX - 1);
        for (wrong, reason) in [
            (String::new(), "empty"),
            ("x".repeat(ERROR_BYTES_MAX + 1), "too long"),
        ] {
            assert_eq!(
                faults(Params::read(&map(of(wrong)))),
                [("error".into(), reason.into())]
            );
        }
    }
}

//! `tasks.fail`.

use super::super::super::reader::{BOOLEAN, Parameters, Reader};
use super::kinds::{CutText, held};
use taskledger_domain::{LeaseId, TaskId, Violation};

/// Bytes of an error.
pub const ERROR_BYTES_MAX: usize = 65_536;

/// Why an attempt has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// The task that the worker holds.
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
            CutText {
                bytes_max: ERROR_BYTES_MAX,
            },
            "What went wrong, for people; becomes the `error` of the task. The first 16 KiB are kept.",
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
                error: error?,
                retryable,
                rejected,
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
    fn an_attempt_may_be_tried_again_unless_the_worker_says_otherwise() {
        let given = json!({"task_id": ID, "lease": ID, "error": "no paper"});
        assert!(Params::read(&map(given.clone())).unwrap().retryable);
        let mut last = given;
        last["retryable"] = json!(false);
        assert!(!Params::read(&map(last)).unwrap().retryable);
    }

    #[test]
    fn an_error_is_cut_and_not_lost() {
        let of = |error: String| json!({"task_id": ID, "lease": ID, "error": error});
        let long = Params::read(&map(of("é".repeat(ERROR_BYTES_MAX - 1)))).unwrap();
        assert_eq!(long.error.len(), ERROR_BYTES_MAX);
        let odd = Params::read(&map(of(format!("x{}", "é".repeat(ERROR_BYTES_MAX - 1))))).unwrap();
        assert_eq!(odd.error.len(), ERROR_BYTES_MAX - 1);
        let longer = Params::read(&map(of("x".repeat(10 * ERROR_BYTES_MAX)))).unwrap();
        assert_eq!(longer.error, "x".repeat(ERROR_BYTES_MAX));
        assert_eq!(
            faults(Params::read(&map(of(String::new())))),
            [("error".into(), "empty".into())]
        );
    }
}

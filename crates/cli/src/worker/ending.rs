//! How attempts end, as lines for people and for programs.

use crate::output::{Output, printable};
use serde_json::json;
use std::io;
use std::time::Duration;

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The server has the output.
    Completed,
    /// The server has the error.
    Failed,
    /// The server knows that the program does not do the task, and why.
    Rejected,
    /// The task was cancelled, or its time was up; the program is stopped.
    Cancelled,
    /// The lease is not this worker's any more; the program is killed.
    Lost,
    /// The worker ends; another one does it again.
    Released,
    /// The server has not been told. The lease ends by itself.
    Untold,
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
            Self::Released => "released",
            Self::Untold => "untold",
        }
    }
}

/// An attempt that is over.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) task_id: String,
    pub(super) method: String,
    pub(super) attempt: u64,
    pub(super) outcome: Outcome,
    /// Why, unless it is completed.
    pub(super) detail: Option<String>,
    pub(super) took: Duration,
    /// Why the worker should claim nothing more: the program cannot be started.
    pub(super) fatal: Option<String>,
}

impl Ending {
    /// What people are told of an outcome that the server did not take.
    pub(super) fn complaint(&self) -> Option<String> {
        let what = match self.outcome {
            Outcome::Lost => "the attempt is not this worker's any more",
            Outcome::Untold => "the outcome was not told",
            Outcome::Completed
            | Outcome::Failed
            | Outcome::Rejected
            | Outcome::Cancelled
            | Outcome::Released => return None,
        };
        let reason = self.detail.as_deref().map(printable);
        let reason = reason.map(|text| format!(": {text}")).unwrap_or_default();
        let (task, attempt) = (printable(&self.task_id), self.attempt);
        Some(format!("[{task}] attempt {attempt}: {what}{reason}"))
    }

    /// One line.
    pub(super) fn show(&self, out: &mut Output) -> io::Result<()> {
        if out.is_json() {
            let mut line = json!({
                "task_id": self.task_id,
                "method": self.method,
                "attempt": self.attempt,
                "outcome": self.outcome.as_str(),
                "duration_ms": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
            });
            if let Some(detail) = &self.detail {
                line["detail"] = detail.as_str().into();
            }
            return out.line(line.to_string());
        }
        let detail = self.detail.as_deref().map(printable);
        let detail = detail.map(|text| format!("  {text}")).unwrap_or_default();
        out.line(format!(
            "{:<9}  {}  {}  attempt {}  {:.1} s{detail}",
            self.outcome.as_str(),
            printable(&self.task_id),
            printable(&self.method),
            self.attempt,
            self.took.as_secs_f64(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_hear_of_outcomes_that_the_server_did_not_take() {
        let ending = |outcome| Ending {
            task_id: "t".to_owned(),
            method: "m".to_owned(),
            attempt: 2,
            outcome,
            detail: Some("the task was cancelled".to_owned()),
            took: Duration::ZERO,
            fatal: None,
        };
        let lost =
            "[t] attempt 2: the attempt is not this worker's any more: the task was cancelled";
        let untold = "[t] attempt 2: the outcome was not told: the task was cancelled";
        for (outcome, expected) in [
            (Outcome::Lost, Some(lost)),
            (Outcome::Untold, Some(untold)),
            (Outcome::Completed, None),
            (Outcome::Failed, None),
            (Outcome::Rejected, None),
            (Outcome::Cancelled, None),
            (Outcome::Released, None),
        ] {
            assert_eq!(ending(outcome).complaint().as_deref(), expected);
        }
    }
}

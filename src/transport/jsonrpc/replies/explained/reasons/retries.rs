//! Reasons that say whether a failed task used all its attempts, and if not, why.

use super::Speaker;
use serde_json::{Value, json};
use taskledger_domain::Timestamp;
use taskledger_domain::flow::FailureReason;

/// What became of the retries.
pub(super) struct Retries {
    /// The code, for programs.
    pub(super) code: &'static str,
    /// For people: goes on after `failed`.
    pub(super) words: String,
    details: Vec<(&'static str, Value)>,
}

impl Retries {
    fn of(code: &'static str, words: String) -> Self {
        Self {
            code,
            words,
            details: Vec::new(),
        }
    }

    /// Retries were left, and none follows, because of this.
    fn left(because: &'static str, words: &str) -> Self {
        Self {
            details: vec![("no_attempt_because", json!(because))],
            ..Self::of(
                "not_possible",
                format!(", and no further attempt follows because {words}"),
            )
        }
    }

    /// Adds what is particular about them.
    pub(super) fn add_to(&self, details: &mut Value) {
        for (name, value) in &self.details {
            details[*name] = value.clone();
        }
    }
}

impl Speaker<'_> {
    pub(super) fn retries(&self, reason: Option<FailureReason>) -> Retries {
        let budget = self.e.attempts;
        match (budget.max, reason) {
            (_, Some(FailureReason::Group)) => {
                return Retries::of("not_applicable", String::new());
            }
            (0 | 1, _) => return Retries::of("not_asked_for", String::new()),
            // Attempts are numbered over all runs, and the budget is that of one.
            (max, _) if budget.used >= max && self.e.attempt > budget.used => {
                let attempt = self.e.attempt;
                let words = format!(" in attempt {attempt}, the last of {max} in its run");
                return Retries::of("exhausted", words);
            }
            (max, _) if budget.used >= max => {
                let words = format!(" in the last of {max} attempts");
                return Retries::of("exhausted", words);
            }
            _ => {}
        }
        match reason {
            Some(FailureReason::NotRetryable) => {
                Retries::left("not_retryable", "the failure is non-retryable")
            }
            Some(
                FailureReason::Executor | FailureReason::Timeout | FailureReason::InvalidResult,
            ) => self.out_of_time(),
            Some(FailureReason::Rejected) => {
                Retries::left("rejected", "the executor or worker rejected it")
            }
            Some(FailureReason::Deadline) => Retries::left("deadline", "its deadline has passed"),
            Some(
                FailureReason::ExecutorNotFound
                | FailureReason::Interrupted
                | FailureReason::InvalidInputs
                | FailureReason::Group
                | FailureReason::Released
                | FailureReason::NotStarted
                | FailureReason::Unanswered
                | FailureReason::Declined,
            )
            | None => Retries::left("kind", "failures of this kind are not retried"),
        }
    }

    /// Another attempt would have begun too late: after `max_elapsed_seconds`, or after the deadline.
    fn out_of_time(&self) -> Retries {
        let deadline = self.e.deadline.map(|deadline| deadline.at);
        let Some(max_ms) = self.facts.max_elapsed_ms(self.e.spec_at) else {
            return Retries::left("deadline", "the next one would start after its deadline");
        };
        let spent = self.first_start().map(|first| first.plus_ms(max_ms));
        if let (Some(deadline), Some(spent)) = (deadline, spent)
            && deadline < spent
        {
            return Retries::left("deadline", "the next one would start after its deadline");
        }
        let seconds = max_ms as f64 / 1000.0;
        let since = match self.first_start() {
            Some(first) => format!("of the first one at {first}"),
            None => "of the first one".to_owned(),
        };
        let words = format!(
            "the next one would start more than {seconds} s after the start {since}, which \
             `max_elapsed_seconds` does not allow"
        );
        let mut left = Retries::left("max_elapsed", &words);
        left.details.push(("max_elapsed_seconds", json!(seconds)));
        left
    }

    /// When the first attempt of the latest run began, if it is among those that are known.
    fn first_start(&self) -> Option<Timestamp> {
        let latest = self.latest()?;
        let of_run =
            |attempt: &&crate::application::api::views::Attempt| attempt.run_id == latest.run_id;
        let mut attempts = self.attempts.iter().filter(of_run);
        let first = attempts.next()?;
        // Earlier ones of the same run may not be among them.
        let used = self.e.attempts.used as usize;
        (attempts.count() + 1 >= used).then_some(first.started_at)?
    }
}

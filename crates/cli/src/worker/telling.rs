//! Reports the outcome of an attempt whose program has ended to the server, again and again until it answers.

use super::calls::{Answer, Shared};
use super::claim::Claim;
use super::ending::Outcome;
use super::pace::Pace;
use super::program::Verdict;
use super::stop::say;
use crate::ApiError;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// How long one answer is awaited: longer than a server takes to refuse a call as too slow.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// How long a worker that must end tries to tell an outcome.
const LAST_WORDS_TIME: Duration = Duration::from_secs(5);
/// Answers that no server gives, after which an outcome is not told any more. A proxy that refuses large requests
/// answers so for ever.
const NO_ANSWERS_MAX: u32 = 30;

/// What became of an attempt, and why.
pub(super) type Told = (Outcome, Option<String>);

/// Tells how the program ended.
pub(super) async fn told(shared: &Shared, claim: &Claim, verdict: Verdict) -> Told {
    let outcome = match &verdict {
        Verdict::Completed(_) | Verdict::Failed { .. } => Outcome::Failed,
        Verdict::Rejected { .. } => Outcome::Rejected,
    };
    let (error, more) = match verdict {
        Verdict::Completed(output) => {
            let answer = insisted(shared, claim, "tasks.complete", json!({"output": output})).await;
            match answer {
                Err(NotTold::Refused(error @ ApiError::Refused { code, .. })) => {
                    let (task, attempt) = (claim.task_id(), claim.lease.attempt);
                    let text = format!("the output is refused: {error}");
                    say(&format!("[{task}] attempt {attempt}: {text}"));
                    // Another attempt may keep what the task declares; else somebody must mend the program.
                    (text, json!({"retryable": CONTRACT_CODES.contains(&code)}))
                }
                Ok(_) => return (Outcome::Completed, None),
                Err(other) => return other.into(),
            }
        }
        Verdict::Failed { error, retryable } => (error, json!({"retryable": retryable})),
        Verdict::Rejected { error } => (error, json!({"rejected": true})),
    };
    let mut params = more;
    params["error"] = json!(error);
    match insisted(shared, claim, "tasks.fail", params).await {
        Ok(result) => {
            let again = result.get("status").and_then(Value::as_str) == Some("pending");
            let detail = if again {
                format!("{error} (tried again)")
            } else {
                error
            };
            (outcome, Some(detail))
        }
        Err(other) => other.into(),
    }
}

/// Gives the task back.
pub(super) async fn released(shared: &Shared, claim: &Claim) -> Told {
    match insisted(shared, claim, "tasks.release", json!({})).await {
        Ok(_) => (Outcome::Released, None),
        Err(other) => other.into(),
    }
}

/// What is said of outputs that are not what their tasks declare.
const CONTRACT_CODES: [i64; 2] = [-31024, -31025];

/// Why the server did not take an outcome.
enum NotTold {
    NotHeld(String),
    Refused(ApiError),
    GivenUp(ApiError),
}

impl From<NotTold> for Told {
    fn from(other: NotTold) -> Self {
        match other {
            NotTold::NotHeld(reason) => (Outcome::Lost, Some(reason)),
            NotTold::Refused(error) | NotTold::GivenUp(error) => {
                (Outcome::Untold, Some(error.to_string()))
            }
        }
    }
}

/// Makes a call of this attempt until it is answered, or the worker must end.
async fn insisted(
    shared: &Shared,
    claim: &Claim,
    method: &str,
    mut params: Value,
) -> Result<Value, NotTold> {
    params["task_id"] = json!(claim.task_id());
    params["lease"] = json!(claim.lease.token);
    let mut pace = Pace::new(shared.clock.clone());
    let mut last = ApiError::Connection("the worker has ended before an answer came".to_owned());
    let mut no_answers = 0;
    let mut overdue = std::pin::pin!(async {
        shared.stop.running.cancelled().await;
        sleep(LAST_WORDS_TIME).await;
    });
    loop {
        let answer = tokio::select! {
            biased;
            answer = shared.call(method, params.clone(), ANSWER_TIME_MAX) => answer,
            () = &mut overdue => return Err(NotTold::GivenUp(last)),
        };
        match answer {
            Answer::Result(result) => return Ok(result),
            Answer::NotHeld(reason) => return Err(NotTold::NotHeld(reason)),
            Answer::Refused(error) => return Err(NotTold::Refused(error)),
            Answer::Later(error, asked) => {
                if matches!(error, ApiError::Protocol(_)) {
                    no_answers += 1;
                }
                if no_answers > NO_ANSWERS_MAX {
                    return Err(NotTold::GivenUp(error));
                }
                last = error;
                tokio::select! {
                    () = sleep(pace.pause(asked)) => {}
                    () = &mut overdue => return Err(NotTold::GivenUp(last)),
                }
            }
        }
    }
}

//! Reports on a task to the server, again and again until it answers.
//!
//! The same bytes each time: the server takes equal ones once.

use super::client::{Client, connected, failed, say};
use crate::output::printable;
use crate::{ApiError, CliError, Remote};
use std::time::Duration;
use taskledger_eventbus::{
    Message as _, PublishTaskResultRequest, TaskResult, TaskStatus, retry_after,
};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

/// Before the first repetition. Short: a server that restarts is back within a second.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
/// Before any repetition: the result must arrive soon after the server is back, before another agent has the task.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long one answer is awaited: longer than a server takes to refuse a call as too slow.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// How long a result is told at last, once the user has stopped the command.
const LAST_WORDS_TIME: Duration = Duration::from_secs(3);
/// Bytes of a message that every server reads, whatever its `--broker-message-bytes`.
const BYTES_READ: usize = 64 * 1024;
/// So often in a row a larger one gets `RESOURCE_EXHAUSTED` until it counts as too large: the caller may have been too
/// fast.
const EXHAUSTED_MAX: u32 = 5;

/// What an answer that is no success asks for.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The same again.
    Later,
    /// The result is none that the server keeps.
    Unfit,
    /// The server or a proxy has had too much, of calls or of this message.
    Exhausted,
    /// The credentials do not hold, or are not enough.
    Denied,
    /// The task is not this agent's any more.
    Over,
}

impl From<Code> for Verdict {
    fn from(code: Code) -> Self {
        match code {
            Code::Unavailable
            | Code::Unknown
            | Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::Internal => Self::Later,
            Code::InvalidArgument | Code::OutOfRange => Self::Unfit,
            Code::ResourceExhausted => Self::Exhausted,
            Code::Unauthenticated | Code::PermissionDenied => Self::Denied,
            Code::Ok
            | Code::NotFound
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::Unimplemented
            | Code::DataLoss => Self::Over,
        }
    }
}

/// Tells how a task has ended, until that is answered or the user stops it. A result that the server does not keep
/// fails its task.
///
/// # Errors
/// The credentials do not hold any more.
pub(super) async fn told(
    remote: &Remote,
    client: &Client,
    result: TaskResult,
    stop: &CancellationToken,
) -> Result<(), CliError> {
    let task = printable(&result.task_id).to_string();
    let refused = |status: &Status| say(&format!("[{task}] {}", refusal(status)));
    let Err(status) = insisted(remote, client, &result, stop).await? else {
        return Ok(());
    };
    refused(&status);
    let is_unfit = matches!(
        Verdict::from(status.code()),
        Verdict::Unfit | Verdict::Exhausted
    );
    if is_unfit
        && let Err(status) = insisted(remote, client, &instead(result, &status), stop).await?
    {
        refused(&status);
    }
    Ok(())
}

fn refusal(status: &Status) -> String {
    format!("the result is not taken: {}", status.message())
}

/// What is said of a task whose result is refused.
fn instead(result: TaskResult, refused: &Status) -> TaskResult {
    TaskResult {
        status: TaskStatus::Failed.into(),
        result: None,
        error_message: refusal(refused),
        ..result
    }
}

/// Makes the call until it is answered, over new connections; the last answer once the user has stopped it.
async fn insisted(
    remote: &Remote,
    client: &Client,
    result: &TaskResult,
    stop: &CancellationToken,
) -> Result<Result<(), Status>, CliError> {
    let mut open = Some(client.clone());
    let (mut in_vain, mut exhausted) = (0_u32, 0_u32);
    let mut last = Status::unavailable("the command has ended before an answer came");
    let mut overdue = std::pin::pin!(async {
        stop.cancelled().await;
        sleep(LAST_WORDS_TIME).await;
    });
    loop {
        let is_last = stop.is_cancelled();
        let answer = tokio::select! {
            biased;
            answer = tried(remote, &mut open, result) => answer?,
            () = &mut overdue => return Ok(Err(last)),
        };
        let Err(status) = answer else {
            return Ok(Ok(()));
        };
        match Verdict::from(status.code()) {
            Verdict::Later => (open, exhausted) = (None, 0),
            Verdict::Exhausted => {
                exhausted += 1;
                if result.encoded_len() >= BYTES_READ && exhausted >= EXHAUSTED_MAX {
                    return Ok(Err(status));
                }
            }
            Verdict::Denied => return Err(failed(remote, &status)),
            Verdict::Unfit | Verdict::Over => return Ok(Err(status)),
        }
        if is_last {
            return Ok(Err(Status::unavailable(status.message())));
        }
        if in_vain == 0 {
            let (task, why) = (printable(&result.task_id), status.message());
            say(&format!(
                "[{task}] the result is sent again until the server confirms it: {why}"
            ));
        }
        last = Status::unavailable(status.message());
        let asked = retry_after(&status).unwrap_or_default().min(PAUSE_MAX);
        tokio::select! {
            () = sleep(pause(in_vain).max(asked)) => {}
            () = stop.cancelled() => {}
        }
        in_vain = in_vain.saturating_add(1);
    }
}

/// Makes the call once, over a new connection if there is none.
async fn tried(
    remote: &Remote,
    open: &mut Option<Client>,
    result: &TaskResult,
) -> Result<Result<(), Status>, CliError> {
    let client = match open {
        Some(client) => client,
        None => match connected(remote).await {
            Ok(client) => open.insert(client),
            Err(CliError::Api(ApiError::Connection(text))) => {
                return Ok(Err(Status::unavailable(text)));
            }
            Err(error) => return Err(error),
        },
    };
    let request = PublishTaskResultRequest {
        result: Some(result.clone()),
    };
    let answer = timeout(ANSWER_TIME_MAX, client.publish_task_result(request)).await;
    let late = || Status::deadline_exceeded(format!("no answer within {ANSWER_TIME_MAX:?}"));
    Ok(answer.unwrap_or_else(|_| Err(late())).map(|_| ()))
}

/// Grows with each call in vain.
fn pause(in_vain: u32) -> Duration {
    let pause = PAUSE_FIRST.saturating_mul(2_u32.saturating_pow(in_vain));
    pause.min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        let whole: Vec<u128> = (0..7).map(|n| pause(n).as_millis()).collect();
        assert_eq!(whole, [250, 500, 1000, 2000, 4000, 5000, 5000]);
        assert_eq!(pause(u32::MAX), PAUSE_MAX);
    }

    #[test]
    fn a_refused_result_fails_its_task_with_the_reason() {
        let result = TaskResult {
            task_id: "t".to_owned(),
            status: TaskStatus::Completed.into(),
            result: Some(prost_types::Struct::default()),
            executor_agent_id: "robot".to_owned(),
            ..TaskResult::default()
        };
        let failed = instead(result, &Status::invalid_argument("result: sum is missing"));
        assert_eq!(
            (failed.status(), &failed.result),
            (TaskStatus::Failed, &None)
        );
        let expected = "the result is not taken: result: sum is missing";
        assert_eq!(failed.error_message, expected);
        assert_eq!(
            (&*failed.task_id, &*failed.executor_agent_id),
            ("t", "robot")
        );
    }
}

//! `PublishTaskProgress` and `PublishTaskResult`: an agent reports on a task.
//!
//! The wire has no lease. What an agent holds through a stream says which task it means and by which lease; else the
//! task is looked up, and the lease of the agent with it. The first end of a task counts.

use super::held::Agent;
use super::live::{Content, Report};
use super::publish::ID_CHARS_MAX;
use super::published::kept_time;
use super::spoken::Spoken;
use super::values::{invalid, json_of, name_of, time_of};
use super::words::{Digest as Words, Word};
use super::{Bus, LEASE_MS, status};
use crate::application::Context;
use crate::application::api::views::TaskRow;
use crate::application::api::work::{
    Claim, Complete, Connection, Fail, LeaseLoss, Output, Renew, Wanted,
};
use crate::application::api::{Cancel, Consistency, Error, Reply, Request, UseCase};
use sha2::{Digest, Sha256};
use std::time::Duration;
use taskledger_domain::contract::TooLarge;
use taskledger_domain::flow::Remarks;
use taskledger_domain::limits::{
    ERROR_BYTES_MAX, KEY_CHARS_MAX, MESSAGE_CHARS_MAX, PAYLOAD_BYTES_MAX, REMARK_BYTES_MAX, cut,
};
use taskledger_domain::task::{Progress, Status as TaskState};
use taskledger_domain::{LeaseId, Payload, TaskId};
use taskledger_eventbus::{Message, TaskProgress, TaskResult, TaskStatus};
use tokio::sync::MutexGuard;
use tokio::time::Instant;
use tonic::Status;

/// The member with what a task has produced.
const RESULT: &str = "result";
/// What stands in `error` when an agent gives no reason.
const NO_REASON: &str = "the agent gave no reason";

/// How a task ends, as an agent says it.
enum End {
    Completed(Output),
    Failed(String),
    Cancelled(String),
}

impl Bus {
    /// Notes how far a task is, and keeps it for its agent.
    pub(super) async fn progressed(
        &self,
        context: &Context,
        progress: Option<TaskProgress>,
    ) -> Result<(), Status> {
        let said = progress.ok_or_else(|| Status::invalid_argument("progress cannot be nil"))?;
        self.named(context, &said.task_id, &said.executor_agent_id)?;
        match TaskStatus::try_from(said.status) {
            Ok(TaskStatus::Unspecified | TaskStatus::InProgress) => {}
            Ok(
                TaskStatus::Pending
                | TaskStatus::Completed
                | TaskStatus::Failed
                | TaskStatus::Cancelled,
            )
            | Err(_) => {
                return Err(invalid(
                    "status",
                    "progress is of tasks in progress; results are published with PublishTaskResult",
                ));
            }
        }
        let percent = u8::try_from(said.progress_percentage)
            .ok()
            .filter(|it| *it <= 100);
        let percent = percent.ok_or_else(|| {
            invalid(
                "progress_percentage",
                format!("{} is not in 0-100", said.progress_percentage),
            )
        })?;
        stamped(said.updated_at, "updated_at")?;
        let sent = said.clone();
        let data = said.progress_data;
        let data = data.map(|it| remark(it, "progress_data", REMARK_BYTES_MAX));
        let remarks = Remarks::of(data.transpose()?, None);
        let spoken = self
            .spoken(context, &said.task_id, &said.executor_agent_id)
            .await?;
        let lease = match spoken.lease {
            Some(lease) => lease,
            None => self.claimed(context, &spoken).await?,
        };
        let message = Some(said.progress_message).filter(|it| !it.is_empty());
        let message: Option<String> =
            message.map(|it| it.chars().take(MESSAGE_CHARS_MAX).collect());
        let data = remarks.as_ref().and_then(|it: &Remarks| it.data.as_ref());
        let content = Content::of(percent.into(), message.as_deref().unwrap_or_default(), data);
        let report = self.live.begin(Report {
            task: spoken.task,
            content,
            progress: sent,
        });
        let renew = Renew {
            task: spoken.task,
            lease,
            lease_ms: None,
            progress: Some(Progress::from_millionths(u32::from(percent) * 10_000)),
            message,
            remarks,
            output: None,
        };
        match self.service.call(context, Request::Renew(renew)).await {
            Ok(Reply::Renewed(renewed)) if renewed.stop.is_none() => {
                if let Some(report) = report {
                    report.accepted();
                }
                Ok(())
            }
            Ok(_) => Err(over("the task was taken back; stop working on it")),
            Err(Error::LeaseNotHeld { reason, .. }) => Err(lost(reason)),
            Err(error) => Err(status::of(&*self.clock, error)),
        }
    }

    /// Ends a task.
    pub(super) async fn ended(
        &self,
        context: &Context,
        result: Option<TaskResult>,
    ) -> Result<(), Status> {
        let said = result.ok_or_else(|| Status::invalid_argument("result cannot be nil"))?;
        let message: Words = Sha256::digest(said.encode_to_vec()).into();
        self.named(context, &said.task_id, &said.executor_agent_id)?;
        let completed_at = stamped(said.completed_at, "completed_at")?;
        let written = kept_time(completed_at, "completed_at")?;
        let execution = said.execution_metadata;
        let execution = execution.map(|it| remark(it, "execution_metadata", REMARK_BYTES_MAX));
        let execution = execution.transpose()?;
        let result = said.result;
        let reason = match said.error_message.is_empty() {
            true => NO_REASON.to_owned(),
            false => said.error_message,
        };
        let (end, remarks) = match TaskStatus::try_from(said.status) {
            Ok(TaskStatus::Completed) => {
                let output = result.map_or_else(|| Ok(Output::Whole(Payload::empty())), output);
                (End::Completed(output?), Remarks::of(None, execution))
            }
            Ok(TaskStatus::Failed) => (End::Failed(reason), partial(result, execution)?),
            Ok(TaskStatus::Cancelled) => (End::Cancelled(reason), partial(result, execution)?),
            Ok(TaskStatus::Unspecified | TaskStatus::Pending | TaskStatus::InProgress) | Err(_) => {
                return Err(invalid(
                    "status",
                    "a result is TASK_STATUS_COMPLETED (3), _FAILED (4) or _CANCELLED (5)",
                ));
            }
        };
        let spoken = self
            .spoken(context, &said.task_id, &said.executor_agent_id)
            .await?;
        let given = self.given(context, &spoken).await?;
        // Word for word what ended a task of this id: its answer was lost, and no later attempt is meant.
        let agent = &spoken.agent;
        let before = self.held.said(agent, &said.task_id, &message);
        if before.is_some_and(|word| word.is_repeated_by(given)) {
            return Ok(());
        }
        // One after the other, if nobody holds it: the first one begins and ends it, the others are told so.
        let _turn = match spoken.lease {
            Some(_) => None,
            None => Some(self.turn(spoken.task).await),
        };
        // Before the task ends: the next attempt may be given to the same agent while this call is under way.
        let heard_at = self.clock.now();
        let remarks = Some(Remarks::of_end(remarks, &written));
        self.end(context, &spoken, end, remarks).await?;
        let word = Word::of(message, spoken.task, given, &completed_at, heard_at);
        self.held.ended(agent, spoken.task, &said.task_id, word);
        Ok(())
    }

    async fn end(
        &self,
        context: &Context,
        spoken: &Spoken,
        end: End,
        remarks: Option<Remarks>,
    ) -> Result<(), Status> {
        let task = spoken.task;
        if spoken.lease.is_none()
            && let Some(answered) = self.repeated(context, task, &end).await?
        {
            return answered;
        }
        let lease = match (spoken.lease, &end) {
            (Some(lease), _) => Some(lease),
            // Whoever may cancel a task may, held or not.
            (None, End::Cancelled(_)) => None,
            (None, End::Completed(_) | End::Failed(_)) => {
                match self.claimed(context, spoken).await {
                    Ok(lease) => Some(lease),
                    // The same call again may have found the lease meanwhile, and used it.
                    Err(status) => match self.repeated(context, task, &end).await? {
                        Some(Ok(())) => return Ok(()),
                        Some(Err(_)) | None => return Err(status),
                    },
                }
            }
        };
        let request = match (&end, lease) {
            (End::Completed(output), Some(lease)) => Request::Complete(Complete {
                task,
                lease,
                output: output.clone(),
                remarks,
            }),
            (End::Failed(error), Some(lease)) => Request::Fail(Fail {
                task,
                lease,
                error: error.clone(),
                // As often as the task says.
                retryable: true,
                rejected: false,
                remarks,
                breach: None,
            }),
            (End::Completed(_) | End::Failed(_), None) => {
                return Err(over("the agent does not hold the task"));
            }
            (End::Cancelled(reason), _) => Request::Cancel(Cancel {
                task,
                cascade: true,
                reason: Some(reason.clone()),
                remarks,
            }),
        };
        match self.service.call(context, request).await {
            Ok(_) => {
                self.forget(&spoken.agent, task);
                Ok(())
            }
            Err(Error::LeaseNotHeld { reason, .. }) => {
                self.forget(&spoken.agent, task);
                match self.repeated(context, task, &end).await? {
                    Some(answered) => answered,
                    None => Err(lost(reason)),
                }
            }
            Err(Error::Refused(refused)) => match self.repeated(context, task, &end).await? {
                Some(answered) => answered,
                None => Err(status::of(&*self.clock, Error::Refused(refused))),
            },
            Err(error) => Err(status::of_members(&*self.clock, error, said_of)),
        }
    }

    /// The answer to an end of a task that has ended already: an equal one is heard once. `None`: it has not.
    async fn repeated(
        &self,
        context: &Context,
        task: TaskId,
        end: &End,
    ) -> Result<Option<Result<(), Status>>, Status> {
        let row = self.row(context, task).await?;
        let is_equal = match (row.status, end) {
            (TaskState::Pending | TaskState::InProgress, _) => return Ok(None),
            (TaskState::Completed, End::Completed(Output::Whole(output))) => {
                row.result.as_ref() == Some(output)
            }
            (TaskState::Failed, End::Failed(error))
            | (TaskState::Cancelled, End::Cancelled(error)) => row
                .error
                .as_deref()
                .is_some_and(|it| it == cut(error, ERROR_BYTES_MAX)),
            (TaskState::Completed | TaskState::Failed | TaskState::Cancelled, _) => false,
        };
        let status = row.status;
        Ok(Some(match is_equal {
            true => Ok(()),
            false => Err(over(&format!("the task is {} already", status.as_str()))),
        }))
    }

    /// What of a message says who speaks of what.
    fn named(&self, context: &Context, task_id: &str, executor: &str) -> Result<(), Status> {
        if task_id.is_empty() {
            return Err(Status::invalid_argument("task_id cannot be empty"));
        }
        if executor.is_empty() {
            return Err(Status::invalid_argument(
                "executor_agent_id cannot be empty",
            ));
        }
        name_of(task_id, "task_id", ID_CHARS_MAX)?;
        name_of(executor, "executor_agent_id", KEY_CHARS_MAX)?;
        let saying = ("executor_agent_id", UseCase::CompleteTask);
        self.speaks_for(context, executor, saying)
    }

    /// Claims a task that its agent speaks of without holding it: one that nobody works on.
    async fn claimed(&self, context: &Context, spoken: &Spoken) -> Result<LeaseId, Status> {
        let row = self.row(context, spoken.task).await?;
        let method = row.method.as_deref().unwrap_or_default();
        let responder = super::patterns::responder_of(method);
        if responder.is_some_and(|it| *it != *spoken.agent.name) {
            return Err(Status::permission_denied(
                "task_id: the task is addressed to another agent",
            ));
        }
        match row.status {
            TaskState::Pending => {}
            TaskState::InProgress => return Err(over("another agent works on the task")),
            TaskState::Completed | TaskState::Failed | TaskState::Cancelled => {
                return Err(over(&format!(
                    "the task is {} already",
                    row.status.as_str()
                )));
            }
        }
        let claim = Claim {
            worker: Some(spoken.agent.name.clone()),
            wanted: Wanted::Task(spoken.task),
            max: 1,
            lease_ms: LEASE_MS,
            wait: Duration::ZERO,
            connection: Connection::Poll,
            heard_at: Instant::now(),
        };
        let claims = self.service.claim(context, claim).await;
        let claims = claims.map_err(|error| status::of(&*self.clock, error))?;
        let first = claims.claims.first().map(|claimed| claimed.lease);
        first.ok_or_else(|| over("the task cannot start now"))
    }

    pub(super) async fn row(
        &self,
        context: &Context,
        task: TaskId,
    ) -> Result<std::sync::Arc<TaskRow>, Status> {
        let found = self.service.get(context, task, Consistency::Strong).await;
        match found {
            Ok(view) => Ok(view.row),
            Err(Error::Refused(_)) => Err(Status::not_found("task_id: no such task")),
            Err(error) => Err(status::of(&*self.clock, error)),
        }
    }

    /// Waits until nobody else is ending the task, as far as this server knows.
    async fn turn(&self, task: TaskId) -> MutexGuard<'_, ()> {
        let place = usize::from(task.0.as_bytes()[15]) % self.turns.len();
        self.turns[place].lock().await
    }

    fn forget(&self, agent: &Agent, task: TaskId) {
        self.held.forget(agent, task);
        self.room.notify_waiters();
    }
}

fn stamped(
    given: Option<prost_types::Timestamp>,
    field: &str,
) -> Result<prost_types::Timestamp, Status> {
    let given =
        given.ok_or_else(|| Status::invalid_argument(format!("{field} cannot be empty")))?;
    time_of(given, field).map(|_| given)
}

/// What is kept of a task that was not completed.
fn partial(
    result: Option<prost_types::Struct>,
    execution: Option<Payload>,
) -> Result<Option<Remarks>, Status> {
    let result = result.map(|it| remark(it, RESULT, PAYLOAD_BYTES_MAX));
    Ok(Remarks::of(result.transpose()?, execution))
}

/// What a task has produced.
fn output(given: prost_types::Struct) -> Result<Output, Status> {
    let output = TooLarge::unless_fits(&json_of(given, RESULT)?).map(Output::from);
    output.map_err(|unfit| {
        let (reason, expected) = (unfit.reason(), unfit.expected());
        invalid(RESULT, format!("{reason}, expected {expected}"))
    })
}

/// What agents call a member of an end.
fn said_of<'a>(field: &'a str, _: &str) -> status::Called<'a> {
    status::Called::Name(match field {
        "output" => RESULT,
        field => field,
    })
}

/// What a task can keep of a struct.
fn remark(given: prost_types::Struct, field: &str, bytes_max: usize) -> Result<Payload, Status> {
    let payload = Payload::checked(&json_of(given, field)?);
    let payload = payload.map_err(|unfit| {
        invalid(
            field,
            format!("{}, expected {}", unfit.reason(), unfit.expected()),
        )
    })?;
    let bytes = payload.as_str().len();
    match bytes <= bytes_max {
        true => Ok(payload),
        false => Err(invalid(
            field,
            format!("Too large: {bytes} bytes of JSON, expected at most {bytes_max} bytes"),
        )),
    }
}

fn over(reason: &str) -> Status {
    Status::failed_precondition(reason)
}

fn lost(reason: LeaseLoss) -> Status {
    over(match reason {
        LeaseLoss::Ended => "the task has ended",
        LeaseLoss::TimedOut => "the agent took longer than it may",
        LeaseLoss::Deadline => "the deadline of the task has passed",
        LeaseLoss::Cancelled => "the task was cancelled; stop working on it",
        LeaseLoss::Lost => "the task was given to others after a long silence",
        LeaseLoss::Unknown => "the agent does not hold the task",
    })
}

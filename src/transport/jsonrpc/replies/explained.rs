//! The result of `tasks.explain`: the words for what is known of a task.

mod reasons;
mod steps;

use super::lineage::LineageJson;
use crate::application::api::Explained;
use crate::application::api::views::Attempt;
use reasons::{Said, Speaker};
use serde::Serialize;
use serde_json::value::RawValue;
use taskledger_domain::task::Status;
use taskledger_domain::{Payload, TaskId};

#[derive(Serialize)]
struct Result<'a> {
    task_id: TaskId,
    root_task_id: TaskId,
    name: &'a str,
    status: Status,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    skipped: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    executor: Option<&'a str>,
    summary: String,
    reasons: Vec<Said>,
    attempt: u32,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    attempts: &'a [Attempt],
    #[serde(skip_serializing_if = "is_zero")]
    more_attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Payload>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lineage: Option<LineageJson<'a>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// The result of `tasks.explain`.
pub(super) fn explained(explained: &Explained) -> Box<RawValue> {
    let Explained {
        flow,
        explanation: e,
        facts,
        attempts,
        last_run,
        queue,
        workers,
        lineage,
        input,
        is_draining,
        is_stopping,
        executors,
        skipped,
    } = explained;
    let speaker = Speaker {
        e,
        facts,
        last_run: last_run.as_ref(),
        queue: queue.as_ref(),
        workers: workers.as_ref(),
        attempts,
        is_draining: *is_draining,
        is_stopping: *is_stopping,
        executors: executors.as_ref(),
        skipped,
    };
    let reasons = speaker.reasons();
    let name = facts.name(&e.task);
    let first = reasons.first().map_or("", |r| &*r.message);
    let shown = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
    super::raw(&Result {
        task_id: e.task.id,
        root_task_id: flow.root(),
        name,
        status: e.task.status,
        skipped: skipped.contains(&e.task.id),
        executor: e.method.as_deref(),
        summary: format!("`{name}` {first}"),
        reasons,
        attempt: e.attempt,
        more_attempts: e.attempt.saturating_sub(shown),
        attempts,
        input: input.as_ref(),
        lineage: lineage.as_deref().map(LineageJson),
    })
}

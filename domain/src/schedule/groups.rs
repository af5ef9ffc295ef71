//! How groups and runs are judged.

use crate::Payload;
use crate::flow::state::Flow;
use crate::flow::{Event, FailureReason, RunState, StatusCounts, TaskCompleted, TaskFailed};
use crate::task::{Progress, Status};
use serde_json::{Map, Value};

/// The end of a group in progress: it completes when all covered descendants that it waits for
/// have ended and no child has failed or was cancelled without being tolerated; else it fails with
/// a text that counts. Cost: O(children + their dependents).
pub(super) fn outcome(flow: &Flow, group: u32) -> Event {
    let task = flow.at(group);
    let counts = task.counts.as_deref().copied().unwrap_or_default();
    let bad = flow
        .children(group)
        .filter(|&c| flow.harms_its_group(c))
        .count();
    if counts.open == 0 && bad == 0 {
        let mut result = Map::new();
        if !task.children.is_empty() {
            result.insert("completed".to_owned(), Value::from(counts.completed));
            result.insert("failed".to_owned(), Value::from(counts.failed));
            result.insert("cancelled".to_owned(), Value::from(counts.cancelled));
        }
        return Event::TaskCompleted(TaskCompleted {
            task_id: task.id,
            attempt: task.attempt,
            result: Payload::from_map(&result),
        });
    }
    let total = counts.open + counts.completed + counts.failed + counts.cancelled;
    Event::TaskFailed(TaskFailed {
        task_id: task.id,
        attempt: task.attempt,
        error: format!(
            "{} of {total} tasks completed, {} failed, {} cancelled, {} not done",
            counts.completed, counts.failed, counts.cancelled, counts.open
        ),
        reason: FailureReason::Group,
        progress: Progress::ZERO,
        will_retry: false,
    })
}

/// The verdict over a run that has come to rest. The run is judged like a group whose children are
/// its root and the covered tasks that are below no covered group: `cancelled` when the root was
/// cancelled, `failed` when one of them failed, was cancelled or stayed blocked without being
/// tolerated, else `completed`. Cost: O(members * depth).
pub(super) fn verdict(flow: &Flow, key: u32) -> (RunState, StatusCounts) {
    let run = &flow.runs[&key];
    let mut counts = StatusCounts::default();
    let mut failed = false;
    for &i in &run.members {
        let task = flow.at(i);
        if task.deleted {
            continue;
        }
        match task.status {
            Status::Pending => counts.pending += 1,
            Status::InProgress => counts.in_progress += 1,
            Status::Completed => counts.completed += 1,
            Status::Failed => counts.failed += 1,
            Status::Cancelled => counts.cancelled += 1,
        }
        let judged = i == run.root
            || !flow
                .ancestors(i)
                .any(|a| flow.at(a).run == key && flow.at(a).is_group());
        failed |= judged && task.status != Status::Completed && !flow.is_tolerated(i);
    }
    let root = flow.at(run.root);
    let state = match root.status {
        Status::Cancelled if !root.deleted => RunState::Cancelled,
        Status::Failed if !root.deleted => RunState::Failed,
        Status::Pending
        | Status::InProgress
        | Status::Completed
        | Status::Failed
        | Status::Cancelled
            if failed =>
        {
            RunState::Failed
        }
        Status::Pending
        | Status::InProgress
        | Status::Completed
        | Status::Failed
        | Status::Cancelled => RunState::Completed,
    };
    (state, counts)
}

//! Decides when groups and runs have ended, and how.

use crate::Payload;
use crate::flow::below::Tally;
use crate::flow::state::Flow;
use crate::flow::{
    Event, FailureReason, RootAtEnd, RunEnded, RunState, StatusCounts, TaskCompleted, TaskFailed,
};
use crate::task::Status;
use serde_json::{Map, Value};

/// The end of a group in progress: it completes when everything below it that runs something has ended,
/// all groups of its run too, and no child has failed or was cancelled without being tolerated; else it
/// fails with a text that counts. What its run does not cover counts as it is: `tasks.retry` covers the
/// groups around a task and not the completed tasks in them.
/// Cost: O(subtree + dependents of children).
pub(super) fn outcome(flow: &Flow, group: u32) -> Event {
    let task = flow.at(group);
    let tally = flow.tally(group);
    let harmed = flow.children(group).any(|c| flow.harms_its_group(c));
    if task.awaited == 0 && tally.open == 0 && !harmed {
        let mut result = Map::new();
        if !task.children.is_empty() {
            result.insert("completed".to_owned(), Value::from(tally.completed));
            result.insert("failed".to_owned(), Value::from(tally.failed));
            result.insert("cancelled".to_owned(), Value::from(tally.cancelled));
        }
        return Event::TaskCompleted(TaskCompleted {
            task_id: task.id,
            attempt: task.attempt,
            result: Payload::from_map(&result),
            remarks: None,
            parts: 0,
        });
    }
    Event::TaskFailed(TaskFailed {
        task_id: task.id,
        attempt: task.attempt,
        error: what_is_missing(&tally),
        reason: FailureReason::Group,
        progress: flow.progress_of(group),
        will_retry: false,
        remarks: None,
        breach: None,
    })
}

/// The error of a group: its tasks by what has become of them, and its groups when all tasks completed.
fn what_is_missing(tally: &Tally) -> String {
    let total = tally.total();
    let mut text = format!(
        "{} of {total} tasks completed, {} failed, {} cancelled, {} not done",
        tally.completed, tally.failed, tally.cancelled, tally.open
    );
    if tally.completed == total {
        let (completed, groups) = (tally.completed_groups, tally.groups);
        text.push_str(&format!("; {completed} of {groups} groups completed"));
    }
    text
}

/// The end of a run in which nothing moves any more. `state`: how it ends, if not by its verdict. Cost as for the
/// verdict.
pub(crate) fn end(flow: &Flow, key: u32, state: Option<RunState>) -> RunEnded {
    let run = &flow.runs[&key];
    let (run_id, root) = (run.id, flow.at(run.root));
    let (task_id, status) = (root.id, root.status);
    let progress = flow.progress_of(run.root);
    let (verdict, counts) = verdict(flow, key);
    let state = state.unwrap_or(verdict);
    RunEnded {
        run_id,
        task_id,
        state,
        rejected: state == RunState::Failed && is_rejected(flow, key),
        counts,
        root: RootAtEnd { status, progress },
        others: u32::try_from(flow.runs.len() - 1).unwrap_or(u32::MAX),
    }
}

/// Whether nothing of a run failed or was cancelled but tasks that were rejected, and one was at least. Cost:
/// O(members).
fn is_rejected(flow: &Flow, key: u32) -> bool {
    let members = flow.runs[&key].members.iter().map(|i| flow.at(*i));
    let mut ended = members.filter(|task| {
        let unwell = matches!(task.status, Status::Failed | Status::Cancelled);
        unwell && !task.deleted && !task.is_group()
    });
    let first = ended.next();
    first.is_some_and(|task| task.rejected) && ended.all(|task| task.rejected)
}

/// The verdict over a run that has come to rest. The run is judged like a group whose children are
/// its root and the covered tasks that are below no covered group: `cancelled` when the root was
/// cancelled, `failed` when one of them failed, was cancelled or stayed blocked without being
/// tolerated, else `completed`. Cost: O(members * depth).
fn verdict(flow: &Flow, key: u32) -> (RunState, StatusCounts) {
    let run = &flow.runs[&key];
    let mut failed = false;
    for &i in &run.members {
        let task = flow.at(i);
        if task.deleted {
            continue;
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
    (state, flow.counts_of(&run.members))
}

//! `tasks.delete` and `tasks.cancel`. Cost: O(children + dependents), with cascade O(subtree).

use super::{Decision, find, wrong_status};
use crate::flow::command::Done;
use crate::flow::event::{CancelReason, Event, TaskCancelled, TaskDeleted};
use crate::flow::rejection::{Kind, Rejection};
use crate::flow::state::Flow;
use crate::limits;
use crate::task::Status;
use crate::{TaskId, Violation};
use hashbrown::HashSet;
use serde_json::Value;

pub(super) fn delete(flow: &Flow, id: TaskId, cascade: bool) -> Decision {
    let i = find(flow, "task_id", id)?;
    if flow.at(i).status != Status::Pending {
        return Err(wrong_status(
            Kind::CannotDelete,
            flow.at(i),
            "a task that is pending",
        ));
    }
    let removed = if cascade { flow.subtree(i) } else { vec![i] };
    let set: HashSet<u32> = removed.iter().copied().collect();
    let children = if cascade {
        &[][..]
    } else {
        &flow.at(i).children
    };
    let dependents: Vec<u32> = removed
        .iter()
        .flat_map(|&t| &flow.at(t).dependents)
        .map(|d| d.task)
        .filter(|d| !set.contains(d))
        .collect();
    let started: Vec<u32> = removed
        .iter()
        .copied()
        .filter(|&t| flow.at(t).status != Status::Pending)
        .collect();
    let mut faults = Vec::new();
    let mut fault = |tasks: &[u32], reason: &str, expected: &str| {
        if !tasks.is_empty() {
            faults.push(Violation::of(
                "task_id",
                reason,
                expected,
                &Value::String(id.to_string()),
            ));
        }
    };
    fault(
        children,
        "Task has children",
        "a task without children, or `cascade: true`",
    );
    fault(
        &dependents,
        "Other tasks depend on the task",
        "a task that nothing depends on",
    );
    fault(
        &started,
        "Not all tasks below it are pending",
        "a subtree of pending tasks",
    );
    if !faults.is_empty() {
        let ids = |tasks: &[u32]| tasks.iter().map(|&t| flow.at(t).id).collect::<Vec<_>>();
        let mut rejection = Rejection::new(Kind::CannotDelete, faults);
        for (member, tasks) in [
            ("children", children),
            ("dependents", &dependents),
            ("not_pending", &started),
        ] {
            if !tasks.is_empty() {
                rejection = rejection.with_ids(member, ids(tasks));
            }
        }
        return Err(rejection);
    }
    // Children before their parents, so that no event leaves a task without its parent.
    let events = removed.iter().rev().map(|&t| {
        Event::TaskDeleted(TaskDeleted {
            task_id: flow.at(t).id,
        })
    });
    Ok((events.collect(), Done::Ok))
}

pub(super) fn cancel(flow: &Flow, id: TaskId, cascade: bool, reason: Option<&str>) -> Decision {
    let i = find(flow, "task_id", id)?;
    if flow.at(i).status.is_terminal() {
        return Err(wrong_status(
            Kind::InvalidTransition,
            flow.at(i),
            "a task that is pending or in_progress",
        ));
    }
    let tasks = if cascade || flow.at(i).is_group() {
        flow.subtree(i)
    } else {
        vec![i]
    };
    let open = tasks
        .iter()
        .rev()
        .filter(|&&t| !flow.at(t).status.is_terminal());
    let events = open.map(|&t| {
        let task = flow.at(t);
        let text = reason
            .filter(|r| !r.is_empty())
            .unwrap_or("cancelled on request");
        Event::TaskCancelled(TaskCancelled {
            task_id: task.id,
            attempt: (task.status == Status::InProgress).then_some(task.attempt),
            error: limits::cut(text, limits::ERROR_BYTES_MAX).to_owned(),
            reason: CancelReason::Requested,
            progress: flow.progress_of(t),
        })
    });
    Ok((events.collect(), Done::Status(Status::Cancelled)))
}

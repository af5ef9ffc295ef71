//! `tasks.delete`, `tasks.cancel`, and cancelling a run. Cost: O(children + dependents), with cascade O(subtree).

use super::{Decision, find};
use crate::flow::command::{CancelRun, Done};
use crate::flow::event::{CancelReason, Event, RunState, TaskCancelled, TaskDeleted};
use crate::flow::refusal::{Refusal, TransitionFault};
use crate::flow::state::Flow;
use crate::limits;
use crate::schedule::groups;
use crate::task::Status;
use crate::{TaskId, Timestamp};
use hashbrown::HashSet;

pub(super) fn delete(flow: &Flow, id: TaskId, cascade: bool) -> Decision {
    let i = find(flow, id)?;
    let status = flow.at(i).status;
    if status != Status::Pending {
        return Err(Refusal::DeleteNotPending { task: id, status }.into());
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
    let not_pending: Vec<u32> = removed
        .iter()
        .copied()
        .filter(|&t| flow.at(t).status != Status::Pending)
        .collect();
    if !(children.is_empty() && dependents.is_empty() && not_pending.is_empty()) {
        let ids = |tasks: &[u32]| {
            let first = tasks.iter().take(Refusal::IDS_MAX);
            first.map(|&t| flow.at(t).id).collect()
        };
        return Err(Refusal::DeleteHindered {
            task: id,
            children: ids(children),
            dependents: ids(&dependents),
            not_pending: ids(&not_pending),
        }
        .into());
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
    let i = find(flow, id)?;
    let status = flow.at(i).status;
    if status.is_terminal() {
        let fault = TransitionFault::Ended { task: id, status };
        return Err(Refusal::InvalidTransition(vec![fault]).into());
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
    let events = open.map(|&t| cancelled(flow, t, reason));
    Ok((events.collect(), Done::Status(Status::Cancelled)))
}

/// Everything of a run that has not ended is cancelled, whatever it hangs under, and the run ends with it: also when
/// its root has ended before. Cost: O(flow).
pub(super) fn cancel_run(flow: &Flow, order: &CancelRun, now: Timestamp) -> Decision {
    let Some(&key) = flow.run_keys.get(&order.run) else {
        return Err(Refusal::RunOver { run: order.run }.into());
    };
    let members = flow.runs[&key].members.iter().rev();
    let open = members.filter(|&&t| {
        let task = flow.at(t);
        task.run == key && !task.deleted && !task.status.is_terminal()
    });
    let reason = order.reason.as_deref();
    let mut events: Vec<Event> = open.map(|&t| cancelled(flow, t, reason)).collect();
    let mut stopped = flow.clone();
    events.iter().for_each(|event| stopped.apply(event, now));
    let end = groups::end(&stopped, key, Some(RunState::Cancelled));
    events.push(Event::RunEnded(end));
    Ok((events, Done::Status(Status::Cancelled)))
}

fn cancelled(flow: &Flow, t: u32, reason: Option<&str>) -> Event {
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
        remarks: None,
    })
}

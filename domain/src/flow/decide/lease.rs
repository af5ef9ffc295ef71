//! Attempts outside the server: claimed by a worker, held under a lease, given back or lost.
//! Cost: O(1).

use super::attempt::{Named, current, requeued};
use super::{Decision, find};
use crate::Timestamp;
use crate::flow::command::{Capacity, Claim, Done, SlotRequest};
use crate::flow::event::{Event, FailureReason, Lease, RequeueReason, TaskFailed, TaskStarted};
use crate::flow::refusal::{Outdated, Refusal, TransitionFault};
use crate::flow::state::{Flow, Held, NONE, Task};
use crate::limits;
use crate::task::Status;

/// The start of a task that is ready and whose method workers claim. No events when it could not start
/// anyhow: its deadline has passed, and the same turn cancels it; or the worker holds it already.
pub(super) fn claim(
    flow: &Flow,
    claim: &Claim,
    now: Timestamp,
    capacity: &dyn Capacity,
) -> Decision {
    let i = find(flow, claim.task)?;
    let task = flow.at(i);
    if flow
        .leases
        .get(&i)
        .is_some_and(|held| held.id == claim.lease)
    {
        return Ok((Vec::new(), Done::Status(Status::InProgress)));
    }
    let method = flow.methods.text(task.method).unwrap_or_default();
    let is_ready = task.status == Status::Pending
        && task.run != NONE
        && task.unsatisfied == 0
        && task.ready_since <= now
        && capacity.is_remote(method);
    if !is_ready {
        let (task, status) = (task.id, task.status);
        let fault = TransitionFault::NotClaimable { task, status };
        return Err(Refusal::InvalidTransition(vec![fault]).into());
    }
    if task.spec_at != claim.spec_at {
        return Err(Outdated::Specification.into());
    }
    if task.effective_deadline <= now {
        return Ok((Vec::new(), Done::Status(Status::Pending)));
    }
    let started = Event::TaskStarted(TaskStarted {
        task_id: task.id,
        attempt: task.attempt + 1,
        run_id: flow.runs[&task.run].id,
        lease: Some(Lease {
            id: claim.lease,
            worker: claim.worker.clone(),
            expires_at: claim.expires_at,
            timeout_ms: claim.timeout_ms,
        }),
    });
    Ok((vec![started], Done::Status(Status::InProgress)))
}

/// Takes the slot of an attempt that [`claim`] has just begun.
pub(super) fn takes_slot(flow: &Flow, claim: &Claim, capacity: &mut dyn Capacity) -> bool {
    let task = flow.live(claim.task).map(|i| flow.at(i));
    let task = task.expect("the claim was accepted");
    let method = flow.methods.text(task.method);
    capacity.take_slot(&SlotRequest {
        method: method.expect("a claimed task has a method"),
        task: task.id,
        attempt: task.attempt + 1,
        priority: task.priority,
        since: task.ready_since,
        owner: flow.owner(),
    })
}

fn held<'a>(flow: &'a Flow, task: &Task) -> &'a Held {
    let i = flow.live(task.id).expect("the task was found");
    &flow.leases[&i]
}

fn failed(task: &Task, error: String, reason: FailureReason, will_retry: bool) -> Event {
    Event::TaskFailed(TaskFailed {
        task_id: task.id,
        attempt: task.attempt,
        error,
        reason,
        progress: task.progress,
        will_retry,
    })
}

/// Failed and pending in one append; neither a retry nor an interruption is used up.
pub(super) fn release(flow: &Flow, named: Named) -> Decision {
    let task = current(flow, named)?;
    let error = format!("worker `{}` gave it back", held(flow, task).worker);
    let events = vec![
        failed(task, error, FailureReason::Released, true),
        requeued(flow, task, RequeueReason::Released, None),
    ];
    Ok((events, Done::Status(Status::Pending)))
}

/// The attempt is lost: it goes to somebody else while interruptions of the run are left, else the task
/// fails. Changes nothing before the time until which the lease holds at least.
pub(super) fn end(flow: &Flow, named: Named, expired_at: Timestamp, now: Timestamp) -> Decision {
    let task = current(flow, named)?;
    let held = held(flow, task);
    if now < held.expires_at {
        return Ok((Vec::new(), Done::Status(Status::InProgress)));
    }
    let again = task.interruptions < limits::INTERRUPTIONS_PER_RUN_MAX;
    let error = format!(
        "lost by worker `{}`, whose lease ended at {}",
        held.worker,
        expired_at.max(held.expires_at)
    );
    let mut events = vec![failed(task, error, FailureReason::Interrupted, again)];
    if again {
        events.push(requeued(flow, task, RequeueReason::Interrupted, None));
    }
    let status = if again {
        Status::Pending
    } else {
        Status::Failed
    };
    Ok((events, Done::Status(status)))
}

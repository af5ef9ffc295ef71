//! Attempts outside the server: claimed by a worker, held under a lease, given back or lost.
//! Cost: O(attempts that begin), else O(1).

use super::attempt::{Named, current, requeued};
use super::{Decision, find};
use crate::contract::{Breach, Broken, OutputFault};
use crate::flow::command::{Capacity, Claim, Claimable, Done, SlotRequest};
use crate::flow::event::{
    Event, FailureReason, Lease, RequeueReason, TaskClaimRejected, TaskCompletionRejected,
    TaskFailed, TaskStarted,
};
use crate::flow::refusal::{Refusal, Rejection, TransitionFault};
use crate::flow::state::{Flow, Held, NONE, Rank, Standing, Task};
use crate::limits;
use crate::schedule::due;
use crate::task::{Priority, Status};
use crate::{LeaseId, TaskId, Timestamp};

/// The starts of ready tasks that workers claim. No events when there is none that could start: the deadline
/// of the only one has passed, and the same turn cancels it; nothing of the method is ready; or the worker
/// holds them already.
pub(super) fn claim(
    flow: &Flow,
    claim: &Claim,
    now: Timestamp,
    capacity: &dyn Capacity,
) -> Decision {
    let leases = flow.leases.values();
    if leases
        .into_iter()
        .any(|held| Some(&held.id) == claim.leases.first())
    {
        return Ok((Vec::new(), Done::Status(Status::InProgress)));
    }
    let claimed = match &claim.of {
        Claimable::Task(task) => match one(flow, *task, now, capacity)? {
            One::Ready(i) => vec![i],
            One::Late => Vec::new(),
            One::Refused => return Ok((Vec::new(), Done::ClaimRefused)),
        },
        Claimable::Next { method, until } => {
            let many = claim.leases.len();
            next(flow, (method, *until), many, now, capacity)
        }
    };
    let starts = claimed.iter().zip(&claim.leases);
    let events: Vec<Event> = starts.map(|(i, id)| start(flow, *i, *id, claim)).collect();
    let status = if events.is_empty() {
        Status::Pending
    } else {
        Status::InProgress
    };
    Ok((events, Done::Status(status)))
}

/// Records what a worker was told, unless it is not so any more, or is the last thing in the log of claims of the task,
/// or there is much of it already.
pub(super) fn reject_claim(
    flow: &Flow,
    task: TaskId,
    worker: &str,
    found: &Broken,
    breach: &Breach,
) -> Decision {
    let i = find(flow, task)?;
    let told = flow.told_claims.get(&i).copied().unwrap_or_default();
    let is_new = flow.claim_fault_of(i).as_ref() == Some(found)
        && !told.says(found)
        && told.times < limits::REJECTIONS_PER_ATTEMPT_MAX;
    if !is_new {
        return Ok((Vec::new(), Done::Ok));
    }
    let unresolvable_refs = match found {
        Broken::Inputs {
            unresolvable_refs, ..
        } => unresolvable_refs.clone(),
        Broken::Upstream { .. } | Broken::Output(_) => Vec::new(),
    };
    let event = Event::TaskClaimRejected(TaskClaimRejected {
        task_id: task,
        worker: worker.to_owned(),
        unresolvable_refs,
        breach: breach.clone(),
    });
    Ok((vec![event], Done::Ok))
}

/// How a task stands that a worker names.
enum One {
    Ready(u32),
    /// Its time has passed; the same turn ends it.
    Late,
    /// Dependencies have not completed, or lack what it needs. spec: I/O contracts / 3.1
    Refused,
}

fn one(flow: &Flow, id: TaskId, now: Timestamp, capacity: &dyn Capacity) -> Result<One, Rejection> {
    let i = find(flow, id)?;
    let task = flow.at(i);
    let is_local = flow.standing(task.line(), capacity) == Standing::Local;
    let is_ready = task.status == Status::Pending
        && !task.is_group()
        && task.run != NONE
        && task.unsatisfied == 0
        && task.ready_since <= now
        && !is_local;
    if is_ready {
        return Ok(match (in_time(flow, i, now), task.lacking) {
            (false, _) => One::Late,
            (true, true) => One::Refused,
            (true, false) => One::Ready(i),
        });
    }
    match flow.claim_fault_of(i).filter(|_| task.unsatisfied > 0) {
        Some(Broken::Upstream { .. }) => Ok(One::Refused),
        Some(Broken::Inputs { .. } | Broken::Output(_)) if !is_local => Ok(One::Refused),
        Some(Broken::Inputs { .. } | Broken::Output(_)) | None => {
            let (task, status) = (task.id, task.status);
            let fault = TransitionFault::NotClaimable { task, status };
            Err(Refusal::InvalidTransition(vec![fault]).into())
        }
    }
}

/// The first `many` tasks of a method. Cost: O(`many` + tasks whose time has passed).
fn next(
    flow: &Flow,
    (method, until): (&str, Option<(Priority, Timestamp)>),
    many: usize,
    now: Timestamp,
    capacity: &dyn Capacity,
) -> Vec<u32> {
    let lines = flow.lines_of(method);
    let lines = lines.filter(|line| flow.standing(*line, capacity) != Standing::Local);
    let queues = lines.filter_map(|line| flow.ready.get(&line));
    let mut ranks: Vec<Rank> = queues
        .flat_map(|queue| {
            due(queue, now)
                .filter(|rank| in_time(flow, rank.task, now))
                .take(many)
        })
        .collect();
    ranks.sort_unstable();
    let within = |rank: &Rank| until.is_none_or(|until| (rank.priority, rank.since) <= until);
    let places = ranks.into_iter().enumerate();
    let claimed = places.take_while(|(place, rank)| *place == 0 || within(rank));
    claimed.map(|(_, rank)| rank.task).take(many).collect()
}

/// What is overdue is ended by the same turn.
fn in_time(flow: &Flow, i: u32, now: Timestamp) -> bool {
    let task = flow.at(i);
    let within_ms = flow.start_within_ms(i);
    task.effective_deadline > now
        && within_ms.is_none_or(|within_ms| task.ready_since.plus_ms(within_ms) > now)
}

fn start(flow: &Flow, i: u32, id: LeaseId, claim: &Claim) -> Event {
    let task = flow.at(i);
    let bounds = flow.bounds.get(&i).copied().unwrap_or_default();
    Event::TaskStarted(TaskStarted {
        task_id: task.id,
        attempt: task.attempt + 1,
        run_id: flow.runs[&task.run].id,
        lease: Some(Lease {
            id,
            worker: claim.worker.clone(),
            holder: claim.holder.clone(),
            expires_at: claim.expires_at,
            timeout_ms: bounds.timeout_ms,
            cancel_grace_ms: bounds.cancel_grace_ms,
        }),
    })
}

/// Takes slots for attempts that [`claim`] has just begun, in order; how many there are.
pub(super) fn take_slots(flow: &Flow, starts: &[Event], capacity: &mut dyn Capacity) -> usize {
    let mut took = |event: &Event| {
        let task = event.task_id().and_then(|id| flow.live(id));
        let task = flow.at(task.expect("the claim was accepted"));
        let method = flow.methods.text(task.method);
        capacity.take_slot(&SlotRequest {
            method: method.expect("a claimed task has a method"),
            task: task.id,
            attempt: task.attempt + 1,
            priority: task.priority,
            since: task.ready_since,
            owner: flow.owner(),
            is_claimed: true,
        })
    };
    starts.iter().take_while(|event| took(event)).count()
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
        remarks: None,
        breach: None,
    })
}

/// Records what was wrong with a result, unless that was the last thing recorded of the attempt, or there is
/// much of it already.
pub(super) fn reject(
    flow: &Flow,
    named: Named,
    fault: &OutputFault,
    phase_name: Option<&str>,
) -> Decision {
    let task = current(flow, named)?;
    let held = held(flow, task);
    let is_new = held.rejected.as_deref() != Some(&*Held::text_of(fault));
    let events = if is_new && held.rejections < limits::REJECTIONS_PER_ATTEMPT_MAX {
        vec![Event::TaskCompletionRejected(TaskCompletionRejected {
            task_id: task.id,
            attempt: task.attempt,
            fault: fault.clone(),
            phase_name: phase_name.map(str::to_owned),
            progress: task.progress,
        })]
    } else {
        Vec::new()
    };
    Ok((events, Done::Status(Status::InProgress)))
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

/// The attempt is lost: after a rest it goes to somebody else while interruptions of the run are left, else the
/// task fails. Changes nothing before its time.
pub(super) fn end(flow: &Flow, named: Named, expired_at: Timestamp, now: Timestamp) -> Decision {
    let task = current(flow, named)?;
    let held = held(flow, task);
    if now < expired_at {
        return Ok((Vec::new(), Done::Status(Status::InProgress)));
    }
    let again = task.interruptions < limits::INTERRUPTIONS_PER_RUN_MAX;
    let error = format!(
        "lost by worker `{}`, whose lease ended at {expired_at}",
        held.worker
    );
    let mut events = vec![failed(task, error, FailureReason::Interrupted, again)];
    if again {
        let rest_ms = limits::LOST_REST_MS << task.interruptions;
        let at = now.plus_ms(rest_ms);
        events.push(requeued(flow, task, RequeueReason::Interrupted, Some(at)));
    }
    let status = if again {
        Status::Pending
    } else {
        Status::Failed
    };
    Ok((events, Done::Status(status)))
}

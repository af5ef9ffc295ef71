//! Decides what the engine reports of attempts. An outcome is recorded once; one with a stale attempt is refused. Cost:
//! O(1), `recover` O(members of active runs).

use super::{Decision, find};
use crate::contract::Breach;
use crate::flow::command::{Capacity, Done};
use crate::flow::event::{
    Event, FailureReason, RequeueReason, TaskCompleted, TaskFailed, TaskProgressed, TaskRequeued,
};
use crate::flow::refusal::{Outdated, Rejection};
use crate::flow::state::{Flow, Task};
use crate::limits;
use crate::task::retry::draw;
use crate::task::{Progress, Status};
use crate::{LeaseId, Payload, RunId, TaskId, Timestamp};
use hashbrown::HashSet;

/// The error of a task that a restart has ended for good.
const INTERRUPTED: &str = "interrupted by a restart of the server";

/// An attempt as whoever carries it out names it: the task, the attempt, and the lease if it runs outside
/// the server.
pub(super) type Named = (TaskId, u32, Option<LeaseId>);

/// The task, if the attempt is under way and held by whoever names it.
pub(super) fn current(flow: &Flow, (id, attempt, lease): Named) -> Result<&Task, Rejection> {
    let i = find(flow, id)?;
    let task = flow.at(i);
    let held = flow.leases.get(&i).map(|held| held.id);
    if task.status == Status::InProgress
        && task.attempt == attempt
        && held == lease
        && !task.is_group()
        && flow.open_question(i).is_none()
    {
        Ok(task)
    } else {
        Err(Outdated::Attempt.into())
    }
}

pub(super) fn complete(flow: &Flow, named: Named, result: &Payload) -> Decision {
    current(flow, named)?;
    let (id, attempt, _) = named;
    let event = Event::TaskCompleted(TaskCompleted {
        task_id: id,
        attempt,
        result: result.clone(),
        remarks: None,
        parts: flow.parts_of(id),
    });
    Ok((vec![event], Done::Status(Status::Completed)))
}

pub(super) fn report(
    flow: &Flow,
    named: Named,
    progress: Progress,
    message: Option<&str>,
) -> Decision {
    let task = current(flow, named)?;
    let (id, attempt, _) = named;
    let event = Event::TaskProgressed(TaskProgressed {
        task_id: id,
        attempt,
        progress,
        message: message.map(str::to_owned),
        remarks: None,
    });
    let events = if task.progress == progress && message.is_none() {
        Vec::new()
    } else {
        vec![event]
    };
    Ok((events, Done::Status(Status::InProgress)))
}

/// `earliest`: no other attempt begins before that.
pub(super) fn fail(
    flow: &Flow,
    named: Named,
    (error, breach): (&str, Option<&Breach>),
    (reason, progress): (FailureReason, Progress),
    (now, earliest): (Timestamp, Timestamp),
) -> Decision {
    let task = current(flow, named)?;
    let (id, attempt, _) = named;
    let retry_at = match reason {
        FailureReason::Executor | FailureReason::Timeout | FailureReason::InvalidResult => {
            next_attempt(flow, task, now, earliest)
        }
        // Another attempt would end the same way.
        FailureReason::Deadline
        | FailureReason::ExecutorNotFound
        | FailureReason::Interrupted
        | FailureReason::InvalidInputs
        | FailureReason::Group
        | FailureReason::Released
        | FailureReason::NotRetryable
        | FailureReason::NotStarted
        | FailureReason::Unanswered
        | FailureReason::Declined
        | FailureReason::Rejected => None,
    };
    let mut events = vec![Event::TaskFailed(TaskFailed {
        task_id: id,
        attempt,
        error: limits::cut(
            if error.is_empty() {
                "failed without a message"
            } else {
                error
            },
            limits::ERROR_BYTES_MAX,
        )
        .to_owned(),
        reason,
        progress,
        will_retry: retry_at.is_some(),
        remarks: None,
        breach: breach.cloned().map(Box::new),
    })];
    if let Some(next) = retry_at {
        events.push(requeued(flow, task, RequeueReason::Retry, Some(next)));
    }
    let status = if retry_at.is_some() {
        Status::Pending
    } else {
        Status::Failed
    };
    Ok((events, Done::Status(status)))
}

/// When the task may try again, not before `earliest`; `None` when its budget of attempts or of time is spent or its
/// deadline comes first.
pub(crate) fn next_attempt(
    flow: &Flow,
    task: &Task,
    now: Timestamp,
    earliest: Timestamp,
) -> Option<Timestamp> {
    let policy = task.retry.as_ref()?;
    let draw = draw(task.id, task.attempt);
    let at = now.plus_ms(policy.delay_ms_after(task.attempts_in_run, draw)?);
    let at = at.max(earliest);
    let until = policy.max_elapsed_ms.and_then(|max_ms| {
        let first = flow.first_starts.get(&flow.live(task.id)?)?;
        Some(first.plus_ms(max_ms))
    });
    let is_in_time = at < task.effective_deadline && until.is_none_or(|until| at <= until);
    is_in_time.then_some(at)
}

pub(crate) fn requeued(
    flow: &Flow,
    task: &Task,
    reason: RequeueReason,
    next_attempt_at: Option<Timestamp>,
) -> Event {
    let run_id: RunId = flow
        .runs
        .get(&task.run)
        .map(|r| r.id)
        .expect("a task in progress belongs to an active run");
    Event::TaskRequeued(TaskRequeued {
        task_id: task.id,
        run_id,
        reason,
        next_attempt_at,
    })
}

/// Attempts of this process that nobody runs any more have ended: they run again where that is harmless
/// or consented to, else the task fails. Leased attempts have not: their life is their lease.
pub(super) fn recover(
    flow: &Flow,
    alive: &HashSet<(TaskId, u32)>,
    now: Timestamp,
    capacity: &dyn Capacity,
) -> Vec<Event> {
    let mut events = Vec::new();
    let members = flow
        .runs
        .iter()
        .flat_map(|(key, run)| run.members.iter().map(move |&i| (*key, i)));
    for (key, i) in members {
        let task = flow.at(i);
        let lost = task.run == key
            && !task.deleted
            && task.status == Status::InProgress
            && !task.is_group()
            && !flow.leases.contains_key(&i)
            && flow.open_question(i).is_none();
        if !lost || alive.contains(&(task.id, task.attempt)) {
            continue;
        }
        let method = flow.methods.text(task.method).unwrap_or_default();
        let spared = task.interruptions < limits::INTERRUPTIONS_PER_RUN_MAX;
        let idempotent = capacity.is_idempotent(method);
        let again = match (spared, idempotent) {
            (false, _) => None,
            (true, true) => Some((RequeueReason::Interrupted, None)),
            (true, false) => {
                next_attempt(flow, task, now, now).map(|at| (RequeueReason::Retry, Some(at)))
            }
        };
        events.push(Event::TaskFailed(TaskFailed {
            task_id: task.id,
            attempt: task.attempt,
            error: INTERRUPTED.to_owned(),
            reason: FailureReason::Interrupted,
            progress: task.progress,
            will_retry: again.is_some(),
            remarks: None,
            breach: None,
        }));
        if let Some((reason, at)) = again {
            events.push(requeued(flow, task, reason, at));
        }
    }
    events
}

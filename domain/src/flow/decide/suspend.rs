//! Questions to people, and their answers. Cost: O(size of the question or answer).

use super::attempt::{current, requeued};
use super::{Decision, find};
use crate::flow::command::{Done, Respond, Suspend, Then};
use crate::flow::event::{
    Event, FailureReason, RequeueReason, TaskAnswered, TaskCompleted, TaskFailed, TaskSuspended,
};
use crate::flow::refusal::{Fault, Refusal};
use crate::flow::state::Flow;
use crate::task::Status;
use crate::{Timestamp, limits};

/// The attempt gives up its lease and waits for a person.
pub(super) fn suspend(flow: &Flow, order: &Suspend, now: Timestamp) -> Decision {
    let task = current(flow, (order.task, order.attempt, order.lease))?;
    let asked = flow.turns(order.task).len();
    if asked >= limits::SUSPENSIONS_PER_RUN_MAX {
        let fault = Fault::TooManyQuestions {
            task: order.task,
            questions: asked,
            questions_max: limits::SUSPENSIONS_PER_RUN_MAX,
        };
        return Err(Refusal::invalid([fault]).into());
    }
    let question = &order.question;
    let run = flow
        .live(order.task)
        .and_then(|i| flow.runs.get(&flow.at(i).run));
    let answer_ms = run.and_then(|run| run.wait_bounds.answer_ms);
    let event = Event::TaskSuspended(TaskSuspended {
        task_id: order.task,
        attempt: task.attempt,
        suspension_id: order.suspension,
        question: order.asked.clone(),
        asks: question.asks,
        on_answer: order.on_answer,
        expires_at: question
            .expires_after_ms
            .or(answer_ms)
            .map(|ms| now.plus_ms(ms)),
        remind_every_ms: question.remind_every_ms,
        reminders: question.reminders,
        ladder: question.ladder.clone(),
        on_expiry: order.on_expiry.clone(),
    });
    Ok((vec![event], Done::Status(Status::InProgress)))
}

/// The first answer counts: the wait is over with it.
pub(super) fn respond(flow: &Flow, order: &Respond) -> Decision {
    let i = find(flow, order.task)?;
    let task = flow.at(i);
    let open = flow.open_question(i).map(|open| open.id);
    if open != Some(order.suspension) {
        return Err(Refusal::NotSuspended {
            task: order.task,
            suspension: open,
        }
        .into());
    }
    let mut events = vec![Event::TaskAnswered(TaskAnswered {
        task_id: order.task,
        attempt: task.attempt,
        suspension_id: order.suspension,
        answer: order.answer.clone(),
        responded_by: order.responded_by.clone(),
        on_behalf_of: order.on_behalf_of.clone(),
    })];
    let (then, status) = match &order.then {
        Then::Continue => (
            requeued(flow, task, RequeueReason::Answered, None),
            Status::Pending,
        ),
        Then::Complete(result) => (
            Event::TaskCompleted(TaskCompleted {
                task_id: order.task,
                attempt: task.attempt,
                result: result.clone(),
                remarks: None,
                parts: flow.parts_of(order.task),
            }),
            Status::Completed,
        ),
        Then::Decline(error) => (
            Event::TaskFailed(TaskFailed {
                task_id: order.task,
                attempt: task.attempt,
                error: limits::cut(error, limits::ERROR_BYTES_MAX).to_owned(),
                reason: FailureReason::Declined,
                progress: task.progress,
                will_retry: false,
                remarks: None,
                breach: None,
            }),
            Status::Failed,
        ),
    };
    events.push(then);
    Ok((events, Done::Status(status)))
}

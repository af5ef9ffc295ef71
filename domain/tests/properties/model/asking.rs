//! Tasks that wait for people.

use super::Model;
use serde_json::{Value, json};
use taskledger_domain::flow::{Event, FailureReason, OnAnswer, RequeueReason, TaskSuspended};
use taskledger_domain::task::Status::InProgress;
use taskledger_domain::{SuspensionId, TaskId, Timestamp};

/// What a task waits for.
#[derive(Debug, Clone)]
pub(crate) struct Asks {
    pub(crate) suspension: SuspensionId,
    expires_at: Option<Timestamp>,
    follows: Follows,
}

/// What comes next for a task whose question is answered or given up.
#[derive(Debug, Clone)]
pub(super) enum Follows {
    /// What the command says.
    Anything,
    Fails(FailureReason),
    Completes(Value),
    GoesOn,
}

impl Follows {
    /// When nobody answers, from what is asked alone.
    fn without_answer(e: &TaskSuspended) -> Self {
        let question = e.question.to_map();
        let value = question.get("fallback_value").unwrap_or(&Value::Null);
        let policy = question.get("fallback_policy").and_then(Value::as_str);
        match (policy, e.on_answer) {
            (Some("complete_with_fallback"), _) => Self::Completes(value.clone()),
            (Some("use_default_and_continue"), OnAnswer::Continue) => Self::GoesOn,
            (Some("use_default_and_continue"), OnAnswer::CompleteOrDecline)
                if *value == json!(false) =>
            {
                Self::Fails(FailureReason::Declined)
            }
            (
                Some("use_default_and_continue"),
                OnAnswer::Complete | OnAnswer::CompleteOrDecline,
            ) => Self::Completes(json!({"approved": value, "value": value, "responded_by": null})),
            (Some(_) | None, _) => Self::Fails(FailureReason::Unanswered),
        }
    }

    fn check(&self, event: &Event) {
        let followed = match (self, event) {
            (Self::Anything, _) => true,
            (Self::Fails(reason), Event::TaskFailed(e)) => e.reason == *reason && !e.will_retry,
            (Self::Completes(result), Event::TaskCompleted(e)) => {
                json!(e.result.to_map()) == *result
            }
            (Self::GoesOn, Event::TaskRequeued(e)) => e.reason == RequeueReason::Answered,
            (Self::Fails(_) | Self::Completes(_) | Self::GoesOn, _) => false,
        };
        assert!(followed, "{event:?} follows in place of {self:?}");
    }
}

impl Model {
    /// Whether the event before has ended the question of this task.
    pub(super) fn is_answered(&self, id: TaskId) -> bool {
        self.answered.as_ref().is_some_and(|(task, _)| *task == id)
    }

    /// Right behind the end of a question stands what follows from it.
    pub(super) fn check_what_follows(&self, event: &Event) {
        if let Some((task, follows)) = &self.answered {
            assert_eq!(event.task_id(), Some(*task));
            follows.check(event);
        }
    }

    /// Takes an event about a question; the task whose question it ends, and what has to follow.
    pub(super) fn asks_or_is_answered(
        &mut self,
        event: &Event,
        now: Timestamp,
    ) -> Option<(TaskId, Follows)> {
        let id = event.task_id().expect("it is about a task");
        let task = self.tasks.get_mut(&id).expect("a live task");
        if let Event::TaskSuspended(e) = event {
            assert_eq!((task.status, task.attempt), (InProgress, e.attempt));
            assert!(task.asks.is_none() && task.method.is_some());
            task.lease = None;
            task.asks = Some(Asks {
                suspension: e.suspension_id,
                expires_at: e.expires_at,
                follows: Follows::without_answer(e),
            });
            return None;
        }
        let asks = task.asks.clone().expect("it waits");
        if let Event::TaskReminded(e) = event {
            assert_eq!(asks.suspension, e.suspension_id);
            assert!(e.number >= 1 && e.number <= e.of);
            // Each reminder has a step of its own, and a later one stands for those before it.
            let told = e.escalation.as_ref().map(|step| step.attempt);
            assert_eq!(told, Some(e.number));
            return None;
        }
        task.asks = None;
        if let Event::TaskAnswered(e) = event {
            assert_eq!(asks.suspension, e.suspension_id);
            return Some((id, Follows::Anything));
        }
        if let Event::TaskSuspensionExpired(e) = event {
            assert_eq!(asks.suspension, e.suspension_id);
            assert!(asks.expires_at.is_some_and(|at| at <= now));
        }
        Some((id, asks.follows))
    }
}

//! Tasks that wait for people.

use super::Model;
use taskledger_domain::flow::Event;
use taskledger_domain::task::Status::InProgress;
use taskledger_domain::{TaskId, Timestamp};

impl Model {
    /// Takes an event about a question; the task whose question it ends.
    pub(super) fn asks_or_is_answered(&mut self, event: &Event, now: Timestamp) -> Option<TaskId> {
        let id = event.task_id().expect("it is about a task");
        let task = self.tasks.get_mut(&id).expect("a live task");
        if let Event::TaskSuspended(e) = event {
            assert_eq!((task.status, task.attempt), (InProgress, e.attempt));
            assert!(task.asks.is_none() && task.method.is_some());
            task.lease = None;
            task.asks = Some((e.suspension_id, e.expires_at));
            return None;
        }
        let (asked, expires_at) = task.asks.expect("it waits");
        if let Event::TaskReminded(e) = event {
            assert_eq!(asked, e.suspension_id);
            assert!(e.number >= 1 && e.number <= e.of);
            return None;
        }
        task.asks = None;
        if let Event::TaskAnswered(e) = event {
            assert_eq!(asked, e.suspension_id);
        } else if let Event::TaskSuspensionExpired(e) = event {
            assert_eq!(asked, e.suspension_id);
            assert!(expires_at.is_some_and(|at| at <= now));
        }
        Some(id)
    }
}

//! A cache of the latest published tasks and outcomes, so that ends and streams that keep up need no query.
//!
//! Owns how much is remembered. What is not here is asked of the tables; a crash forgets all of it. Where another
//! server has noted something meanwhile, outcomes are remembered from there on only.

use crate::inbox::Outcome;
use crate::keys::{Digest, Owner};
use crate::published::Published;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use taskledger_domain::{FlowId, TaskId, Timestamp};

/// Published tasks that are remembered, about 300 bytes each with short ids, which may have 1 KiB; the oldest are
/// forgotten first.
const TASKS_MAX: usize = 20_000;
/// Outcomes that are remembered, about 400 bytes each, likewise; the oldest are forgotten first.
const OUTCOMES_MAX: usize = 10_000;

/// What was noted last, bounded in number. A crash forgets it.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    tasks: HashMap<TaskId, Published>,
    /// The oldest first.
    order: VecDeque<TaskId>,
    /// All outcomes with numbers above the first, up to the second, are here; `None`: nobody has looked yet.
    range: Option<(u64, u64)>,
    inboxes: HashMap<Digest, VecDeque<Outcome>>,
    /// Their numbers, ascending, each with its inbox.
    numbers: VecDeque<(u64, Digest)>,
}

impl Inner {
    /// Outcomes up to this number are asked of the tables.
    fn forget_outcomes(&mut self, upto: u64) {
        self.inboxes.clear();
        self.numbers.clear();
        self.range = Some((upto, upto));
    }
}

impl Recent {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // What a panic left are rows that were noted.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that these tasks were published.
    pub(crate) fn published(&self, tasks: Vec<Published>) {
        let mut inner = self.inner();
        for task in tasks {
            let id = task.task_id;
            if inner.tasks.insert(id, task).is_none() {
                inner.order.push_back(id);
            }
        }
        while inner.order.len() > TASKS_MAX {
            if let Some(oldest) = inner.order.pop_front() {
                inner.tasks.remove(&oldest);
            }
        }
    }

    /// Those of some tasks that are remembered as published; the others may be so all the same.
    pub(crate) fn among(&self, tasks: &[TaskId]) -> Vec<Published> {
        let inner = self.inner();
        let found = tasks.iter().filter_map(|task| inner.tasks.get(task));
        found.cloned().collect()
    }

    /// Outcomes are noted, all with numbers above `before` up to `newest`, by number.
    pub(crate) fn ended(&self, before: u64, newest: u64, outcomes: Vec<Outcome>) {
        let mut inner = self.inner();
        if inner.range.is_none_or(|(_, known)| known != before) {
            inner.forget_outcomes(before);
        }
        inner.range = inner.range.map(|(above, _)| (above, newest));
        for outcome in outcomes {
            let inbox = outcome.owner.inbox(&outcome.requester);
            inner.numbers.push_back((outcome.number, inbox));
            inner.inboxes.entry(inbox).or_default().push_back(outcome);
        }
        while inner.numbers.len() > OUTCOMES_MAX {
            let Some((number, inbox)) = inner.numbers.pop_front() else {
                break;
            };
            inner.range = inner.range.map(|(_, newest)| (number, newest));
            if let Some(outcomes) = inner.inboxes.get_mut(&inbox) {
                outcomes.pop_front();
                if outcomes.is_empty() {
                    inner.inboxes.remove(&inbox);
                }
            }
        }
    }

    /// Another server has noted outcomes up to this number.
    pub(crate) fn ended_elsewhere(&self, newest: u64) {
        let mut inner = self.inner();
        if inner.range.is_none_or(|(_, known)| known < newest) {
            inner.forget_outcomes(newest);
        }
    }

    /// Notes that these outcomes were delivered.
    pub(crate) fn delivered(&self, numbers: &[u64], at: Timestamp) {
        let mut inner = self.inner();
        let Inner {
            numbers: known,
            inboxes,
            ..
        } = &mut *inner;
        for number in numbers {
            let Ok(place) = known.binary_search_by_key(number, |(number, _)| *number) else {
                continue;
            };
            let Some(outcomes) = inboxes.get_mut(&known[place].1) else {
                continue;
            };
            if let Ok(place) = outcomes.binary_search_by_key(number, |it| it.number) {
                outcomes[place].delivered_at = Some(at);
            }
        }
    }

    /// The outcomes of an inbox that are not marked, with numbers above `after`, at most `limit`; `None`: not all of
    /// them are here.
    pub(crate) fn above(
        &self,
        owner: &Owner,
        requester: &str,
        after: u64,
        limit: usize,
    ) -> Option<Vec<Outcome>> {
        let inner = self.inner();
        inner.range.filter(|(above, _)| after >= *above)?;
        let found = inner.inboxes.get(&owner.inbox(requester));
        let found = found.into_iter().flatten().rev();
        let found = found.take_while(|it| it.number > after);
        let found = found
            .filter(|it| it.delivered_at.is_none())
            .filter(|it| it.owner == *owner && *it.requester == *requester);
        let mut found: Vec<Outcome> = found.cloned().collect();
        found.reverse();
        found.truncate(limit);
        Some(found)
    }

    /// Forgets these flows.
    pub(crate) fn forget(&self, flows: &[FlowId]) {
        let gone: HashSet<&FlowId> = flows.iter().collect();
        let mut inner = self.inner();
        let Inner { tasks, order, .. } = &mut *inner;
        tasks.retain(|_, task| !gone.contains(&task.flow));
        order.retain(|task| tasks.contains_key(task));
        if let Some((_, newest)) = inner.range {
            inner.forget_outcomes(newest);
        }
    }

    /// Nothing of it holds any more.
    pub(crate) fn clear(&self) {
        *self.inner() = Inner::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use uuid::Uuid;

    fn owner() -> Owner {
        Owner {
            tenant: Arc::from("main"),
            actor: Arc::from("ann"),
        }
    }

    fn outcome(number: u64, requester: &str) -> Outcome {
        let task = TaskId(Uuid::from_u128(u128::from(number)));
        Outcome {
            number,
            task_id: task,
            flow: task.as_flow(),
            version: 1,
            position: number,
            owner: owner(),
            requester: Arc::from(requester),
            external_id: Arc::from("t"),
            at: Timestamp(0),
            delivered_at: None,
        }
    }

    fn numbers(recent: &Recent, requester: &str, after: u64) -> Option<Vec<u64>> {
        let found = recent.above(&owner(), requester, after, 10)?;
        Some(found.iter().map(|it| it.number).collect())
    }

    #[test]
    fn outcomes_are_answered_from_where_none_is_missing() {
        let recent = Recent::default();
        assert_eq!(numbers(&recent, "a", 0), None);
        recent.ended(7, 9, vec![outcome(8, "a"), outcome(9, "b")]);
        assert_eq!(numbers(&recent, "a", 6), None, "nobody knows of 7");
        assert_eq!(numbers(&recent, "a", 7), Some(vec![8]));
        recent.ended(9, 10, vec![outcome(10, "a")]);
        assert_eq!(numbers(&recent, "a", 7), Some(vec![8, 10]));
        assert_eq!(numbers(&recent, "a", 8), Some(vec![10]));
        recent.ended_elsewhere(10);
        assert_eq!(numbers(&recent, "b", 8), Some(vec![9]));
        recent.delivered(&[3, 8], Timestamp(1));
        assert_eq!(numbers(&recent, "a", 7), Some(vec![10]));
        recent.ended_elsewhere(12);
        assert_eq!(numbers(&recent, "a", 10), None);
        assert_eq!(numbers(&recent, "a", 12), Some(vec![]));
    }

    #[test]
    fn the_oldest_outcomes_are_forgotten_first() {
        let recent = Recent::default();
        let most = OUTCOMES_MAX as u64;
        let all = (1..=most + 2).map(|number| outcome(number, "a"));
        recent.ended(0, most + 2, all.collect());
        assert_eq!(numbers(&recent, "a", 1), None);
        assert_eq!(numbers(&recent, "a", most), Some(vec![most + 1, most + 2]));
        let first = recent.above(&owner(), "a", 2, 1).expect("all are here");
        assert_eq!(first[0].number, 3);
    }
}

//! Tasks that start later than they could, by `start_at` and delays.

use super::{Model, Task};
use taskledger_domain::flow::{RequeueReason, Specification, TaskDeferred, TimerKind};
use taskledger_domain::task::Status::Pending;
use taskledger_domain::{TaskId, Timestamp};

/// A `start_at` and a delay.
type Timers = (Option<Timestamp>, Option<u64>);

/// What the timers of a task have come to in its run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timing {
    /// When a time was recorded for the first time.
    ready_at: Option<Timestamp>,
    /// The timers with which the last time was recorded.
    told: Option<Timers>,
    /// They are others since.
    is_stale: bool,
    /// Attempts that count.
    pub(super) charged: u32,
}

impl Timing {
    pub(super) fn requeued(&mut self, reason: RequeueReason) {
        match reason {
            RequeueReason::Retry | RequeueReason::Rerun => {}
            RequeueReason::Interrupted | RequeueReason::Released | RequeueReason::Answered => {
                self.charged = self.charged.saturating_sub(1);
            }
        }
    }
}

const fn timers(task: &Task) -> Timers {
    (task.specification.start_at, task.specification.delay_ms)
}

impl Model {
    /// From when on a ready task may start: no `start_at` around it is to come, nor the time of a group that has not
    /// begun.
    pub(crate) fn starts_at(&self, id: TaskId) -> Timestamp {
        self.tasks[&id].not_before.max(self.held_until(id, true))
    }

    fn held_until(&self, id: TaskId, own: bool) -> Timestamp {
        let task = &self.tasks[&id];
        let own_start = task.specification.start_at.filter(|_| own);
        let mut latest = own_start.unwrap_or_default();
        for around in self.ancestors(id) {
            let group = &self.tasks[&around];
            latest = latest.max(group.specification.start_at.unwrap_or_default());
            let waits = group.status == Pending && group.timing.charged == 0;
            if group.method.is_none() && group.run == task.run && waits {
                latest = latest.max(group.not_before);
            }
        }
        latest
    }

    /// A time is recorded for a ready task, once for the same timers.
    pub(super) fn defer(&mut self, e: &TaskDeferred, now: Timestamp) {
        assert!(self.is_ready(e.task_id), "it waits for something else too");
        let task = self.tasks.get_mut(&e.task_id).expect("a live task");
        assert_eq!(task.run, Some(e.run_id));
        let (timers, timing) = (timers(task), &mut task.timing);
        assert!(timing.told.is_none() || timing.is_stale, "it is in the log");
        let is_first = timing.charged == 0;
        let mut at = timers.0.map_or(now, |start_at| start_at.max(now));
        if !is_first || timing.told.is_none() {
            at = at.max(task.not_before);
        }
        let ready_at = *timing.ready_at.get_or_insert(now);
        if let Some(delay_ms) = timers.1.filter(|_| is_first) {
            at = at.max(ready_at.plus_ms(delay_ms));
        }
        (timing.told, timing.is_stale) = (Some(timers), false);
        assert_eq!(e.next_attempt_at, at);
        match e.timer {
            Some(TimerKind::StartAt) => assert_eq!(timers.0, Some(at)),
            Some(TimerKind::DelaySeconds) => {
                assert_eq!(timers.1.map(|ms| ready_at.plus_ms(ms)), Some(at));
            }
            None => assert!(at == now || at == task.not_before),
        }
        task.not_before = at;
    }

    /// What was recorded for the first start counts no more when a task says something else.
    pub(super) fn change_timers(&mut self, id: TaskId, s: &Specification, now: Timestamp) {
        let task = self.tasks.get_mut(&id).expect("a live task");
        if timers(task) == (s.start_at, s.delay_ms) {
            return;
        }
        let timing = &mut task.timing;
        let is_told = timing.told.is_some() && !timing.is_stale;
        timing.is_stale = true;
        if is_told && timing.charged == 0 && task.status == Pending && task.run.is_some() {
            task.not_before = now;
        }
    }

    /// Between two commands: what follows from the timers of ready tasks is recorded.
    pub(super) fn check_told(&self, id: TaskId, now: Timestamp) {
        let task = &self.tasks[&id];
        let (start_at, delay_ms) = timers(task);
        // A `start_at` that is over before the next attempt says nothing.
        let decides = start_at.is_some_and(|at| at > now && at >= self.starts_at(id));
        if self.is_ready(id) && (decides || delay_ms.is_some()) {
            let (told, is_stale) = (task.timing.told, task.timing.is_stale);
            let is_told = told == Some((start_at, delay_ms)) && !is_stale;
            assert!(is_told, "nobody says when it starts");
        }
    }
}

//! Tasks that start later than they could: `start_at` and `params.delay_seconds`.
//!
//! `start_at` holds back a task and everything below it, in every run. A delay is counted from the moment at which the
//! task first is ready in a run. From when on a ready task with timers may start is recorded once (`TaskDeferred`) and
//! kept like the time of its next attempt; that of a group holds back what is below it in the run as long as the group
//! has not begun. Nothing is stored of tasks that are only held back by a group: their place in the queue says it.

use super::event::{Specification, TaskDeferred, TimerKind};
use super::state::{Flow, NONE, Timer};
use crate::Timestamp;
use crate::task::Status;

/// What holds back a pending task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) until: Timestamp,
    /// The task that says it: the held one, or a group around it.
    pub(crate) of: u32,
    pub(crate) timer: TimerKind,
}

impl Flow {
    /// Whether another specification says something else of when the task starts.
    pub(super) fn changes_timer(&self, i: u32, specification: &Specification) -> bool {
        let timer = self.timers.get(&i).copied().unwrap_or_default();
        (timer.start_at, timer.delay_ms) != (specification.start_at, specification.delay_ms)
    }

    /// Keeps what a task says of when it starts. A time that was recorded for its first start in the run counts no
    /// more. The task must not be linked.
    pub(super) fn set_timer(&mut self, i: u32, specification: &Specification) {
        let before = self.timers.get(&i).copied().unwrap_or_default();
        let timer = Timer {
            ready_at: before.ready_at,
            ..Timer::of(specification)
        };
        if timer == Timer::default() {
            self.timers.remove(&i);
        } else {
            self.timers.insert(i, timer);
        }
        if before.is_told && self.waits_for_first_start(i) {
            self.at_mut(i).next_attempt_at = Timestamp::default();
        }
    }

    /// A new run waits anew.
    pub(super) fn restart_timer(&mut self, i: u32) {
        if let Some(timer) = self.timers.get_mut(&i) {
            (timer.ready_at, timer.is_told) = (None, false);
            if *timer == Timer::default() {
                self.timers.remove(&i);
            }
        }
    }

    pub(super) fn deferred(&mut self, e: &TaskDeferred, time: Timestamp) {
        let i = self.ordinal(e.task_id);
        let held = if self.at(i).is_group() {
            self.subtree(i)
        } else {
            vec![i]
        };
        held.iter().for_each(|&t| self.unlink(t));
        let timer = self.timers.entry(i).or_default();
        timer.ready_at.get_or_insert(time);
        timer.is_told = true;
        self.at_mut(i).next_attempt_at = e.next_attempt_at;
        self.hold_back(&held, time);
        held.iter().for_each(|&t| self.link(t));
    }

    /// Gives pending tasks, none of which is linked, their places in the queue anew, after something that holds them
    /// back has changed: the last timer of the flow may be gone by that. Cost: O(tasks * depth).
    pub(super) fn hold_back(&mut self, tasks: &[u32], time: Timestamp) {
        for &i in tasks {
            let task = self.at(i);
            if task.status != Status::Pending || task.run == NONE {
                continue;
            }
            let due = task.next_attempt_at.max(self.held_until(i));
            let task = self.at_mut(i);
            task.ready_since = if due > time {
                due
            } else {
                task.ready_since.min(time)
            };
        }
    }

    /// When nothing but the time of its own next attempt holds a task back any more. Cost: O(depth) in flows with
    /// timers, else O(1).
    pub(super) fn held_until(&self, i: u32) -> Timestamp {
        let holds = self.holds(i).filter(|hold| !self.is_own_delay(i, hold));
        holds.map(|hold| hold.until).max().unwrap_or_default()
    }

    fn is_own_delay(&self, i: u32, hold: &Hold) -> bool {
        hold.of == i && hold.timer == TimerKind::DelaySeconds
    }

    /// What holds a pending task back the longest, if that is longer than until `now`.
    pub(crate) fn hold(&self, i: u32, now: Timestamp) -> Option<Hold> {
        let later = self.holds(i).filter(|hold| hold.until > now);
        later.max_by_key(|hold| (hold.until, hold.timer == TimerKind::StartAt))
    }

    /// Its own timers, and those of the groups around it.
    fn holds(&self, i: u32) -> impl Iterator<Item = Hold> + '_ {
        let run = self.at(i).run;
        let around = std::iter::once(i).chain(self.ancestors(i));
        let around = around.take_while(|_| !self.timers.is_empty());
        around.flat_map(move |of| {
            let (task, timer) = (self.at(of), self.timers.get(&of));
            let start_at = timer.and_then(|timer| timer.start_at);
            let is_waiting = of == i || (task.run == run && run != NONE && task.is_group());
            let delayed =
                timer.filter(|timer| timer.is_told && is_waiting && self.waits_for_first_start(of));
            let delayed = delayed.map(|_| (task.next_attempt_at, TimerKind::DelaySeconds));
            let start_at = start_at.map(|at| (at, TimerKind::StartAt));
            let all = start_at.into_iter().chain(delayed);
            all.map(move |(until, timer)| Hold { until, of, timer })
        })
    }

    fn waits_for_first_start(&self, i: u32) -> bool {
        let task = self.at(i);
        task.status == Status::Pending && task.run != NONE && task.attempts_in_run == 0
    }

    /// From when on a ready task may start that is not told yet, and which timer decides.
    pub(crate) fn first_start(&self, i: u32, now: Timestamp) -> (Timestamp, Option<TimerKind>) {
        let timer = self.timers.get(&i).copied().unwrap_or_default();
        let next = now.max(self.at(i).next_attempt_at);
        let delay_ms = timer.delay_ms.filter(|_| self.waits_for_first_start(i));
        let delayed = delay_ms.map(|ms| timer.ready_at.unwrap_or(now).plus_ms(ms));
        let delayed = delayed.map(|at| (at, TimerKind::DelaySeconds));
        let start_at = timer.start_at.map(|at| (at, TimerKind::StartAt));
        let last = delayed
            .into_iter()
            .chain(start_at)
            .max_by_key(|(at, _)| *at);
        match last {
            Some((at, timer)) if at > next => (at, Some(timer)),
            Some(_) | None => (next, None),
        }
    }
}

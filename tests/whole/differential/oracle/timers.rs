//! `start_at` and `params.delay_seconds`: tasks that start later than they could.

use super::{Oracle, Pending, Symbol, Task};
use taskledger_domain::Timestamp;

/// What the timers of a task have come to in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Timing {
    /// When it was ready for the first time.
    ready: Option<i64>,
    /// The time that follows is recorded.
    told: bool,
    /// Attempts that count.
    pub(super) charged: u32,
}

impl Task {
    fn start_at(&self) -> Option<i64> {
        let text = self.start_at.as_str()?;
        Timestamp::parse(text).ok().map(|at| at.0)
    }

    fn delay(&self) -> Option<i64> {
        let seconds = self.params["delay_seconds"].as_f64()?;
        Some((seconds * 1000.0) as i64 * 1000).filter(|delay| *delay > 0)
    }
}

impl Oracle {
    /// No `start_at` of the task and of those above it is to come, and no group above it in its run waits for its
    /// own time. `own`: with the task's own `start_at`.
    fn held_until(&self, symbol: &str, own: bool) -> i64 {
        let run = self.running_run_of(symbol);
        let own = self.task(symbol).start_at().filter(|_| own);
        let mut until = own.unwrap_or(i64::MIN);
        for above in self.ancestors(symbol) {
            let group = self.task(&above);
            until = until.max(group.start_at().unwrap_or(i64::MIN));
            let waits = group.is_group() && group.status == Pending && group.timing.charged == 0;
            if waits && run.is_some() && self.running_run_of(&above) == run {
                until = until.max(group.next_attempt.unwrap_or(i64::MIN));
            }
        }
        until
    }

    /// When the pending task may start at the earliest, if that is known to be later than now.
    pub(super) fn starts_later(&self, symbol: &str) -> Option<i64> {
        let next = self.task(symbol).next_attempt.unwrap_or(i64::MIN);
        let at = next.max(self.held_until(symbol, true));
        (at > self.now).then_some(at)
    }

    /// Since when a task queues that may start now.
    pub(super) fn queues_since(&self, symbol: &str) -> i64 {
        let next = self.task(symbol).next_attempt;
        let next = next.filter(|at| *at >= self.held_until(symbol, true));
        next.unwrap_or(self.now)
    }

    /// Says of ready tasks with timers from when on they may start, once.
    pub(super) fn tell_timers(&mut self, run: usize) {
        for symbol in self.covered(run) {
            let task = self.task(&symbol);
            let (start_at, delay, timing) = (task.start_at(), task.delay(), task.timing);
            if task.status != Pending || timing.told || !self.is_satisfied(&symbol) {
                continue;
            }
            let later = |at: i64| {
                at > self.now
                    && at >= self.held_until(&symbol, false)
                    && task.next_attempt.is_none_or(|next| at >= next)
            };
            if delay.is_none() && timing.ready.is_none() && !start_at.is_some_and(later) {
                continue;
            }
            let now = self.now;
            let ready = timing.ready.unwrap_or(now);
            let delayed = delay.filter(|_| timing.charged == 0).map(|d| ready + d);
            let all = [Some(now), task.next_attempt, start_at, delayed];
            let until = all.into_iter().flatten().max();
            self.change(&symbol, |t| {
                t.next_attempt = until;
                (t.timing.ready, t.timing.told) = (Some(ready), true);
            });
        }
    }

    /// Of a task that says something else than before of when it starts.
    pub(super) fn change_timers(&self, id: &str, old: &Task, new: &mut Task) {
        if (old.start_at(), old.delay()) == (new.start_at(), new.delay()) {
            return;
        }
        new.timing.told = false;
        let waits = old.status == Pending && old.timing.charged == 0;
        if old.timing.told && waits && self.running_run_of(id).is_some() {
            new.next_attempt = None;
        }
    }

    /// A new run waits anew.
    pub(super) fn restart_timers(&mut self, symbol: &Symbol) {
        let task = self.tasks.get_mut(symbol).expect("covered tasks live");
        task.timing = Timing::default();
        task.next_attempt = None;
    }
}

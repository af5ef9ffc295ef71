//! The derived part of the state: the indexes of the scheduler.
//!
//! Invariant: between two events each task stands in exactly the indexes that its primary fields
//! put it in. Every change goes `unlink` -> change -> `link`.

use super::When;
use super::blocking::Met;
use super::state::{Dialogue, Edge, Flow, NONE, Rank, Wires};
use crate::task::Status;
use crate::{TaskId, Timestamp};
use std::cmp::Reverse;

impl Flow {
    /// Takes a task out of the scheduler's indexes. Cost: O(log tasks + depth for groups).
    pub(super) fn unlink(&mut self, i: u32) {
        self.set_links(i, false);
    }

    /// Puts a task into the indexes that its fields put it in. Cost as [`Self::unlink`].
    pub(super) fn link(&mut self, i: u32) {
        self.set_links(i, true);
    }

    fn set_links(&mut self, i: u32, present: bool) {
        let task = &self.tasks[i as usize];
        let Some(run) = self.runs.get_mut(&task.run) else {
            return;
        };
        if task.deleted {
            return;
        }
        let count = |n: &mut u32| if present { *n += 1 } else { *n -= 1 };
        if !task.status.is_terminal() && task.effective_deadline != Timestamp::FAR_FUTURE {
            put(&mut self.deadlines, (task.effective_deadline, i), present);
        }
        match task.status {
            Status::Pending if task.unsatisfied == 0 && task.is_group() => {
                count(&mut run.ready);
                put(&mut self.ready_groups, (task.ready_since, i), present);
                let untold = self
                    .timers
                    .get(&i)
                    .is_some_and(|timer| timer.is_due_for(task.ready_since));
                put(&mut self.untold_timers, i, present && untold);
            }
            Status::Pending if task.unsatisfied == 0 => {
                count(&mut run.ready);
                let untold = self
                    .timers
                    .get(&i)
                    .is_some_and(|timer| timer.is_due_for(task.ready_since));
                put(&mut self.untold_timers, i, present && untold);
                let rank = Rank {
                    priority: task.priority,
                    since: task.ready_since,
                    task: i,
                };
                let line = task.line();
                let queue = self.ready.entry(line).or_default();
                put(queue, rank, present);
                self.touched.0.insert(line.method);
                if queue.is_empty() {
                    self.ready.remove(&line);
                }
                let own = self.bounds.get(&i).and_then(|own| own.start_within_ms);
                if let Some(within_ms) = own.or(run.start_within_ms()) {
                    let until = rank.since.plus_ms(within_ms);
                    put(&mut self.start_limits, (until, i), present);
                }
            }
            Status::InProgress if task.is_group() => {
                let settled = !run.stale && task.awaited == 0;
                let depth = std::iter::successors(Some(task.parent), |&p| {
                    self.tasks.get(p as usize).map(|t| t.parent)
                })
                .take_while(|&p| p != NONE)
                .count();
                put(&mut run.open_groups, (Reverse(depth), i), present);
                if settled || !present {
                    put(&mut self.settled_groups, i, present);
                }
            }
            Status::InProgress => count(&mut run.running),
            Status::Pending | Status::Completed | Status::Failed | Status::Cancelled => return,
        }
        put(&mut self.still_runs, task.run, run.is_still());
    }

    /// Changes a task's status and everything that follows from it in other tasks' counters.
    /// Cost: O(dependents + depth); where blocks spread also O(tasks behind it that it blocks or frees).
    pub(super) fn set_status(&mut self, i: u32, status: Status, time: Timestamp) {
        let before = self.stand(i);
        if before.status == status {
            return;
        }
        self.unlink(i);
        self.count_in_groups(i, before.status, false);
        self.at_mut(i).status = status;
        self.count_in_groups(i, status, true);
        self.link(i);
        self.spread(i, before, Some(time));
    }

    /// Milliseconds within which a task must have started once it is ready: as it says, or as its run does. Cost:
    /// O(log tasks).
    pub(crate) fn start_within_ms(&self, i: u32) -> Option<u64> {
        let own = self.bounds.get(&i).and_then(|own| own.start_within_ms);
        own.or_else(|| self.runs.get(&self.at(i).run)?.start_within_ms())
    }

    pub(super) fn change_unsatisfied(&mut self, i: u32, by: i32, time: Timestamp) {
        self.unlink(i);
        self.add_unsatisfied(i, by);
        self.refresh_ready_since(i, time);
        self.link(i);
    }

    /// Adds unsatisfied dependencies of a task that is not linked.
    pub(super) fn add_unsatisfied(&mut self, i: u32, by: i32) {
        let task = self.at_mut(i);
        task.unsatisfied = task
            .unsatisfied
            .checked_add_signed(by)
            .expect("each satisfied dependency was counted once");
    }

    /// The time from which a task queues: now, or when its next attempt is due or something stops holding it back. Only
    /// between `unlink` and `link`.
    pub(super) fn refresh_ready_since(&mut self, i: u32, time: Timestamp) {
        let held = self.held_until(i);
        let task = self.at_mut(i);
        task.ready_since = time.max(task.next_attempt_at).max(held);
    }

    /// Adds a task that has not ended to what the groups around it in its run wait for, or takes it out.
    pub(super) fn count_in_groups(&mut self, i: u32, status: Status, present: bool) {
        let task = self.at(i);
        let key = task.run;
        let counts = !status.is_terminal() && !task.deleted;
        if !counts || self.runs.get(&key).is_none_or(|r| r.stale) {
            return;
        }
        let ancestors: Vec<u32> = self.ancestors(i).collect();
        for group in ancestors {
            if self.at(group).run != key || !self.at(group).is_group() {
                continue;
            }
            let task = self.at_mut(group);
            let before = task.awaited;
            task.awaited = if present { before + 1 } else { before - 1 };
            let (settled, was_settled) = (task.awaited == 0, before == 0);
            if settled != was_settled && task.status == Status::InProgress {
                put(&mut self.settled_groups, group, settled);
            }
        }
    }

    /// Marks a run for [`Self::refresh`].
    pub(super) fn make_stale(&mut self, key: u32) {
        if let Some(run) = self.runs.get_mut(&key) {
            run.stale = true;
            self.stale_runs.insert(key);
        }
    }

    /// Counts anew what groups wait for, in runs that have begun or whose tree has changed. Cost: O(members * depth)
    /// for such a run, else O(1).
    pub(crate) fn refresh(&mut self) {
        for key in std::mem::take(&mut self.stale_runs) {
            let members =
                std::mem::take(&mut self.runs.get_mut(&key).expect("listed above").members);
            for &i in &members {
                if self.at(i).is_group() && self.at(i).run == key && !self.at(i).deleted {
                    self.at_mut(i).awaited = 0;
                    self.settled_groups.remove(&i);
                }
            }
            self.runs.get_mut(&key).expect("listed above").stale = false;
            for &i in &members {
                // A member that another active run holds has completed.
                let (run, status) = (self.at(i).run, self.at(i).status);
                if run == key {
                    self.count_in_groups(i, status, true);
                }
            }
            for &i in &members {
                let task = self.at(i);
                if task.run == key
                    && task.status == Status::InProgress
                    && task.is_group()
                    && !task.deleted
                {
                    let settled = task.awaited == 0;
                    put(&mut self.settled_groups, i, settled);
                }
            }
            self.runs.get_mut(&key).expect("listed above").members = members;
        }
    }

    /// Brings everything derived up to date after events were applied one by one.
    #[cfg(feature = "testing")]
    pub fn settle_indexes(&mut self) {
        self.refresh();
    }

    /// Rebuilds everything derived from the primary fields, after a snapshot was read.
    /// Cost: O(tasks + edges).
    pub(crate) fn rebuild(&mut self) {
        self.methods.index();
        self.users.index();
        self.wires_bytes = self.wires.values().map(Wires::weight_bytes).sum();
        self.index = self
            .tasks
            .iter()
            .enumerate()
            .map(|(i, t)| (t.id, i as u32))
            .collect();
        self.run_keys = self.runs.iter().map(|(key, r)| (r.id, *key)).collect();
        self.heard = self.runs.values().map(|run| run.heard.len()).sum();
        self.still_runs = self.runs.keys().copied().collect();
        let keys: Vec<u32> = self.runs.keys().copied().collect();
        for key in keys {
            self.make_stale(key);
        }
        for i in 0..self.tasks.len() as u32 {
            if self.at(i).deleted {
                self.at_mut(i).effective_deadline = Timestamp::FAR_FUTURE;
                continue;
            }
            let parent = self.at(i).parent;
            if parent != NONE {
                self.at_mut(parent).children.push(i);
            }
            for edge in self.at(i).dependencies.clone() {
                self.at_mut(edge.task).dependents.push(Edge {
                    task: i,
                    when: edge.when,
                });
                let met = self.stand(edge.task).meets(edge.when);
                self.at_mut(i).unsatisfied += u32::from(met != Met::Yes);
                self.always_edges += usize::from(edge.when == When::Always);
                self.edges += 1;
            }
        }
        let leased: Vec<u32> = self.leases.keys().copied().collect();
        leased.into_iter().for_each(|i| self.link_time_out(i));
        let asking: Vec<u32> = self.dialogues.keys().copied().collect();
        asking.into_iter().for_each(|i| self.link_suspension(i));
        self.dialogues_bytes = self.dialogues.values().map(Dialogue::weight_bytes).sum();
        self.refresh_deadlines(0);
        if self.always_edges > 0 {
            self.begin_spreading(None);
        }
        for i in 0..self.tasks.len() as u32 {
            self.refresh_lacking(i);
            self.link(i);
        }
        self.refresh();
    }

    /// Has the attempt of a leased task time out when its time has come.
    pub(super) fn link_time_out(&mut self, i: u32) {
        let times_out_at = self.leases[&i].times_out_at;
        if times_out_at != Timestamp::FAR_FUTURE {
            self.time_outs.insert((times_out_at, i));
        }
    }

    /// Effective deadlines of a task and everything below it. The tasks must not be linked, or the
    /// deadline must not have changed. Cost: O(subtree).
    pub(super) fn refresh_deadlines(&mut self, top: u32) {
        if self.tasks.get(top as usize).is_none_or(|t| t.deleted) {
            return;
        }
        for i in self.subtree(top) {
            let own = self.at(i).deadline;
            let inherited = self
                .tasks
                .get(self.at(i).parent as usize)
                .map(|p| p.effective_deadline);
            self.at_mut(i).effective_deadline = inherited.map_or(own, |d| d.min(own));
        }
    }

    /// The task with this id, deleted or not.
    pub(super) fn ordinal(&self, id: TaskId) -> u32 {
        *self
            .index
            .get(&id)
            .expect("events name tasks that the flow has")
    }
}

fn put<T: Ord>(set: &mut std::collections::BTreeSet<T>, item: T, present: bool) {
    if present {
        set.insert(item);
    } else {
        set.remove(&item);
    }
}

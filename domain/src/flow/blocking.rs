//! The effect of a task's status on the tasks that wait for it.
//!
//! A pending task is *blocked* when one of its dependencies can never be satisfied any more: a required one that
//! failed or was cancelled, or one that is blocked itself. Whether a task is blocked follows from statuses and
//! dependencies alone. It is kept only in flows in which somebody waits with [`When::Always`], which a blocked
//! task satisfies; elsewhere nothing follows from it until its run comes to rest.

use super::event::When;
use super::state::{Edge, Flow, NONE};
use crate::task::Status;
use crate::{RunId, TaskId, Timestamp, Version};
use hashbrown::HashMap;
use std::collections::VecDeque;

/// How a task stands for those that wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DependencyState {
    pub(super) status: Status,
    pub(super) blocked: bool,
}

/// Whether a dependency is satisfied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    Yes,
    NotYet,
    /// Unless somebody runs again what has ended, or changes what waits.
    Never,
}

impl DependencyState {
    /// A task that was just created.
    pub(super) const NEW: Self = Self {
        status: Status::Pending,
        blocked: false,
    };

    pub(super) const fn meets(self, when: When) -> Met {
        match (self.status, when) {
            (Status::Completed, When::Completed | When::Ended | When::Always)
            | (Status::Failed | Status::Cancelled, When::Ended | When::Always) => Met::Yes,
            (Status::Failed | Status::Cancelled, When::Completed) => Met::Never,
            (Status::Pending, When::Always) if self.blocked => Met::Yes,
            (Status::Pending, When::Completed | When::Ended) if self.blocked => Met::Never,
            (
                Status::Pending | Status::InProgress,
                When::Completed | When::Ended | When::Always,
            ) => Met::NotYet,
        }
    }
}

impl Flow {
    /// The pending tasks that active runs cover and that can never begin unless somebody steps in: what they wait for,
    /// directly or not, failed or was cancelled. Each with the version of the event that says so, in order of creation.
    /// Cost: O(tasks + edges).
    #[must_use]
    pub fn blocked(&self) -> Vec<(TaskId, Version)> {
        let mut open = VecDeque::new();
        for task in self.tasks.iter().filter(|task| !task.deleted) {
            let stand = DependencyState {
                status: task.status,
                blocked: false,
            };
            let kept = task
                .dependents
                .iter()
                .filter(|it| stand.meets(it.when) == Met::Never);
            open.extend(kept.map(|edge| (edge.task, task.outcome_at)));
        }
        let blocked = DependencyState {
            status: Status::Pending,
            blocked: true,
        };
        let mut causes = HashMap::new();
        while let Some((i, cause)) = open.pop_front() {
            let task = self.at(i);
            if task.deleted || task.status != Status::Pending || causes.contains_key(&i) {
                continue;
            }
            causes.insert(i, cause);
            let kept = task
                .dependents
                .iter()
                .filter(|it| blocked.meets(it.when) == Met::Never);
            open.extend(kept.map(|edge| (edge.task, cause)));
        }
        let mut found: Vec<(u32, Version)> = causes.into_iter().collect();
        found.retain(|(i, _)| self.at(*i).run != NONE);
        found.sort_unstable();
        let named = found.into_iter().map(|(i, cause)| (self.at(i).id, cause));
        named.collect()
    }

    /// The tasks that an active run covers and that have not begun, groups included, in order of creation. Cost:
    /// O(members of the run).
    #[must_use]
    pub fn pending_in(&self, run: RunId) -> Vec<TaskId> {
        let Some(key) = self.run_keys.get(&run) else {
            return Vec::new();
        };
        let members = self.runs.get(key).into_iter().flat_map(|run| &run.members);
        let tasks = members
            .map(|i| self.at(*i))
            .filter(|task| task.run == *key && !task.deleted && task.status == Status::Pending);
        tasks.map(|task| task.id).collect()
    }

    pub(super) fn stand(&self, i: u32) -> DependencyState {
        let task = self.at(i);
        DependencyState {
            status: task.status,
            blocked: task.status == Status::Pending && task.dead > 0,
        }
    }

    /// Whether a dependency on `edge.task` is satisfied.
    pub(super) fn is_met(&self, edge: Edge) -> bool {
        self.stand(edge.task).meets(edge.when) == Met::Yes
    }

    /// Tells those that wait for a task that it does not stand as `before` any more, and those that wait for
    /// them where they are blocked or freed by that. Without a time: the tasks are not linked. Cost:
    /// O(dependents), and of each task that is blocked or freed.
    pub(super) fn spread(&mut self, i: u32, before: DependencyState, time: Option<Timestamp>) {
        let (mut next, mut others) = (Some((i, before)), Vec::new());
        while let Some((i, before)) = next.take().or_else(|| others.pop()) {
            let after = self.stand(i);
            for d in 0..self.at(i).dependents.len() {
                let Edge { task, when } = self.at(i).dependents[d];
                let (was, is) = (before.meets(when), after.meets(when));
                if was == is {
                    continue;
                }
                if (was == Met::Yes) != (is == Met::Yes) {
                    let by = if is == Met::Yes { -1 } else { 1 };
                    match time {
                        Some(time) => self.change_unsatisfied(task, by, time),
                        None => self.add_unsatisfied(task, by),
                    }
                }
                if self.spreads_blocks && (was == Met::Never) != (is == Met::Never) {
                    let stood = self.stand(task);
                    let dead = &mut self.at_mut(task).dead;
                    *dead = if is == Met::Never {
                        *dead + 1
                    } else {
                        *dead - 1
                    };
                    // Once: all edges behind one change turn the same way.
                    if self.stand(task) != stood {
                        others.push((task, stood));
                    }
                }
            }
        }
    }

    /// After dependencies of a task were added or dropped, and it was linked again.
    pub(super) fn edges_changed(&mut self, i: u32, before: DependencyState, time: Timestamp) {
        match (self.spreads_blocks, self.always_edges > 0) {
            (false, false) => {}
            (false, true) => self.begin_spreading(Some(time)),
            (true, false) => {
                self.spreads_blocks = false;
                self.tasks.iter_mut().for_each(|task| task.dead = 0);
            }
            (true, true) => {
                if self.stand(i) != before {
                    self.spread(i, before, Some(time));
                }
            }
        }
    }

    /// Finds out which tasks are blocked. Cost: O(tasks + edges).
    pub(super) fn begin_spreading(&mut self, time: Option<Timestamp>) {
        self.spreads_blocks = true;
        let mut blocked = Vec::new();
        for i in 0..self.tasks.len() as u32 {
            let edges = self.at(i).dependencies.iter();
            // Nothing counts as blocked yet, so only what has ended is seen here.
            let dead = edges.filter(|edge| {
                edge.task != NONE && {
                    let status = self.at(edge.task).status;
                    let ended = DependencyState {
                        status,
                        blocked: false,
                    };
                    ended.meets(edge.when) == Met::Never
                }
            });
            let dead = u32::try_from(dead.count()).unwrap_or(u32::MAX);
            if dead > 0 && self.at(i).status == Status::Pending {
                blocked.push((i, self.stand(i)));
            }
            self.at_mut(i).dead = dead;
        }
        for (i, before) in blocked {
            self.spread(i, before, time);
        }
    }
}

//! Who waits for whom, and what a run covers, by the text of the semantics.

use super::Model;
use std::collections::BTreeSet;
use taskledger_domain::flow::{RunKind, When};
use taskledger_domain::task::Status::{Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::{RunId, TaskId};

impl Model {
    pub(super) fn is_tolerated(&self, id: TaskId) -> bool {
        let all = self.tasks.values().flat_map(|t| &t.dependencies);
        let on_it = all.filter(|(target, when)| *target == id && *when != When::Always);
        let mut on_it = on_it.peekable();
        on_it.peek().is_some() && on_it.all(|(_, when)| *when == When::Ended)
    }

    /// Live tasks that the run holds.
    pub(super) fn held(&self, run: RunId) -> Vec<TaskId> {
        let all = self.tasks.iter();
        all.filter(|(_, t)| t.run == Some(run))
            .map(|(i, _)| *i)
            .collect()
    }

    /// Covered descendants, groups too, that a group waits for in its run and that have not ended.
    pub(super) fn awaited(&self, group: TaskId) -> usize {
        let run = self.tasks[&group].run.expect("the group is in a run");
        let open = self.descendants(group).into_iter().filter(|inner| {
            self.runs[&run].members.contains(inner) && !self.tasks[inner].status.is_terminal()
        });
        open.count()
    }

    /// Descendants of a group that run something, covered or not: counts of open, completed, failed, cancelled.
    pub(super) fn tally(&self, group: TaskId) -> [u32; 4] {
        let mut counts = [0; 4];
        for inner in self.descendants(group) {
            if !self.is_group(inner) {
                counts[match self.tasks[&inner].status {
                    Pending | InProgress => 0,
                    Completed => 1,
                    Failed => 2,
                    Cancelled => 3,
                }] += 1;
            }
        }
        counts
    }

    pub(super) fn is_harmed(&self, group: TaskId) -> bool {
        let bad = |c: &TaskId| matches!(self.tasks[c].status, Failed | Cancelled);
        self.children(group)
            .iter()
            .any(|c| bad(c) && !self.is_tolerated(*c))
    }

    /// Nothing of the run is running, runnable, or awaiting a retry or an executor.
    pub(super) fn is_still(&self, run: RunId) -> bool {
        self.held(run).into_iter().all(|t| {
            let running = self.tasks[&t].status == InProgress && !self.is_group(t);
            !running && !self.is_ready(t)
        })
    }

    /// "A retry or re-execution runs only what something that will run needs": each task that a new run starts has a
    /// reason to be in it, and the run has everything that its tasks wait for.
    pub(super) fn check_members(&self, root: TaskId, kind: RunKind, members: &BTreeSet<TaskId>) {
        let below = self.descendants(root);
        let open = |id: TaskId| matches!(self.tasks[&id].status, Pending | Failed);
        let starting: Vec<TaskId> = members.iter().copied().filter(|id| open(*id)).collect();
        let depends = |id: TaskId, on: TaskId, fits: &dyn Fn(When) -> bool| {
            let dependencies = &self.tasks[&id].dependencies;
            dependencies.iter().any(|(t, when)| *t == on && fits(*when))
        };
        let cleans = |id: TaskId| {
            let always = |when| when == When::Always;
            // Another step that cleans up may run again, too.
            members.iter().any(|on| depends(id, *on, &always))
        };
        for &id in &starting {
            let stays = self.tasks[&id].status == Failed && self.is_tolerated(id);
            let is_asked = id == root || (below.contains(&id) && !stays);
            let is_needed = starting
                .iter()
                .any(|other| depends(*other, id, &|when| !self.is_satisfied((id, when))));
            let around = self.ancestors(id);
            let is_part = !stays
                && around
                    .iter()
                    .any(|a| members.contains(a) && self.is_group(*a));
            let is_behind = kind == RunKind::Retry
                && self.tasks[&id].status == Pending
                && members.iter().any(|on| depends(id, *on, &|_| true));
            let is_around = self.is_group(id)
                && self.tasks[&id].status == Failed
                && self
                    .descendants(id)
                    .iter()
                    .any(|below| members.contains(below));
            let cleans = cleans(id) || around.iter().any(|a| cleans(*a));
            assert!(
                is_asked || is_needed || is_part || is_behind || is_around || cleans,
                "{id} runs without a reason"
            );
        }
        for &id in &starting {
            for &(on, when) in &self.tasks[&id].dependencies {
                let is_open = self.tasks[&on].status == Pending;
                assert!(!is_open || self.is_satisfied((on, when)) || members.contains(&on));
            }
        }
        let pending = below.iter().filter(|id| self.tasks[*id].status == Pending);
        for id in pending {
            assert!(members.contains(id), "{id} was asked for");
        }
    }

    /// Whether a completed task may run again: it cleans up, or is part of a group that does, or is a group around one.
    pub(super) fn may_run_again(&self, id: TaskId) -> bool {
        let cleans = |id: &TaskId| {
            let mut dependencies = self.tasks[id].dependencies.iter();
            dependencies.any(|(_, when)| *when == When::Always)
        };
        let below = self.descendants(id);
        cleans(&id)
            || self.ancestors(id).iter().any(cleans)
            || (self.is_group(id) && below.iter().any(cleans))
    }
}

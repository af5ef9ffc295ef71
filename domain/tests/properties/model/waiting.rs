//! Who waits for whom, and what a run covers, by the text of the semantics.

use super::Model;
use std::collections::BTreeSet;
use taskledger_domain::flow::When;
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

    /// "The subtree that was asked for; then, repeatedly, the dependencies of covered tasks and the
    /// whole subtrees of covered groups."
    pub(super) fn coverage(&self, root: TaskId) -> BTreeSet<TaskId> {
        let mut covered: BTreeSet<TaskId> =
            self.descendants(root).into_iter().chain([root]).collect();
        loop {
            let mut more = covered.clone();
            for task in &covered {
                more.extend(self.tasks[task].dependencies.iter().map(|(t, _)| *t));
                if self.is_group(*task) {
                    more.extend(self.descendants(*task));
                }
            }
            if more.len() == covered.len() {
                return covered;
            }
            covered = more;
        }
    }
}

//! Who waits for whom, and what a run covers, by the text of the semantics.

use super::Model;
use std::collections::{BTreeSet, HashMap, HashSet};
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

    /// "A group waits for all its covered descendants except those that wait, even indirectly, for
    /// it." Outer groups first; who is left out of an outer group's waiting does not hold it up.
    pub(super) fn left_out(&self, run: RunId) -> HashSet<(TaskId, TaskId)> {
        let held: Vec<TaskId> = self.held(run);
        let groups: Vec<TaskId> = held.iter().copied().filter(|t| self.is_group(*t)).collect();
        let inside: HashMap<TaskId, Vec<TaskId>> = groups
            .iter()
            .map(|g| {
                (
                    *g,
                    self.descendants(*g)
                        .into_iter()
                        .filter(|d| held.contains(d))
                        .collect(),
                )
            })
            .collect();
        let mut left_out = HashSet::new();
        for depth in 0..60 {
            let mut found = Vec::new();
            for &group in groups.iter().filter(|g| self.ancestors(**g).len() == depth) {
                for &inner in &inside[&group] {
                    if self.waits(inner, group, &held, &inside, &left_out) {
                        found.push((group, inner));
                    }
                }
            }
            left_out.extend(found);
        }
        left_out
    }

    pub(super) fn waits(
        &self,
        from: TaskId,
        target: TaskId,
        held: &[TaskId],
        inside: &HashMap<TaskId, Vec<TaskId>>,
        left_out: &HashSet<(TaskId, TaskId)>,
    ) -> bool {
        let (mut seen, mut stack) = (HashSet::new(), vec![from]);
        while let Some(at) = stack.pop() {
            let on = self.tasks[&at].dependencies.iter().map(|(t, _)| *t);
            let on = on.filter(|t| held.contains(t));
            let within = inside.get(&at).into_iter().flatten().copied();
            for next in on.chain(within.filter(|d| !left_out.contains(&(at, *d)))) {
                if next == target {
                    return true;
                }
                if seen.insert(next) {
                    stack.push(next);
                }
            }
        }
        false
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
        let left_out = self.left_out(run);
        let open = self.descendants(group).into_iter().filter(|inner| {
            self.runs[&run].members.contains(inner)
                && !left_out.contains(&(group, *inner))
                && !self.tasks[inner].status.is_terminal()
        });
        open.count()
    }

    /// Descendants of a group that run something, covered or not, but for those that wait for the group:
    /// counts of open, completed, failed, cancelled.
    pub(super) fn tally(&self, group: TaskId) -> [u32; 4] {
        let run = self.tasks[&group].run.expect("the group is in a run");
        let left_out = self.left_out(run);
        let mut counts = [0; 4];
        for inner in self.descendants(group) {
            let task = &self.tasks[&inner];
            let waits = if task.run == Some(run) {
                left_out.contains(&(group, inner))
            } else {
                !task.status.is_terminal() && self.depends_on(inner, group)
            };
            if !waits && !self.is_group(inner) {
                counts[match task.status {
                    Pending | InProgress => 0,
                    Completed => 1,
                    Failed => 2,
                    Cancelled => 3,
                }] += 1;
            }
        }
        counts
    }

    fn depends_on(&self, from: TaskId, target: TaskId) -> bool {
        let (mut seen, mut stack) = (HashSet::new(), vec![from]);
        while let Some(at) = stack.pop() {
            for (next, _) in &self.tasks[&at].dependencies {
                if seen.insert(*next) {
                    stack.push(*next);
                }
            }
        }
        seen.contains(&target)
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

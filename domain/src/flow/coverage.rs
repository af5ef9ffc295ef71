//! Computes the tasks that a run covers.

use super::RunKind;
use super::state::{Flow, NONE};
use crate::TaskId;
use crate::task::Status;

impl Flow {
    /// What `tasks.execute` of the task covers: its subtree; then, repeatedly, the dependencies of
    /// covered tasks and the whole subtrees of covered groups. Ascending. Cost: O(result + edges).
    pub(super) fn coverage(&self, root: u32) -> Vec<u32> {
        let mut marks = Marks::new(self);
        marks.add(root, true);
        marks.close(|_| true);
        marks.covered()
    }

    /// What `tasks.retry` of a failed task covers: what its execution covers; then, repeatedly, the
    /// pending tasks behind whatever of this will run, groups with everything below them, the
    /// pending tasks that those need, and the failed groups around them. A task that only waits for
    /// a completed dependency was not held back by the failure, so it is left alone.
    /// Cost: O(result * depth + edges).
    pub(super) fn retry_coverage(&self, root: u32) -> Vec<u32> {
        let mut marks = Marks::new(self);
        marks.add(root, true);
        marks.close(|_| true);
        let mut seen = 0;
        while let Some(&i) = marks.found.get(seen) {
            seen += 1;
            if self.at(i).status == Status::Completed {
                continue;
            }
            for edge in &self.at(i).dependents {
                let task = self.at(edge.task);
                if task.status == Status::Pending {
                    marks.add(edge.task, task.is_group());
                }
            }
            for group in self.ancestors(i) {
                let task = self.at(group);
                if task.is_group() && task.status == Status::Failed {
                    marks.add(group, false);
                }
            }
            marks.close(|i| self.at(i).status == Status::Pending);
        }
        marks.covered()
    }

    /// The tasks that a run of this kind covers; empty for a task that does not exist. Cost: O(tasks).
    #[must_use]
    pub fn run_set(&self, id: TaskId, kind: RunKind) -> Vec<TaskId> {
        let Some(asked) = self.live(id) else {
            return Vec::new();
        };
        let covered = match kind {
            RunKind::Execute => self.coverage(asked),
            RunKind::Retry => self.retry_coverage(asked),
        };
        covered.into_iter().map(|i| self.at(i).id).collect()
    }

    /// The tasks that `tasks.copy` copies, the asked one first, parents before children.
    #[must_use]
    pub fn copy_set(&self, id: TaskId, copy_children: bool) -> Option<Vec<TaskId>> {
        let root = self.live(id)?;
        if !copy_children {
            return Some(vec![id]);
        }
        let mut covered = vec![false; self.tasks.len()];
        self.coverage(root)
            .into_iter()
            .for_each(|i| covered[i as usize] = true);
        let mut order = self.subtree(root);
        order.iter().for_each(|&i| covered[i as usize] = false);
        // What lies outside the subtree follows in the order of the whole tree.
        order.extend(self.subtree(0).into_iter().filter(|&i| covered[i as usize]));
        Some(order.into_iter().map(|i| self.at(i).id).collect())
    }

    /// The new task's chain of live ancestors reaches this depth; 0 for a root.
    pub(super) fn depth_below(&self, parent: u32) -> usize {
        if parent == NONE {
            0
        } else {
            self.depth(parent) + 1
        }
    }
}

struct Marks<'a> {
    flow: &'a Flow,
    /// 0 not covered, 1 covered, 2 covered with everything below it.
    marks: Vec<u8>,
    found: Vec<u32>,
    queue: Vec<u32>,
}

impl<'a> Marks<'a> {
    fn new(flow: &'a Flow) -> Self {
        Self {
            flow,
            marks: vec![0; flow.tasks.len()],
            found: Vec::new(),
            queue: Vec::new(),
        }
    }

    /// Covers a task; true when it was not covered before.
    fn add(&mut self, i: u32, deep: bool) -> bool {
        let mark = &mut self.marks[i as usize];
        let new = *mark == 0;
        if new {
            self.found.push(i);
        }
        let wanted = if deep { 2 } else { 1 };
        if *mark < wanted {
            *mark = wanted;
            self.queue.push(i);
        }
        new
    }

    /// Follows dependencies (those that `pulls` admits) and whole subtrees until nothing is added.
    fn close(&mut self, pulls: impl Fn(u32) -> bool) {
        while let Some(i) = self.queue.pop() {
            for edge in &self.flow.at(i).dependencies {
                if pulls(edge.task) {
                    let deep = self.flow.at(edge.task).is_group();
                    self.add(edge.task, deep);
                }
            }
            if self.marks[i as usize] == 2 {
                for child in self.flow.children(i) {
                    self.add(child, true);
                }
            }
        }
    }

    /// Ascending. Cost: O(result), whatever the flow's size.
    fn covered(&self) -> Vec<u32> {
        let mut covered = self.found.clone();
        covered.sort_unstable();
        covered
    }
}

/// Whether a run with these ranges of ordinals covers the task `ordinal`. The ranges ascend, both ends
/// included. Cost: O(log ranges).
#[must_use]
pub fn covers(ranges: &[(u32, u32)], ordinal: u32) -> bool {
    let after = ranges.partition_point(|&(first, _)| first <= ordinal);
    after > 0 && ranges[after - 1].1 >= ordinal
}

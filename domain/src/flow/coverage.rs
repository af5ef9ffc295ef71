//! Computes the tasks that a run covers, and which of them it runs again.

use super::event::When;
use super::state::{Edge, Flow, NONE};
use super::{Include, RunKind};
use crate::TaskId;
use crate::task::Status;

/// What a run covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Coverage {
    /// Ordinals, ascending.
    pub(super) covered: Vec<u32>,
    /// Those of them that have ended and run again, ascending.
    pub(super) again: Vec<u32>,
}

/// What a run of a task would cover.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSet {
    /// In order of creation.
    pub covered: Vec<TaskId>,
    /// How many of them have ended and run again.
    pub again: usize,
}

impl Flow {
    /// What a run of `root` covers. Cost: O(result * depth + edges).
    ///
    /// `tasks.execute` runs the pending and failed tasks of the subtree of `root`, and of what those need: a dependency
    /// that is not satisfied as it is. A tolerated failure below `root` stays as it is; so do the failures below a
    /// tolerated group. Completed dependencies are covered, and the completed tasks behind them, because the counts of
    /// the run include them.
    ///
    /// `tasks.retry` adds the pending tasks behind whatever runs, groups with everything below them, the pending tasks
    /// that those need, and the failed groups around them. A task that only waits for a completed dependency was not
    /// held back by the failure, so the run leaves it out.
    ///
    /// Both run a step that waits with [`When::Always`] and has ended again when such a dependency of it runs.
    /// [`Include::Failed`] also runs the failed tasks that would stay as they are.
    pub(super) fn coverage(&self, root: u32, kind: RunKind, include: Include) -> Coverage {
        let mut marks = Marks::new(self, include);
        marks.add(root, DEEP);
        marks.close(true);
        let mut seen = 0;
        while let Some(&i) = marks.work.get(seen) {
            seen += 1;
            if marks.runs(i) {
                marks.follow(root, i, kind);
                marks.close(false);
            }
        }
        marks.coverage()
    }

    /// The tasks that a run of this kind covers; empty for a task that does not exist. Cost: O(tasks).
    #[must_use]
    pub fn run_set(&self, id: TaskId, kind: RunKind, include: Include) -> RunSet {
        let Some(root) = self.live(id) else {
            return RunSet::default();
        };
        let found = self.coverage(root, kind, include);
        RunSet {
            covered: found.covered.into_iter().map(|i| self.at(i).id).collect(),
            again: found.again.len(),
        }
    }

    /// The tasks that `tasks.copy` copies, the asked one first, parents before children.
    #[must_use]
    pub fn copy_set(&self, id: TaskId, copy_children: bool) -> Option<Vec<TaskId>> {
        let root = self.live(id)?;
        if !copy_children {
            return Some(vec![id]);
        }
        let mut covered = vec![false; self.tasks.len()];
        let mut marks = Marks::new(self, Include::Failed);
        marks.add(root, DEEP);
        marks.close(true);
        marks
            .coverage()
            .covered
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

/// Covered because it completed: of what it depends on, and of what is below it, only what completed is covered.
const KEPT: u8 = 1;
/// Covered without what is below it.
const SHALLOW: u8 = 2;
/// Covered with what is below it.
const DEEP: u8 = 3;

#[derive(Clone, Copy, Default)]
struct Mark {
    /// One of the constants above; 0: not covered.
    level: u8,
    /// It runs again although it completed.
    again: bool,
    /// Everything below it runs again, too.
    whole: bool,
}

struct Marks<'a> {
    flow: &'a Flow,
    include: Include,
    marks: Vec<Mark>,
    found: Vec<u32>,
    /// Tasks whose dependencies and children are still to be covered.
    queue: Vec<u32>,
    /// Covered tasks in the order in which they were found; a completed one that runs again is in it twice.
    work: Vec<u32>,
}

impl<'a> Marks<'a> {
    fn new(flow: &'a Flow, include: Include) -> Self {
        Self {
            flow,
            include,
            marks: vec![Mark::default(); flow.tasks.len()],
            found: Vec::new(),
            queue: Vec::new(),
            work: Vec::new(),
        }
    }

    /// Covers a task.
    fn add(&mut self, i: u32, level: u8) {
        let mark = &mut self.marks[i as usize];
        if mark.level == 0 {
            self.found.push(i);
            self.work.push(i);
        }
        if mark.level < level {
            mark.level = level;
            self.queue.push(i);
        }
    }

    /// Covers a task that has ended, and runs it again; if `whole`, with everything below it.
    fn repeat(&mut self, i: u32, whole: bool) {
        self.add(i, if whole { DEEP } else { SHALLOW });
        let mark = &mut self.marks[i as usize];
        let is_new = !mark.again || (whole && !mark.whole);
        mark.again = true;
        mark.whole |= whole;
        if is_new {
            self.queue.push(i);
            self.work.push(i);
        }
    }

    /// Whether the run will run the covered task, unless it is blocked.
    fn runs(&self, i: u32) -> bool {
        let mark = self.marks[i as usize];
        match self.flow.at(i).status {
            Status::Pending | Status::InProgress | Status::Failed => mark.level >= SHALLOW,
            Status::Completed => mark.again,
            Status::Cancelled => false,
        }
    }

    /// Whether the run leaves a failed task as it is unless something needs it.
    fn stays(&self, i: u32) -> bool {
        self.include == Include::Needed
            && self.flow.at(i).status == Status::Failed
            && self.flow.is_tolerated(i)
    }

    /// How a covered task pulls a dependency into the run, if it does. `asked`: the task is asked for or needed, not
    /// behind such a task.
    fn pull(&self, i: u32, edge: Edge, asked: bool) -> Option<u8> {
        let dependency = self.flow.at(edge.task);
        let run = if dependency.is_group() { DEEP } else { SHALLOW };
        let all_failed = self.include == Include::Failed;
        if asked && all_failed {
            return Some(run);
        }
        if dependency.status == Status::Completed {
            return asked.then_some(KEPT);
        }
        if !self.runs(i) {
            return None;
        }
        if all_failed && dependency.status == Status::Failed {
            return Some(run);
        }
        if self.flow.is_met(edge) {
            return None;
        }
        (asked || dependency.status == Status::Pending).then_some(run)
    }

    /// Follows dependencies and children until nothing is added.
    fn close(&mut self, asked: bool) {
        let flow = self.flow;
        while let Some(i) = self.queue.pop() {
            for &edge in &flow.at(i).dependencies {
                if let Some(level) = self.pull(i, edge, asked) {
                    self.add(edge.task, level);
                }
            }
            let mark = self.marks[i as usize];
            match mark.level {
                KEPT if flow.at(i).is_group() => {
                    for child in flow.children(i) {
                        if flow.at(child).status == Status::Completed {
                            self.add(child, KEPT);
                        }
                    }
                }
                DEEP if mark.whole => flow.children(i).for_each(|child| self.repeat(child, true)),
                DEEP => self.add_below(i),
                _ => {}
            }
        }
    }

    /// Covers what is below a task but tolerated failures and the failures below tolerated groups.
    fn add_below(&mut self, i: u32) {
        let flow = self.flow;
        let mut below: Vec<(u32, bool)> = flow.children(i).map(|child| (child, false)).collect();
        while let Some((child, in_tolerated)) = below.pop() {
            let task = flow.at(child);
            let in_tolerated = if self.stays(child) {
                in_tolerated || task.is_group()
            } else if !in_tolerated {
                self.add(child, DEEP);
                continue;
            } else {
                match task.status {
                    Status::Pending | Status::InProgress => {
                        self.add(child, DEEP);
                        continue;
                    }
                    Status::Completed => self.add(child, KEPT),
                    Status::Failed | Status::Cancelled => {}
                }
                true
            };
            below.extend(flow.children(child).map(|child| (child, in_tolerated)));
        }
    }

    /// Covers what follows from a task that runs.
    fn follow(&mut self, root: u32, i: u32, kind: RunKind) {
        let flow = self.flow;
        let is_retry = kind == RunKind::Retry;
        for edge in &flow.at(i).dependents {
            let task = flow.at(edge.task);
            let level = if task.is_group() { DEEP } else { SHALLOW };
            match task.status {
                Status::Completed | Status::Failed if edge.when == When::Always => {
                    self.repeat(edge.task, task.is_group());
                }
                Status::Pending if is_retry => self.add(edge.task, level),
                Status::Failed if is_retry && self.include == Include::Failed => {
                    self.add(edge.task, level);
                }
                Status::Pending
                | Status::InProgress
                | Status::Completed
                | Status::Failed
                | Status::Cancelled => {}
            }
        }
        // Groups are judged again with what runs below them.
        let completed = self.marks[i as usize].again;
        let is_below = flow.ancestors(i).any(|above| above == root);
        let around = flow
            .ancestors(i)
            .take(if is_retry || is_below { usize::MAX } else { 0 });
        for group in around.filter(|&group| flow.at(group).is_group()) {
            match flow.at(group).status {
                Status::Failed => self.add(group, SHALLOW),
                Status::Completed if completed => self.repeat(group, false),
                Status::Pending | Status::InProgress | Status::Completed | Status::Cancelled => {}
            }
            // An execution judges no group around the task that was asked for.
            if group == root && !is_retry {
                break;
            }
        }
    }

    /// Cost: O(result * log result), whatever the flow's size.
    fn coverage(&self) -> Coverage {
        let mut covered = self.found.clone();
        covered.sort_unstable();
        let ended = |i: &u32| {
            let status = self.flow.at(*i).status;
            matches!(status, Status::Completed | Status::Failed) && self.runs(*i)
        };
        let again = covered.iter().copied().filter(ended).collect();
        Coverage { covered, again }
    }
}

/// Whether a run with these ranges of ordinals covers the task `ordinal`. The ranges ascend, both ends
/// included. Cost: O(log ranges).
#[must_use]
pub fn covers(ranges: &[(u32, u32)], ordinal: u32) -> bool {
    let after = ranges.partition_point(|&(first, _)| first <= ordinal);
    after > 0 && ranges[after - 1].1 >= ordinal
}

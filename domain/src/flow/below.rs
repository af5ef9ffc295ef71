//! Totals over the tasks below a group: how many have ended in which way, and their progress.
//!
//! Owns: the counts that a group is judged by and the progress that it shows. Reads the state alone.

use super::state::Flow;
use crate::task::{Progress, Status};
use hashbrown::{HashMap, HashSet};

/// Descendants of a group that run something, by what has become of them, whether the group's run covers
/// them or not. Those that wait for the group are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    /// Pending or in progress.
    pub(crate) open: u32,
    pub(crate) completed: u32,
    pub(crate) failed: u32,
    pub(crate) cancelled: u32,
    /// Groups among the descendants, which run nothing.
    pub(crate) groups: u32,
    /// Of these the completed ones.
    pub(crate) completed_groups: u32,
}

impl Tally {
    /// Descendants that run something.
    pub(crate) const fn total(&self) -> u32 {
        self.open + self.completed + self.failed + self.cancelled
    }
}

impl Flow {
    /// Counts what is below a group that an active run covers. Cost: O(subtree); when something below it is
    /// open and not of its run, also O(tasks behind the group).
    pub(crate) fn tally(&self, group: u32) -> Tally {
        let (run, bit) = (self.at(group).run, 1_u64 << self.depth(group));
        let mut behind = None;
        let mut tally = Tally::default();
        for i in self.subtree(group) {
            let task = self.at(i);
            let left_out = if task.run == run {
                task.excluded & bit != 0
            } else if task.status.is_terminal() {
                false
            } else {
                behind
                    .get_or_insert_with(|| self.behind(group))
                    .contains(&i)
            };
            if i == group || left_out {
                continue;
            }
            if task.is_group() {
                tally.groups += 1;
                tally.completed_groups += u32::from(task.status == Status::Completed);
                continue;
            }
            *match task.status {
                Status::Pending | Status::InProgress => &mut tally.open,
                Status::Completed => &mut tally.completed,
                Status::Failed => &mut tally.failed,
                Status::Cancelled => &mut tally.cancelled,
            } += 1;
        }
        tally
    }

    /// Tasks that depend on this one, directly or through others. Cost: O(result + edges).
    fn behind(&self, i: u32) -> HashSet<u32> {
        let (mut found, mut waiting) = (HashSet::new(), vec![i]);
        while let Some(at) = waiting.pop() {
            for edge in &self.at(at).dependents {
                if found.insert(edge.task) {
                    waiting.push(edge.task);
                }
            }
        }
        found
    }

    /// How far a task is. Of a group in progress that is the mean of its children's, rounded down, so that
    /// only completed children make a whole. Cost: O(children of the groups in progress from here down).
    pub(crate) fn progress_of(&self, i: u32) -> Progress {
        let is_open = |i: u32| self.at(i).is_group() && self.at(i).status == Status::InProgress;
        let reported = |i: u32| match self.at(i).status {
            Status::Completed => Progress::DONE,
            Status::Pending | Status::InProgress | Status::Failed | Status::Cancelled => {
                self.at(i).progress
            }
        };
        let mut open: Vec<u32> = Some(i).filter(|&i| is_open(i)).into_iter().collect();
        let mut next = 0;
        while let Some(&group) = open.get(next) {
            next += 1;
            open.extend(self.children(group).filter(|&c| is_open(c)));
        }
        // Inner groups stand behind those around them.
        let mut means: HashMap<u32, Progress> = HashMap::new();
        for &group in open.iter().rev() {
            let (mut count, mut sum) = (0, 0);
            for child in self.children(group) {
                let progress = means.get(&child).copied();
                count += 1;
                sum += u64::from(progress.unwrap_or_else(|| reported(child)).millionths());
            }
            let mean = u32::try_from(sum.checked_div(count).unwrap_or(0));
            means.insert(group, Progress::from_millionths(mean.unwrap_or(u32::MAX)));
        }
        means.get(&i).copied().unwrap_or_else(|| reported(i))
    }
}

//! Totals over the tasks below a group: how many have ended in which way, and their progress.
//!
//! Owns: the counts that a group or a run is judged by, and the progress that it shows. Reads the state alone.

use super::StatusCounts;
use super::state::Flow;
use crate::task::{Progress, Status};
use crate::{RunId, TaskId, Version};
use hashbrown::HashMap;

/// What a task shows of others: of its children, and of those that the same run covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// The version of the flow that has them.
    pub version: Version,
    /// How far the task is.
    pub progress: Progress,
    /// The active run that covers the task, and what has become of the tasks of that run; `None` when no run is active
    /// or when another one has taken over some of its tasks, which it counts as they were then.
    pub run: Option<(RunId, StatusCounts)>,
}

/// Descendants of a group that run something, by what has become of them, whether the group's run covers
/// them or not.
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
    /// What a live task shows of others. Cost: O(tasks of the run that covers it).
    #[must_use]
    pub fn figures(&self, id: TaskId) -> Option<Figures> {
        let i = self.live(id)?;
        let key = self.at(i).run;
        let run = self.runs.get(&key).filter(|run| {
            let mut members = run.members.iter().map(|&member| self.at(member));
            members.all(|task| task.deleted || task.run == key)
        });
        Some(Figures {
            version: self.version,
            progress: self.progress_of(i),
            run: run.map(|run| (run.id, self.counts_of(&run.members))),
        })
    }

    /// These tasks by status; groups and what was deleted are left out.
    pub(crate) fn counts_of(&self, tasks: &[u32]) -> StatusCounts {
        let mut counts = StatusCounts::default();
        let live = tasks.iter().map(|&i| self.at(i)).filter(|it| !it.deleted);
        for task in live.filter(|it| !it.is_group()) {
            *match task.status {
                Status::Pending => &mut counts.pending,
                Status::InProgress => &mut counts.in_progress,
                Status::Completed => &mut counts.completed,
                Status::Failed => &mut counts.failed,
                Status::Cancelled => &mut counts.cancelled,
            } += 1;
        }
        counts
    }

    /// Counts what is below a group that an active run covers. Cost: O(subtree).
    pub(crate) fn tally(&self, group: u32) -> Tally {
        let mut tally = Tally::default();
        for i in self.subtree(group) {
            let task = self.at(i);
            if i == group {
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

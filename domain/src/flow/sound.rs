//! Checks that a state read from bytes is one that events can produce, as far as the code relies on it: numbers that
//! refer to something, a tree, sorted members. A damaged snapshot is an error, not a panic later.

use super::state::{Flow, NONE, Run, Task};
use crate::limits;
use crate::task::Status;
use hashbrown::HashSet;

impl Flow {
    /// Looks at primary fields only, before anything derived is built. Cost: O(tasks + edges).
    pub(crate) fn is_sound(&self) -> bool {
        let n = self.tasks.len();
        let ids: HashSet<_> = self.tasks.iter().map(|t| t.id).collect();
        let run_ids: HashSet<_> = self.runs.values().map(|r| r.id).collect();
        n <= limits::TASKS_PER_FLOW_MAX
            && ids.len() == n
            && run_ids.len() == self.runs.len()
            && self.version >= n as u64
            && self.tasks.iter().all(|t| self.is_sound_task(t))
            && self.runs.keys().all(|key| *key < self.next_run)
            && self.runs.values().all(|r| is_sound_run(r, n))
            && self.is_tree()
            && self.covers_what_runs()
            && self.leases_what_runs()
            && self.asks_what_runs()
            && self.ended_leases.is_sound(n, self.version)
            && self.bounds.keys().all(|i| (*i as usize) < n)
            && self.timers.keys().all(|i| (*i as usize) < n)
            && self.first_starts.keys().all(|i| (*i as usize) < n)
            && self.wires.keys().all(|i| (*i as usize) < n)
            && self.told_claims.keys().all(|i| (*i as usize) < n)
            && self.outputs.keys().all(|i| (*i as usize) < n)
    }

    fn is_sound_task(&self, task: &Task) -> bool {
        let n = self.tasks.len();
        let within = |at: u64| at <= self.version;
        let counts = [task.attempt, task.attempts_in_run];
        (task.parent == NONE || (task.parent as usize) < n)
            && self.methods.has(task.method)
            && self.users.has(task.user)
            && task.retry.as_ref().is_none_or(|r| r.is_sound())
            && (task.run == NONE || self.runs.contains_key(&task.run))
            && [task.spec_at, task.name_at, task.outcome_at, task.labels_at]
                .into_iter()
                .all(within)
            && counts.into_iter().all(|c| u64::from(c) <= self.version)
            && task.dependencies.len() <= limits::DEPENDENCIES_PER_TASK_MAX
            && task
                .dependencies
                .iter()
                .all(|e| (e.task as usize) < n && !self.at(e.task).deleted)
            && (!task.deleted || task.dependencies.is_empty())
    }

    /// Every live task hangs below the first one, at most as deep as a tree may be.
    fn is_tree(&self) -> bool {
        // 0 unknown, else depth + 1.
        let mut depths = vec![0_usize; self.tasks.len()];
        let mut path = Vec::new();
        for i in 0..self.tasks.len() {
            let mut at = i;
            while depths[at] == 0 {
                path.push(at);
                let parent = self.tasks[at].parent;
                if parent == NONE {
                    if at != 0 {
                        return false;
                    }
                    break;
                }
                if path.len() > self.tasks.len() {
                    return false;
                }
                at = parent as usize;
            }
            let mut depth = depths[at];
            while let Some(node) = path.pop() {
                depth += 1;
                depths[node] = depth;
            }
            let orphaned = self
                .tasks
                .get(self.tasks[i].parent as usize)
                .is_some_and(|p| p.deleted);
            if !self.tasks[i].deleted && (depths[i] > limits::TREE_DEPTH_MAX || orphaned) {
                return false;
            }
        }
        true
    }

    /// Leases belong to attempts that are under way in a run.
    fn leases_what_runs(&self) -> bool {
        self.leases.keys().all(|&i| {
            let task = self.tasks.get(i as usize);
            task.is_some_and(|t| {
                t.status == Status::InProgress
                    && !t.is_group()
                    && !t.deleted
                    && self.runs.contains_key(&t.run)
            })
        })
    }

    /// A task names the run that holds it, and that run lists the task.
    fn covers_what_runs(&self) -> bool {
        self.tasks.iter().enumerate().all(|(i, task)| {
            let listed = |r: &Run| r.members.binary_search(&(i as u32)).is_ok();
            self.runs.get(&task.run).is_none_or(listed)
        })
    }
}

fn is_sound_run(run: &Run, n: usize) -> bool {
    (run.root as usize) < n
        && run.heard.len() <= limits::MESSAGES_PER_RUN_MAX
        && run.members.is_sorted_by(|a, b| a < b)
        && run.members.last().is_none_or(|m| (*m as usize) < n)
}

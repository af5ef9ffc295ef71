//! What must hold at each step, whatever happened.

use super::*;

impl Model {
    pub(super) fn check_verdict(&self, run: &Run, state: RunState, held: &[TaskId]) {
        let root = self.tasks.get(&run.root).map(|t| t.status);
        if state == RunState::Cancelled && root != Some(Cancelled) {
            // The run itself was cancelled, behind the end of its root.
            let members = run.members.iter().filter_map(|m| self.tasks.get(m));
            let mut statuses = members.map(|t| t.status);
            return assert!(statuses.any(|s| s == Cancelled));
        }
        match root {
            Some(Cancelled) => assert_eq!(state, RunState::Cancelled),
            Some(Failed) => assert_eq!(state, RunState::Failed),
            Some(Pending) if !self.is_tolerated(run.root) => assert_eq!(state, RunState::Failed),
            Some(Pending | InProgress | Completed) | None => {}
        }
        let all_done = run
            .members
            .iter()
            .filter_map(|m| self.tasks.get(m))
            .all(|t| t.status == Completed);
        if all_done {
            assert_eq!(state, RunState::Completed);
        }
        assert!(state != RunState::Running && held.len() <= run.members.len());
    }

    /// What must hold between two commands: nothing that could have happened was left undone.
    pub(crate) fn check_rest(
        &self,
        now: Timestamp,
        free_slots: usize,
        known: &dyn Fn(&str) -> bool,
    ) {
        self.check_graph();
        for (id, task) in &self.tasks {
            if task.run.is_some() && !task.status.is_terminal() {
                assert!(
                    self.deadline(*id).is_none_or(|d| d > now),
                    "a deadline was missed"
                );
            }
            match task.method.as_deref() {
                None => {
                    let due = self.is_ready(*id) && self.starts_at(*id) <= now;
                    assert!(!due, "a group that could begin did not");
                    if task.status == InProgress {
                        assert!(self.awaited(*id) > 0, "a group that could end did not");
                    }
                }
                Some(method) => {
                    let due = self.is_ready(*id) && self.starts_at(*id) <= now;
                    let stuck = due && known(method) && method != REMOTE && free_slots > 0;
                    assert!(
                        !stuck,
                        "a ready task did not start although a slot was free"
                    );
                }
            }
            self.check_told(*id, now);
            let times_out_at = task.lease.as_ref().and_then(|(_, at)| *at);
            assert!(
                times_out_at.is_none_or(|at| at > now),
                "a time-out was missed"
            );
            if task.status == InProgress {
                assert!(
                    task.run.is_some(),
                    "a task in progress belongs to an active run"
                );
            }
        }
        for run in self.runs.keys() {
            assert!(
                !self.is_still(*run),
                "a run in which nothing moves did not end"
            );
        }
    }

    /// No cycle of dependencies and of groups that wait for what is below them (tasks that wait for no task that is
    /// left are taken away until none is left).
    pub(super) fn check_graph(&self) {
        let mut left: BTreeSet<TaskId> = self.tasks.keys().copied().collect();
        for (id, task) in &self.tasks {
            for (target, _) in &task.dependencies {
                assert!(left.contains(target), "{id} depends on a task that is gone");
            }
            let _ = self.ancestors(*id);
        }
        loop {
            let free: Vec<_> = left
                .iter()
                .copied()
                .filter(|t| {
                    let below = Some(*t).filter(|t| self.is_group(*t));
                    let below = below.map(|t| self.descendants(t)).unwrap_or_default();
                    let dependencies = self.tasks[t].dependencies.iter().map(|(d, _)| *d);
                    !below
                        .into_iter()
                        .chain(dependencies)
                        .any(|d| left.contains(&d))
                })
                .collect();
            if free.is_empty() {
                break;
            }
            free.iter().for_each(|t| {
                left.remove(t);
            });
        }
        assert!(
            left.is_empty(),
            "tasks that wait for each other were accepted"
        );
    }
}

//! The effect of the events that begin and end runs.

use super::*;

impl Flow {
    pub(super) fn run_started(&mut self, e: &RunStarted, time: Timestamp) {
        let key = self.next_run;
        self.next_run += 1;
        let members: Vec<u32> = e.covers.iter().flat_map(|&(from, to)| from..=to).collect();
        self.runs.insert(
            key,
            Run {
                id: e.run_id,
                root: self.ordinal(e.task_id),
                allow_unknown_executors: e.allow_unknown_executors,
                executor_wait_ms: e.executor_wait_ms,
                wait_bounds: e.wait_bounds,
                members: members.clone(),
                heard: Vec::new(),
                origin_at: e.origin.as_ref().map(|_| self.version),
                running: 0,
                ready: 0,
                open_groups: Default::default(),
                stale: false,
            },
        );
        self.run_keys.insert(e.run_id, key);
        self.still_runs.insert(key);
        self.make_stale(key);
        for i in members {
            // A completed task that another active run holds stays with that run.
            if self.at(i).run != NONE {
                continue;
            }
            let task = self.at_mut(i);
            // A delay belongs to the run that asked for it.
            task.next_attempt_at = Timestamp::default();
            task.run = key;
            task.attempts_in_run = 0;
            task.interruptions = 0;
            self.restart_timer(i);
            self.refresh_ready_since(i, time);
            self.forget_claims(i);
            self.forget_dialogue(i);
            self.first_starts.remove(&i);
            self.link(i);
        }
    }

    pub(super) fn run_ended(&mut self, id: crate::RunId) {
        let Some(key) = self.run_keys.remove(&id) else {
            return;
        };
        let run = self
            .runs
            .get_mut(&key)
            .expect("the index names active runs");
        let members = std::mem::take(&mut run.members);
        self.heard -= run.heard.len();
        for i in members {
            if self.at(i).run == key {
                self.unlink(i);
                let task = self.at_mut(i);
                task.run = NONE;
                task.awaited = 0;
                self.settled_groups.remove(&i);
            }
        }
        self.runs.remove(&key);
        self.still_runs.remove(&key);
        self.stale_runs.remove(&key);
    }
}

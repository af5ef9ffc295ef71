//! What the model and the flow must agree on.

use super::*;

impl World {
    pub(super) fn check_equal(&self) {
        assert_eq!(self.flow, self.replica, "replay gives another state");
        let bytes = snapshot::encode(&self.flow);
        let read = snapshot::decode(&bytes).expect("a snapshot can be read again");
        assert_eq!(self.flow, read, "rebuilt indexes differ");
        assert_eq!(self.flow.version(), self.model.version);
        let mut launched: Vec<_> = schedule::resume(&self.flow)
            .into_iter()
            .map(|effect| match effect {
                schedule::Effect::Launch(l) => (l.task, l.attempt),
                schedule::Effect::Hold(_)
                | schedule::Effect::Stop { .. }
                | schedule::Effect::GiveUp { .. } => {
                    panic!("attempts of this process are launched")
                }
            })
            .collect();
        launched.extend(schedule::leased(&self.flow).map(|held| {
            assert_eq!(Some(held.lease), self.lease(held.task));
            (held.task, held.attempt)
        }));
        launched.sort_unstable();
        assert_eq!(launched, self.running(), "what should be running");
        for (task, model) in &self.model.tasks {
            let seen = self.flow.task(*task).expect("a live task");
            assert_eq!((seen.status, seen.attempt), (model.status, model.attempt));
            assert_eq!((seen.run_id, seen.spec_at), (model.run, model.spec_at));
            assert_eq!(seen.labels_at, model.labels_at);
        }
        let due = schedule::next_due(&self.flow, self.now, &self.server);
        assert!(due.is_none_or(|d| d > self.now), "what is due was not done");
    }

    pub(crate) fn check_full_replay(&self) {
        let mut flow = Flow::default();
        for (time, event) in &self.history {
            flow.apply(event, *time);
        }
        flow.settle_indexes();
        assert_eq!(flow, self.flow);
    }

    /// Every attempt ends, in any way; then every run has ended.
    pub(crate) fn drive_to_the_end(&mut self, outcomes: &[bool]) {
        self.slots = self.slots.max(1);
        // What appeared since the last command, a slot or an executor, wakes the flow.
        self.give(&Command::Wake);
        let mut turn = 0;
        while self.flow.has_active_run() {
            turn += 1;
            assert!(turn < 2000, "a run does not end");
            let running = self.running();
            let Some((task, attempt)) = running.first().copied() else {
                if self.server.slots > 0
                    && let Some(task) = self.claimable().first().copied()
                {
                    let claim = self.claim(Claimable::Task(task), 1);
                    self.give(&claim);
                    continue;
                }
                if let Some((task, suspension)) = self.asking().first().copied() {
                    self.give(&Self::answer(task, suspension, turn as u8));
                    continue;
                }
                // Something is awaited: time must bring it about.
                let due = schedule::next_due(&self.flow, self.now, &self.server);
                let free = self.server.slots > 0;
                self.now = match due {
                    Some(due) => due,
                    None if free => panic!("a run waits for nothing"),
                    None => self.now,
                };
                self.give(&Command::Wake);
                continue;
            };
            let command = if outcomes[turn % outcomes.len()] {
                Command::Complete {
                    task,
                    attempt,
                    result: Payload::empty(),
                    lease: self.lease(task),
                }
            } else {
                let (error, reason) = ("boom".to_owned(), FailureReason::Executor);
                Command::Fail {
                    task,
                    attempt,
                    error,
                    reason,
                    progress: Progress::ZERO,
                    lease: self.lease(task),
                    retry_after_ms: 0,
                }
            };
            self.give(&command);
            self.give(&Command::Wake);
        }
        assert!(self.running().is_empty());
        self.check_full_replay();
    }
}

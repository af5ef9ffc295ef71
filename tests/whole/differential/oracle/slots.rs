//! Section "Dependencies and failure": what may start, and in which order. [`Oracle::settle`] lets
//! happen everything that follows from the present state by itself.

use super::{
    Attempt, Cancelled, Completed, Failed, InProgress, Oracle, Pending, RunState, Symbol, Value,
    When,
};
use crate::differential::gate;

impl Oracle {
    /// Whether the dependencies of the task let it start.
    pub(super) fn is_satisfied(&self, symbol: &str) -> bool {
        self.task(symbol)
            .dependencies
            .iter()
            .all(|(dependency, when)| self.is_met(dependency, *when))
    }

    /// Whether a dependency is satisfied.
    pub(super) fn is_met(&self, dependency: &str, when: When) -> bool {
        let status = self.task(dependency).status;
        match when {
            When::Completed => status == Completed,
            When::Ended => status.is_terminal(),
            When::Always => status.is_terminal() || self.is_blocked(dependency),
        }
    }

    /// Pending, and a dependency can never be satisfied: a required one that has failed or was cancelled,
    /// or any that is blocked itself and for which that is not enough.
    fn is_blocked(&self, symbol: &str) -> bool {
        let task = self.task(symbol);
        let never = |(dependency, when): &(Symbol, When)| {
            let status = self.task(dependency).status;
            let missed = *when == When::Completed && matches!(status, Failed | Cancelled);
            missed || (*when != When::Always && self.is_blocked(dependency))
        };
        task.status == Pending && task.dependencies.iter().any(never)
    }

    /// Everything that happens by itself at this time.
    pub(super) fn settle(&mut self) {
        loop {
            let before = self.clone();
            self.end_leases();
            for run in self.awake_runs() {
                self.pass_deadlines(run);
                self.end_waits(run);
                self.tell_timers(run);
                self.open_groups(run);
                self.note_ready(run);
                self.give_up_executors(run);
                self.close_groups(run);
            }
            if *self == before {
                // Executors whose attempts were ended by others let go of their slots last.
                let running = |a: &Attempt| before.task(&a.task).status == InProgress;
                self.slots.retain(running);
            }
            self.take_back();
            if *self == before {
                // Only now is known everything that is ready at this time.
                self.start_ready();
            }
            if *self == before {
                for run in self.awake_runs() {
                    if !self.is_lively(run) && !self.decide_open_group(run) {
                        self.end_run(run);
                    }
                }
            }
            if *self == before {
                return;
            }
        }
    }

    /// When something happens next by itself, and in which flow.
    pub(crate) fn next_time(&self) -> Option<(i64, Symbol)> {
        let mut found: Vec<_> = self.lease_ends().collect();
        for run in self.awake_runs() {
            found.extend(self.wait_ends(run));
            for symbol in &self.runs[run].covered {
                let task = self.task(symbol);
                if task.status != Pending || !self.is_satisfied(symbol) {
                    continue;
                }
                if let Some(at) = self.starts_later(symbol) {
                    found.push((at, task.flow.clone()));
                }
                if let (Some(since), true) = (task.ready, task.is_unknown()) {
                    let wait = self.runs[run].executor_wait_ms * 1000;
                    found.push((since + wait, task.flow.clone()));
                }
            }
        }
        found.into_iter().filter(|(at, _)| *at > self.now).min()
    }

    /// The clock goes on; what is due happens.
    pub(crate) fn pass_time(&mut self, now: i64) {
        self.now = now;
        self.settle();
    }

    fn awake_runs(&self) -> Vec<usize> {
        let awake = |r: &usize| {
            let run = &self.runs[*r];
            let flow = run.covered.iter().next().map(|s| &self.task(s).flow);
            run.state == RunState::Running && flow.is_none_or(|f| !self.asleep.contains(f))
        };
        (0..self.runs.len()).filter(awake).collect()
    }

    /// Covered tasks of a run in order of creation.
    pub(super) fn covered(&self, run: usize) -> Vec<Symbol> {
        let covered = &self.runs[run].covered;
        self.order
            .iter()
            .filter(|s| covered.contains(*s))
            .cloned()
            .collect()
    }

    fn pass_deadlines(&mut self, run: usize) {
        let now = self.now;
        for symbol in self.covered(run) {
            let end = match self.task(&symbol).status {
                Pending => Cancelled,
                InProgress => Failed,
                Completed | Failed | Cancelled => continue,
            };
            if self.deadline(&symbol).is_some_and(|d| d <= now) {
                self.give_up(&symbol, end, super::ANY_TEXT);
            }
        }
    }

    /// Notes since when tasks could run.
    fn note_ready(&mut self, run: usize) {
        for symbol in self.covered(run) {
            let satisfied = self.is_satisfied(&symbol);
            let due = self.starts_later(&symbol).is_none();
            let since = self.queues_since(&symbol);
            let task = self.tasks.get_mut(&symbol).expect("covered tasks live");
            let waits = task.status == Pending && !task.is_group();
            if !(waits && satisfied && due) {
                task.ready = None;
            } else if task.ready.is_none() {
                task.ready = Some(since);
            }
        }
    }

    /// A task whose executor has not come in time starts and fails; it has waited, so retries do
    /// not count.
    fn give_up_executors(&mut self, run: usize) {
        let wait = self.runs[run].executor_wait_ms * 1000;
        for symbol in self.covered(run) {
            let task = self.task(&symbol);
            if task.is_unknown() && task.ready.is_some_and(|since| since + wait <= self.now) {
                let text = match task.method() {
                    // Ids are symbols here, and texts are not searched for them.
                    method if method.starts_with('@') => super::ANY_TEXT.to_owned(),
                    method => format!("executor `{method}` not found"),
                };
                self.begin(&symbol);
                self.fail_for_good(&symbol, &text);
            }
        }
    }

    /// Starts ready tasks while there are slots: by priority, then by the time since when they are
    /// ready, then as they were created.
    pub(super) fn start_ready(&mut self) {
        loop {
            let place = |s: &Symbol| self.order.iter().position(|o| o == s);
            let free = |s: &&Symbol| {
                let task = self.task(s);
                let executor = gate::executor(task.method());
                let taken = |name| self.slots.iter().filter(|a| a.executor == name).count();
                !self.asleep.contains(&task.flow)
                    && task.ready.is_some()
                    && executor.is_some_and(|k| taken(k.name) < k.limit)
            };
            let best = self.order.iter().filter(free).min_by_key(|s| {
                let task = self.task(s);
                (task.priority, task.ready, place(s))
            });
            let Some(best) = best.cloned() else {
                return;
            };
            self.begin(&best);
            let Some(inputs) = self.inputs_of(&best) else {
                self.fail_for_good(&best, super::ANY_TEXT);
                continue;
            };
            let task = self.task(&best);
            let executor = gate::executor(task.method()).expect("only known executors have slots");
            let attempt = Attempt {
                number: task.attempt,
                executor: executor.name,
                job: self.job(&best, inputs),
                task: best,
            };
            self.slots.push(attempt);
        }
    }

    pub(super) fn begin(&mut self, symbol: &str) {
        let now = self.now;
        self.change(symbol, |t| {
            t.status = InProgress;
            t.started = Some(now);
            t.attempt += 1;
            t.timing.charged += 1;
            t.next_attempt = None;
            t.ready = None;
        });
    }

    /// What the executor of a running attempt was given.
    fn job(&self, symbol: &str, inputs: Value) -> Value {
        let task = self.task(symbol);
        let object = |v: &Value| {
            if v.is_null() {
                serde_json::json!({})
            } else {
                v.clone()
            }
        };
        let dependency = |(s, _): &(Symbol, When)| {
            let d = self.task(s);
            serde_json::json!({"id": format!("@{s}"), "status": d.status.name(), "result": d.result})
        };
        // One that is blocked is none of them.
        let ended = task.dependencies.iter();
        let ended = ended.filter(|(s, _)| self.task(s).status.is_terminal());
        serde_json::json!({
            "name": task.name, "inputs": inputs, "params": object(&task.params),
            "schemas": self.schemas_of_job(symbol),
            "dependencies": ended.map(dependency).collect::<Vec<_>>(),
        })
    }
}

//! Sections "Runs", "State machine" and "Retry": what a run covers, how it begins and ends, and what
//! the end of an attempt does.

use super::methods::New;
use super::{
    ANY_TEXT, Answer, Cancelled, Completed, Failed, InProgress, Oracle, Pending, Refusal, Run,
    RunState, Status, Symbol, When, contract, refuse,
};
use crate::differential::gate;
use crate::differential::script::Outcome;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use taskledger_domain::{Timestamp, limits};

/// Interruptions by restarts that a run forgives a task.
pub(super) const INTERRUPTIONS_MAX: u64 = 3;
/// Milliseconds that a task waits for an unknown executor unless the call says otherwise.
const EXECUTOR_WAIT_MS: f64 = 300_000.0;

/// See `Oracle::run_set`.
pub(super) struct RunSet {
    covered: BTreeSet<Symbol>,
    again: BTreeSet<Symbol>,
}

#[derive(Clone, PartialEq)]
struct Growing {
    /// Covered, to run unless they have ended for good.
    covered: BTreeSet<Symbol>,
    /// Covered because they completed.
    kept: BTreeSet<Symbol>,
    /// Completed tasks that run again.
    again: BTreeSet<Symbol>,
    all_failed: bool,
}

fn includes_failed(map: &Map<String, Value>) -> bool {
    map.get("include").and_then(Value::as_str) == Some("failed")
}

impl Oracle {
    /// What a run of these tasks covers.
    pub(super) fn coverage(&self, asked: Vec<Symbol>) -> BTreeSet<Symbol> {
        let mut covered: BTreeSet<Symbol> = asked.into_iter().collect();
        loop {
            let mut more = covered.clone();
            for symbol in &covered {
                more.extend(
                    self.task(symbol)
                        .dependencies
                        .iter()
                        .map(|(s, _)| s.clone()),
                );
                if self.task(symbol).is_group() {
                    more.extend(self.subtree(symbol));
                }
            }
            if more.len() == covered.len() {
                return covered;
            }
            covered = more;
        }
    }

    /// What a run of the task covers, and which tasks that have ended it runs again.
    ///
    /// First the task with everything below it but tolerated failures, and what of these will run needs. Then,
    /// repeatedly: steps that clean up after what runs; for a retry the pending tasks behind what runs, with what
    /// they need; and groups around.
    fn run_set(&self, root: &str, is_retry: bool, all_failed: bool) -> RunSet {
        let mut set = Growing {
            covered: BTreeSet::new(),
            kept: BTreeSet::new(),
            again: BTreeSet::new(),
            all_failed,
        };
        set.covered.insert(root.to_owned());
        self.cover_below(root, false, &mut set);
        self.grow(&mut set, |oracle, set| oracle.pull_asked(set));
        self.grow(&mut set, |oracle, set| {
            oracle.pull_behind(set);
            oracle.follow(root, is_retry, set);
        });
        let ended = |s: &&Symbol| match self.task(s).status {
            Failed => set.covered.contains(*s),
            Completed => set.again.contains(*s),
            Pending | InProgress | Cancelled => false,
        };
        let covered: BTreeSet<Symbol> = set.covered.union(&set.kept).cloned().collect();
        let again = covered.iter().filter(ended).cloned().collect();
        RunSet { covered, again }
    }

    fn grow(&self, set: &mut Growing, step: impl Fn(&Self, &mut Growing)) {
        loop {
            let before = set.clone();
            step(self, set);
            if *set == before {
                return;
            }
        }
    }

    /// Covers what is below a task. Of a tolerated group only what is pending, and what completed is kept.
    fn cover_below(&self, above: &str, is_tolerated: bool, set: &mut Growing) {
        for child in self.children(above) {
            let task = self.task(&child);
            let stays = task.status == Failed && !set.all_failed && self.is_tolerated(&child);
            let mut inside = is_tolerated;
            if stays {
                inside |= task.is_group();
            } else if !is_tolerated || matches!(task.status, Pending | InProgress) {
                set.covered.insert(child.clone());
                inside = false;
            } else if task.status == Completed {
                set.kept.insert(child.clone());
            }
            self.cover_below(&child, inside, set);
        }
    }

    fn cover(&self, symbol: &str, set: &mut Growing) {
        set.covered.insert(symbol.to_owned());
        if self.task(symbol).is_group() {
            self.cover_below(symbol, false, set);
        }
    }

    fn will_run(&self, symbol: &str, set: &Growing) -> bool {
        match self.task(symbol).status {
            Pending | InProgress | Failed => set.covered.contains(symbol),
            Completed => set.again.contains(symbol),
            Cancelled => false,
        }
    }

    fn pull_asked(&self, set: &mut Growing) {
        let found: BTreeSet<Symbol> = set.covered.union(&set.kept).cloned().collect();
        for symbol in found {
            for (near, when) in self.task(&symbol).dependencies.clone() {
                if set.all_failed {
                    self.cover(&near, set);
                } else if self.task(&near).status == Completed {
                    set.kept.insert(near);
                } else if self.will_run(&symbol, set) && !self.is_met(&near, when) {
                    self.cover(&near, set);
                }
            }
        }
        let groups: Vec<Symbol> = set
            .kept
            .iter()
            .filter(|s| self.task(s).is_group())
            .cloned()
            .collect();
        for group in groups {
            let below = self.children(&group).into_iter();
            set.kept
                .extend(below.filter(|s| self.task(s).status == Completed));
        }
    }

    fn pull_behind(&self, set: &mut Growing) {
        for symbol in set.covered.clone() {
            if !self.will_run(&symbol, set) {
                continue;
            }
            for (near, when) in self.task(&symbol).dependencies.clone() {
                let status = self.task(&near).status;
                let needed = status == Pending && !self.is_met(&near, when);
                if needed || (set.all_failed && status == Failed) {
                    self.cover(&near, set);
                }
            }
        }
    }

    fn follow(&self, root: &str, is_retry: bool, set: &mut Growing) {
        for symbol in set.covered.clone() {
            if !self.will_run(&symbol, set) {
                continue;
            }
            for (near, when) in self.dependents(&symbol) {
                let status = self.task(&near).status;
                if when == When::Always && matches!(status, Completed | Failed) {
                    let whole = self.task(&near).is_group();
                    let below = if whole {
                        self.subtree(&near)
                    } else {
                        vec![near]
                    };
                    set.again.extend(below.iter().cloned());
                    set.covered.extend(below);
                } else if is_retry && (status == Pending || (status == Failed && set.all_failed)) {
                    self.cover(&near, set);
                }
            }
            for group in self.ancestors(&symbol) {
                let is_around = is_retry || self.subtree(root).contains(&group);
                let task = self.task(&group);
                if !task.is_group() || !is_around {
                    continue;
                }
                let reopens = task.status == Completed && set.again.contains(&symbol);
                if reopens {
                    set.again.insert(group.clone());
                }
                if reopens || task.status == Failed {
                    set.covered.insert(group);
                }
            }
        }
    }

    /// The run that is on and covers the task.
    pub(super) fn running_run_of(&self, symbol: &str) -> Option<usize> {
        let on = |r: &Run| r.state == RunState::Running && r.covered.contains(symbol);
        self.runs.iter().position(on)
    }

    pub(super) fn execute(&mut self, mark: &str, map: &Map<String, Value>) -> Answer {
        if let Some(id) = map.get("task_id").filter(|v| !v.is_null()) {
            let id = self.stored(id)?;
            let set = self.run_set(&id, false, includes_failed(map));
            return self.start_run(mark, map, &id, set);
        }
        let tasks = json!({"tasks": map["tasks"]});
        let tasks = tasks.as_object().cloned().unwrap_or_default();
        self.refuse_faults("tasks.execute", map)?;
        let (list, aliases) = self.read_new(mark, &tasks)?;
        let inside = |t: &New| list.iter().any(|o| t.parent.as_ref() == Some(&o.symbol));
        if list.iter().any(|t| t.parent.is_some() && !inside(t)) {
            return refuse(-32010);
        }
        let root = list[0].symbol.clone();
        self.place(list)?;
        let set = self.run_set(&root, false, false);
        let mut answer = self.start_run(mark, map, &root, set)?;
        if let Some(answer) = answer.as_object_mut() {
            answer.remove("task_id");
            answer.remove("will_run");
            answer.insert("task_ids".into(), Value::Object(aliases));
        }
        Ok(answer)
    }

    pub(super) fn retry(&mut self, mark: &str, map: &Map<String, Value>) -> Answer {
        let id = self.stored(&map["task_id"])?;
        if self.task(&id).status != Failed {
            return refuse(-32006);
        }
        let set = self.run_set(&id, true, includes_failed(map));
        self.start_run(mark, map, &id, set)
    }

    fn start_run(
        &mut self,
        mark: &str,
        map: &Map<String, Value>,
        root: &str,
        set: RunSet,
    ) -> Answer {
        let RunSet { covered, again } = set;
        let open = |s: &&Symbol| self.task(s).status == Pending || again.contains(*s);
        if covered
            .iter()
            .filter(open)
            .any(|s| self.deadline(s).is_some_and(|d| d <= self.now))
        {
            return Err(Refusal {
                code: -32602,
                paths: None,
            });
        }
        let known = |s: &&Symbol| !self.task(s).is_unknown();
        let allowed = map.get("allow_unknown_executors") == Some(&Value::Bool(true));
        if !allowed && !covered.iter().filter(open).all(|s| known(&s)) {
            return refuse(-32003);
        }
        let taken = |s: &&Symbol| {
            self.running_run_of(s).is_some() && (self.task(s).status != Completed || open(s))
        };
        if covered.iter().any(|s| taken(&s)) {
            return refuse(-32008);
        }
        if covered.iter().filter(open).count() == 0 {
            return refuse(-32006);
        }
        let runs = covered.iter().filter(open);
        let runs: Vec<&Symbol> = runs.filter(|s| !self.task(s).is_group()).collect();
        let in_order = self.order.iter().filter(|s| runs.contains(s));
        let listed: Vec<String> = in_order
            .take(limits::WILL_RUN_LISTED_MAX)
            .map(|s| format!("@{s}"))
            .collect();
        let will_run = json!({"tasks": listed, "count": runs.len()});
        for symbol in &covered {
            if again.contains(symbol) {
                self.change(symbol, |t| {
                    t.status = Pending;
                    (t.error, t.result) = (None, Value::Null);
                    (t.started, t.completed) = (None, None);
                    t.progress = 0.0;
                });
            }
        }
        // What was said belongs to the run in which it was said.
        for symbol in &covered {
            if self.running_run_of(symbol).is_none() {
                let task = self.tasks.get_mut(symbol).expect("covered tasks live");
                task.turns.clear();
                self.restart_timers(symbol);
            }
        }
        let wait = map.get("executor_wait_seconds").and_then(Value::as_f64);
        let symbol = format!("run{mark}");
        self.runs.push(Run {
            symbol: symbol.clone(),
            root: root.to_owned(),
            covered,
            state: RunState::Running,
            counts: None,
            failures: BTreeMap::new(),
            interruptions: BTreeMap::new(),
            executor_wait_ms: wait.map_or(EXECUTOR_WAIT_MS, |s| s * 1000.0) as i64,
        });
        let flow = &self.task(root).flow;
        Ok(
            json!({"root_task_id": format!("@{flow}"), "task_id": format!("@{root}"),
            "status": "started", "run_id": format!("@{symbol}"),
            "will_run": will_run}),
        )
    }

    /// The earliest deadline of the task and of those above it.
    pub(super) fn deadline(&self, symbol: &str) -> Option<i64> {
        let mut chain = self.ancestors(symbol);
        chain.push(symbol.to_owned());
        let own = |s: &Symbol| self.task(s).params["deadline"].as_str().map(str::to_owned);
        let read = |text: String| Timestamp::parse(&text).ok().map(|t| t.0);
        chain.iter().filter_map(own).filter_map(read).min()
    }

    /// An attempt has ended by itself.
    pub(super) fn end(&mut self, task: &str, outcome: &Outcome) {
        match outcome {
            Outcome::Return(value) if value.is_object() => {
                match contract::check(&self.task(task).schemas, value) {
                    Ok(()) => self.complete(task, value),
                    Err(_) => self.fail(task, ANY_TEXT),
                }
            }
            Outcome::Return(_) => self.fail(task, ANY_TEXT),
            Outcome::Fail(text) => self.fail(task, text),
            Outcome::Report(_) => {}
        }
    }

    /// An attempt has failed: another one follows if the budget of the run allows.
    pub(super) fn fail(&mut self, task: &str, error: &str) {
        let run = self.running_run_of(task).expect("only runs start attempts");
        let failures = self.runs[run].failures.entry(task.to_owned()).or_default();
        *failures += 1;
        match retry_delay_ms(&self.tasks[task].params, *failures) {
            Some(delay) => {
                self.requeue(task, Some(self.now + delay * 1000));
                let failed = self.tasks.get_mut(task).expect("it runs");
                failed.timing.charged += 1;
            }
            None => self.fail_for_good(task, error),
        }
    }

    /// Without another attempt in this run.
    pub(super) fn fail_for_good(&mut self, task: &str, error: &str) {
        self.give_up(task, Failed, error);
    }

    /// Ends a task without a result; its progress is kept.
    pub(super) fn give_up(&mut self, task: &str, status: Status, error: &str) {
        let now = self.now;
        let progress = self.shown_progress(task);
        self.change(task, |t| {
            t.status = status;
            t.error = Some(error.to_owned());
            t.question = None;
            t.progress = progress;
            t.completed = Some(now);
            t.next_attempt = None;
            t.ready = None;
        });
    }

    /// For an attempt that does not count.
    pub(super) fn requeue(&mut self, task: &str, next_attempt: Option<i64>) {
        self.change(task, |t| {
            t.timing.charged = t.timing.charged.saturating_sub(1);
            t.status = Pending;
            t.started = None;
            t.progress = 0.0;
            t.next_attempt = next_attempt;
            t.ready = None;
        });
    }

    /// The worlds in which a server may find itself after it has been stopped and started: flows
    /// are looked at in any order.
    pub(crate) fn restart(&self) -> Vec<Self> {
        let mut stopped = self.clone();
        let running = std::mem::take(&mut stopped.slots);
        stopped.forget_stops();
        let flows = self.running_flows();
        stopped.asleep = flows.clone();
        let mut worlds = Vec::new();
        for order in permutations(flows.into_iter().collect()) {
            let mut world = stopped.clone();
            for flow in order {
                world.asleep.remove(&flow);
                for attempt in &running {
                    if world.task(&attempt.task).flow == flow {
                        world.interrupt(&attempt.task, attempt.executor);
                    }
                }
                world.settle();
            }
            if !worlds.contains(&world) {
                worlds.push(world);
            }
        }
        worlds
    }

    /// Flows with a run that is on.
    pub(crate) fn running_flows(&self) -> BTreeSet<Symbol> {
        let on = self.runs.iter().filter(|r| r.state == RunState::Running);
        let first = on.filter_map(|r| r.covered.iter().next());
        first.map(|s| self.task(s).flow.clone()).collect()
    }

    /// Section "Execution guarantees".
    fn interrupt(&mut self, task: &str, executor: &str) {
        let run = self.running_run_of(task).expect("only runs start attempts");
        let idempotent = gate::executor(executor).is_some_and(|k| k.idempotent);
        let interruptions = self.runs[run]
            .interruptions
            .entry(task.to_owned())
            .or_default();
        *interruptions += 1;
        let text = "interrupted by a restart of the server";
        if *interruptions > INTERRUPTIONS_MAX {
            self.fail_for_good(task, text);
        } else if idempotent {
            self.requeue(task, None);
        } else {
            self.fail(task, text);
        }
    }

    /// Ends a run in which nothing is left to do.
    pub(super) fn end_run(&mut self, run: usize) {
        self.runs[run].state = self.verdict(run);
        self.runs[run].counts = Some(self.counts(run));
    }

    /// Covered tasks that run something by status.
    pub(super) fn counts(&self, run: usize) -> Value {
        let mut counts =
            json!({"pending": 0, "in_progress": 0, "completed": 0, "failed": 0, "cancelled": 0});
        let runs = |s: &&Symbol| !self.task(s).is_group();
        for symbol in self.runs[run].covered.iter().filter(runs) {
            let count = &mut counts[self.task(symbol).status.name()];
            *count = json!(count.as_u64().unwrap_or(0) + 1);
        }
        counts
    }

    /// ARCHITECTURE.md, "The verdict on a run is that of a group".
    fn verdict(&self, run: usize) -> RunState {
        let run = &self.runs[run];
        // A root that was deleted says nothing of its run any more; the other tasks do.
        let root = self.tasks.get(&run.root).map(|root| root.status);
        let below_group = |s: &Symbol| {
            let covered_group = |a: &Symbol| run.covered.contains(a) && self.task(a).is_group();
            self.ancestors(s).iter().any(covered_group)
        };
        let counts = |s: &&Symbol| **s == run.root || !below_group(s);
        let harmed = |s: &Symbol| self.task(s).status != Completed && !self.is_tolerated(s);
        match root {
            Some(Cancelled) => RunState::Cancelled,
            Some(Failed) => RunState::Failed,
            Some(Pending | InProgress | Completed) | None
                if run.covered.iter().filter(counts).any(harmed) =>
            {
                RunState::Failed
            }
            Some(Pending | InProgress | Completed) | None => RunState::Completed,
        }
    }

    /// A child that has dependents, all of them optional.
    pub(super) fn is_tolerated(&self, symbol: &str) -> bool {
        let mut dependents = self.dependents(symbol);
        // Steps that clean up excuse nothing.
        dependents.retain(|(_, when)| *when != When::Always);
        !dependents.is_empty() && dependents.iter().all(|(_, when)| *when == When::Ended)
    }

    /// Whether anything of the run goes on by itself: an attempt, a wait for a slot, a retry or an
    /// executor.
    pub(super) fn is_lively(&self, run: usize) -> bool {
        self.runs[run].covered.iter().any(|s| {
            let task = self.task(s);
            let runs = task.status == InProgress && !task.is_group();
            let will = task.status == Pending && self.is_satisfied(s);
            runs || will
        })
    }
}

/// Milliseconds until the next attempt after so many failures; `None` when the budget is spent.
fn retry_delay_ms(params: &Value, failures: u64) -> Option<i64> {
    let policy = &params["retry"];
    let number = |name: &str, default: f64| policy[name].as_f64().unwrap_or(default);
    let attempts = match params["retry_count"].as_f64() {
        Some(extra) => extra + 1.0,
        None => number("max_attempts", 1.0),
    };
    if failures as f64 >= attempts {
        return None;
    }
    let growth = number("multiplier", 2.0).powi(i32::try_from(failures).unwrap_or(1) - 1);
    let delay = number("initial_delay_ms", 1000.0) * growth;
    Some(delay.min(number("max_delay_ms", 60_000.0)) as i64)
}

fn permutations(items: Vec<Symbol>) -> Vec<Vec<Symbol>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut found = Vec::new();
    for (i, first) in items.iter().enumerate() {
        let mut rest = items.clone();
        rest.remove(i);
        for mut order in permutations(rest) {
            order.insert(0, first.clone());
            found.push(order);
        }
    }
    found
}

//! Chooses the next step: mostly what a sensible client would do now, and often something else.

mod reaches;
mod spoil;
mod tasks;
mod wired;
mod work;

use self::wired::may_end_at_once;
use self::work::has_short_leases;
use crate::differential::oracle::{Oracle, Status};
use crate::differential::random::Random;
use crate::differential::script::{Action, Call, Outcome, Step};
use serde_json::{Value, json};

/// Percent of calls that are spoiled somewhere.
const SPOILED_PERCENT: usize = 25;
/// Tasks in a world above which scripts stop to create more, so that a script stays fast.
const TASKS_MAX: usize = 36;

/// Chooses steps.
pub(crate) struct Generator {
    pub(crate) random: Random,
    /// Calls with idempotency keys, to be repeated.
    keyed: Vec<Call>,
    /// Whether most tasks of the script are for workers: of every other script.
    is_for_workers: bool,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            keyed: Vec::new(),
            is_for_workers: seed.is_multiple_of(2),
        }
    }

    pub(crate) fn step(&mut self, number: usize, world: &Oracle) -> Step {
        let working = if self.is_for_workers { 78 } else { 48 };
        let action = match self.random.below(100) {
            0..=29 if !world.slots.is_empty() => self.attempt(world),
            30..=33 => self.advance(world),
            34..=37 if !has_short_leases(world) => Action::Restart,
            part if part <= working && self.has_work(world) => Action::Call(vec![self.work(world)]),
            38 => Action::Pages(self.filters(world, false)),
            _ => self.calls(number, world),
        };
        Step { number, action }
    }

    fn attempt(&mut self, world: &Oracle) -> Action {
        let task = self.random.pick(&world.slots).task.clone();
        let outcome = match self.random.below(20) {
            0..=9 => Outcome::Return(self.result()),
            10..=16 => Outcome::Fail(format!("broke {}", self.random.below(9))),
            17 => Outcome::Return(
                self.random
                    .pick(&[json!(7), json!(null), json!([1])])
                    .clone(),
            ),
            // One report an attempt: further ones are recorded a second later.
            _ if world.task(&task).progress == 0.0 => {
                Outcome::Report(*self.random.pick(&[0.25, 0.5, 0.75]))
            }
            _ => Outcome::Return(json!({})),
        };
        Action::Attempt(task, outcome)
    }

    fn advance(&mut self, world: &Oracle) -> Action {
        match world.next_time() {
            Some((at, _)) if self.random.chance(70) => {
                let ms = (at - world.now) / 1000;
                Action::Advance(u64::try_from(ms).unwrap_or(0))
            }
            _ => Action::Advance(*self.random.pick(&[1, 500, 1000, 5000])),
        }
    }

    fn calls(&mut self, number: usize, world: &Oracle) -> Action {
        if !self.keyed.is_empty() && self.random.chance(4) {
            return Action::Call(vec![self.repeat()]);
        }
        let mut call = self.good_call(world);
        if self.random.chance(SPOILED_PERCENT) {
            self.spoil(&mut call.params, world);
        }
        if self.random.chance(6) {
            self.by_position(&mut call);
        }
        if self.random.chance(6) {
            call.key = Some(format!("key{number}"));
            self.keyed.push(call.clone());
        }
        call.silent = self.random.chance(4);
        if !self.random.chance(8) || may_end_at_once(world, &call) {
            return Action::Call(vec![call]);
        }
        // One call of a batch changes something at most, so that the order of times is known.
        let mut batch = vec![call, self.read(world)];
        let mut broken = self.good_call(world);
        broken.params["bogus"] = json!(1);
        if broken.params.is_object() {
            batch.push(broken);
        }
        batch.push(self.read(world));
        Action::Call(batch)
    }

    fn repeat(&mut self) -> Call {
        let mut call = self.random.pick(&self.keyed).clone();
        call.silent = false;
        if self.random.chance(30) && call.params.is_object() {
            call.params["name"] = json!("other");
        }
        call
    }

    fn good_call(&mut self, world: &Oracle) -> Call {
        let room = world.order.len() < TASKS_MAX;
        if world.order.is_empty() || (room && self.random.chance(22)) {
            let stored = if self.is_for_workers { 20 } else { 55 };
            return if self.random.chance(stored) {
                self.create(world)
            } else {
                self.execute_new()
            };
        }
        let task = self.task(world);
        match self.random.below(100) {
            0..=21 => {
                let pending = self.with_status(world, &[Status::Pending, Status::Failed]);
                let mut params = json!({"task_id": pending.unwrap_or(task)});
                self.allow(&mut params);
                self.include(&mut params);
                Call::new("tasks.execute", params)
            }
            22..=43 => self.update(world),
            44..=52 => {
                let open = self.with_status(world, &[Status::Pending, Status::InProgress]);
                let mut params = json!({"task_id": open.unwrap_or(task)});
                if self.random.chance(30) {
                    params["cascade"] = json!(self.random.chance(60));
                }
                if self.random.chance(30) {
                    params["reason"] = json!("enough");
                }
                Call::new("tasks.cancel", params)
            }
            53..=62 => {
                let mut params = json!({"task_id": task});
                if self.random.chance(50) {
                    params["cascade"] = json!(self.random.chance(80));
                }
                Call::new("tasks.delete", params)
            }
            63..=70 if room => {
                let mut params = json!({"task_id": task});
                if self.random.chance(60) {
                    params["copy_children"] = json!(self.random.chance(80));
                }
                if self.random.chance(30) {
                    params["parent_id"] = self.task(world);
                }
                Call::new("tasks.copy", params)
            }
            71..=80 => {
                let failed = self.with_status(world, &[Status::Failed]);
                let mut params = json!({"task_id": failed.unwrap_or(task)});
                self.include(&mut params);
                Call::new("tasks.retry", params)
            }
            _ => self.read(world),
        }
    }

    fn include(&mut self, params: &mut Value) {
        if self.random.chance(20) {
            params["include"] = json!("failed");
        }
    }

    fn read(&mut self, world: &Oracle) -> Call {
        let task = self.task(world);
        match self.random.below(8) {
            0 => Call::new("tasks.get", json!({"task_id": task})),
            1 => Call::new(
                "tasks.tree",
                json!({"task_id": task, "consistency": "strong"}),
            ),
            2 => Call::new("tasks.children", json!({"parent_id": task})),
            _ => Call::new("tasks.list", self.filters(world, true)),
        }
    }

    fn filters(&mut self, world: &Oracle, offset: bool) -> Value {
        let mut params = json!({});
        let mut add = |random: &mut Random, name: &str, percent, value: Value| {
            if random.chance(percent) {
                params[name] = value;
            }
        };
        let r = &mut self.random;
        let limit = 1 + r.below(7);
        add(r, "limit", 50, json!(limit));
        let skip = r.below(6);
        add(r, "offset", if offset { 40 } else { 0 }, json!(skip));
        let status = r.pick(&Status::ALL).name();
        add(r, "status", 30, json!(status));
        let user = *r.pick(&["ann", "bob"]);
        add(r, "user_id", 20, json!(user));
        let name = *r.pick(tasks::NAMES);
        add(r, "name", 20, json!(name));
        let priority = r.below(4);
        add(r, "priority", 20, json!(priority));
        let order = *r.pick(&["asc", "desc"]);
        add(r, "order", 50, json!(order));
        let labels = r.pick(tasks::SELECTORS);
        let labels = serde_json::from_str(labels).expect("it is JSON");
        add(r, "labels", 15, labels);
        add(r, "suspended", 15, json!(true));
        let times: Vec<i64> = world.order.iter().map(|s| world.task(s).created).collect();
        if !times.is_empty() {
            let (after, before) = (*r.pick(&times), *r.pick(&times));
            add(
                r,
                "created_after",
                15,
                crate::differential::oracle::time(after),
            );
            add(
                r,
                "created_before",
                15,
                crate::differential::oracle::time(before),
            );
        }
        if r.chance(20) {
            add(r, "root_only", 50, json!(true));
            if params.get("root_only").is_none() {
                params["parent_id"] = self.task(world);
            }
        }
        params
    }

    /// Some task, or nobody's id when there are none.
    fn task(&mut self, world: &Oracle) -> Value {
        if world.order.is_empty() {
            return json!("@nobody");
        }
        let symbol = self.random.pick(&world.order);
        let capitals = if self.random.chance(3) { "^" } else { "" };
        json!(format!("@{capitals}{symbol}"))
    }

    fn with_status(&mut self, world: &Oracle, wanted: &[Status]) -> Option<Value> {
        if self.random.chance(15) {
            return None;
        }
        let fits = |s: &&String| wanted.contains(&world.task(s).status);
        let found: Vec<_> = world.order.iter().filter(fits).collect();
        if found.is_empty() {
            return None;
        }
        Some(json!(format!("@{}", self.random.pick(&found))))
    }

    /// Now and then a call allows unknown executors.
    fn allow(&mut self, params: &mut Value) {
        if self.random.chance(25) {
            params["allow_unknown_executors"] = json!(true);
            if self.random.chance(80) {
                params["executor_wait_seconds"] = json!(*self.random.pick(&[0, 0, 3]));
            }
        }
    }
}

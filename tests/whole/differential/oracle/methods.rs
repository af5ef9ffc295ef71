//! Section "Methods": what each call changes, and the refusals that depend on what is stored, in the
//! order of the section "Errors".

use super::ids::{self, symbol, text, written};
use super::{
    ANY_TEXT, Answer, Cancelled, Failed, InProgress, Oracle, Pending, Refusal, Symbol, Task, When,
    fields, invalid, refuse, wires,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A task that is to be added.
pub(super) struct New {
    pub(super) symbol: Symbol,
    pub(super) parent: Option<Symbol>,
    pub(super) map: Map<String, Value>,
    pub(super) dependencies: Vec<(Symbol, When)>,
}

fn member(map: &Map<String, Value>, name: &str, default: Value) -> Value {
    map.get(name)
        .cloned()
        .filter(|v| !v.is_null())
        .unwrap_or(default)
}

fn flag(map: &Map<String, Value>, name: &str) -> bool {
    map.get(name) == Some(&Value::Bool(true))
}

impl Oracle {
    pub(super) fn create(&mut self, mark: &str, map: &Map<String, Value>) -> Answer {
        let tasks = written(map);
        self.refuse_faults("tasks.create", map)?;
        let (list, aliases) = self.read_new(mark, map)?;
        let first = list[0].symbol.clone();
        self.place(list)?;
        let mut answer = json!({"id": format!("@{first}"), "status": "pending"});
        if tasks.len() > 1 {
            answer["task_ids"] = Value::Object(aliases);
        }
        Ok(answer)
    }

    /// Refuses a call with new tasks for everything that is wrong with them in itself.
    pub(super) fn refuse_faults(
        &self,
        method: &str,
        map: &Map<String, Value>,
    ) -> Result<(), Refusal> {
        let faults = self.faults(method, map, BTreeSet::new());
        if faults.is_empty() {
            Ok(())
        } else {
            wires::told(map, faults)
        }
    }

    pub(super) fn read_new(
        &self,
        mark: &str,
        map: &Map<String, Value>,
    ) -> Result<(Vec<New>, Map<String, Value>), Refusal> {
        let tasks = written(map);
        let (resolved, aliases) = self.resolve(mark, &tasks)?;
        let list = resolved.into_iter().map(|t| New {
            symbol: t.symbol,
            parent: t.parent,
            map: t.map,
            dependencies: t.dependencies,
        });
        Ok((list.collect(), aliases))
    }

    /// Adds tasks, parents first. Section "Trees and flows".
    pub(super) fn place(&mut self, list: Vec<New>) -> Result<(), Refusal> {
        let new: BTreeSet<Symbol> = list.iter().map(|t| t.symbol.clone()).collect();
        let mut flow = list[0].symbol.clone();
        let mut joined = BTreeSet::new();
        for parent in list.iter().filter_map(|t| t.parent.as_ref()) {
            if !new.contains(parent) {
                match self.tasks.get(parent) {
                    Some(parent) => flow = parent.flow.clone(),
                    None => return refuse(-32010),
                }
                joined.insert(flow.clone());
            }
        }
        if joined.len() > 1 {
            return refuse(-32010);
        }
        for dependency in list.iter().flat_map(|t| &t.dependencies) {
            let stored = self.tasks.get(&dependency.0);
            if !new.contains(&dependency.0) && stored.is_none_or(|t| t.flow != flow) {
                return refuse(-32011);
            }
        }
        let mut plan = self.plan_of(&flow);
        plan.extend(list.iter().map(|t| {
            let planned = Planned {
                parent: t.parent.clone(),
                is_group: member(&t.map, "schemas", Value::Null).is_null(),
                dependencies: t.dependencies.clone(),
            };
            (t.symbol.clone(), planned)
        }));
        if waits_for_itself(&plan) {
            return refuse(-32002);
        }
        for task in list {
            self.add(task, &flow);
        }
        Ok(())
    }

    fn add(&mut self, new: New, flow: &str) {
        let map = &new.map;
        let parent = new.parent.as_ref().map(|p| self.task(p));
        let user = map
            .get("user_id")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let task = Task {
            user: user.or_else(|| parent.and_then(|p| p.user.clone())),
            parent: new.parent.clone(),
            flow: flow.to_owned(),
            name: text(map, "name"),
            priority: member(map, "priority", json!(2)).as_f64().unwrap_or(2.0) as u64,
            inputs: member(map, "inputs", json!({})),
            schemas: member(map, "schemas", Value::Null),
            params: member(map, "params", Value::Null),
            start_at: member(map, "start_at", Value::Null),
            labels: member(map, "labels", json!({})),
            dependencies: new.dependencies,
            status: Pending,
            result: Value::Null,
            error: None,
            progress: 0.0,
            created: self.now,
            started: None,
            updated: self.now,
            completed: None,
            attempt: 0,
            next_attempt: None,
            timing: Default::default(),
            ready: None,
            absent: BTreeSet::new(),
            question: None,
            turns: Vec::new(),
        };
        self.tasks.insert(new.symbol.clone(), task);
        self.order.push(new.symbol.clone());
        self.ever.insert(new.symbol.clone());
        if let Some(run) = new.parent.and_then(|p| self.running_run_of(&p)) {
            self.runs[run].covered.insert(new.symbol);
        }
    }

    pub(super) fn update(&mut self, map: &Map<String, Value>) -> Answer {
        let updates = map["updates"].as_object().cloned().unwrap_or_default();
        let faults = self.update_faults(map, fields::update_references(&updates));
        if !faults.is_empty() {
            return invalid(faults);
        }
        let id = self.stored(&map["task_id"])?;
        let old = self.task(&id).clone();
        let given = |name: &str| updates.contains_key(name);
        let mut new = old.clone();
        if given("inputs") || given("schemas") || given("params") {
            new.inputs = updates.get("inputs").cloned().unwrap_or(old.inputs.clone());
            new.schemas = updates
                .get("schemas")
                .cloned()
                .unwrap_or(old.schemas.clone());
            new.params = updates.get("params").cloned().unwrap_or(old.params.clone());
        }
        new.start_at = updates
            .get("start_at")
            .cloned()
            .unwrap_or(old.start_at.clone());
        self.change_timers(&id, &old, &mut new);
        if let Some(list) = updates.get("dependencies").and_then(Value::as_array) {
            let read = |d: &Value| (symbol(d["id"].as_str().unwrap_or_default()), When::of(d));
            new.dependencies = list
                .iter()
                .map(read)
                .filter_map(|(s, r)| Some((s?, r)))
                .collect();
        }
        let specifies = ["inputs", "schemas", "params", "start_at", "dependencies"]
            .into_iter()
            .any(given);
        new.absent = wires::still_absent(&old.absent, &old.schemas, &new.schemas);
        if specifies {
            let absent = self.absent_already(&new);
            new.absent.extend(absent);
        }
        if let Some(parent) = updates.get("parent_id") {
            new.parent = parent.as_str().and_then(symbol);
            self.check_parent(&id, &old, &new)?;
        }
        self.check_dependencies(&id, &new)?;
        if given("user_id") {
            new.user = updates["user_id"].as_str().map(str::to_owned);
        }
        // A user or parent that is said again changes nothing, whatever the status.
        let moves = (&new.parent, &new.user) != (&old.parent, &old.user);
        if old.status == InProgress && (specifies || moves) {
            return refuse(-32008);
        }
        if let Some(run) = self.running_run_of(&id) {
            let covered = &self.runs[run].covered;
            let apart = |d: &&(Symbol, When)| {
                let (dependency, _) = d;
                let known = old.dependencies.iter().any(|(s, _)| s == dependency);
                !known
                    && !covered.contains(dependency)
                    && self.task(dependency).status != super::Completed
            };
            let regroups = old.is_group() != new.is_group();
            if old.parent != new.parent || regroups || new.dependencies.iter().any(|d| apart(&d)) {
                return refuse(-32008);
            }
        }
        let early = matches!(old.status, Pending | Failed);
        if (specifies && !early) || (moves && old.status != Pending) {
            return refuse(-32006);
        }
        new.name = updates
            .get("name")
            .map_or(old.name.clone(), |_| text(&updates, "name"));
        if given("priority") {
            new.priority = member(&updates, "priority", json!(2))
                .as_f64()
                .unwrap_or(2.0) as u64;
        }
        let labelled = given("labels");
        if labelled {
            new.labels = member(&updates, "labels", json!({}));
        }
        // Labels that are said again are said, unless there are none.
        let relabels = labelled && (&new.labels, &old.labels) != (&json!({}), &json!({}));
        if new != old || given("name") || relabels {
            new.updated = self.now;
        }
        let status = new.status.name();
        self.tasks.insert(id.clone(), new);
        Ok(json!({"id": format!("@{id}"), "status": status}))
    }

    fn check_parent(&self, id: &str, old: &Task, new: &Task) -> Result<(), Refusal> {
        match &new.parent {
            None if old.parent.is_none() => Ok(()),
            None => refuse(-32012),
            Some(parent) => match self.tasks.get(parent) {
                None => refuse(-32010),
                Some(found) if found.flow != old.flow => refuse(-32010),
                Some(_) if self.subtree(id).contains(parent) => refuse(-32012),
                Some(_) => Ok(()),
            },
        }
    }

    fn check_dependencies(&self, id: &str, new: &Task) -> Result<(), Refusal> {
        for (dependency, _) in &new.dependencies {
            if self
                .tasks
                .get(dependency)
                .is_none_or(|t| t.flow != new.flow)
            {
                return refuse(-32011);
            }
        }
        let mut plan = self.plan_of(&new.flow);
        plan.insert(id.to_owned(), Planned::of(new));
        if waits_for_itself(&plan) {
            refuse(-32002)
        } else {
            Ok(())
        }
    }

    /// The tasks of a flow, as far as they wait for each other.
    fn plan_of(&self, flow: &str) -> Plan {
        let tasks = self.tasks.iter().filter(|(_, task)| task.flow == flow);
        tasks
            .map(|(symbol, task)| (symbol.clone(), Planned::of(task)))
            .collect()
    }

    pub(super) fn delete(&mut self, map: &Map<String, Value>) -> Answer {
        let id = self.stored(&map["task_id"])?;
        let gone = if flag(map, "cascade") {
            self.subtree(&id)
        } else {
            vec![id.clone()]
        };
        let alone = flag(map, "cascade") || self.children(&id).is_empty();
        let free = |s: &Symbol| {
            let inside = |(d, _): &(Symbol, When)| gone.contains(d);
            self.task(s).status == Pending && self.dependents(s).iter().all(inside)
        };
        if !alone || !gone.iter().all(free) {
            return refuse(-32009);
        }
        for symbol in gone {
            self.tasks.remove(&symbol);
            self.order.retain(|s| *s != symbol);
            for run in &mut self.runs {
                run.covered.remove(&symbol);
            }
        }
        Ok(json!({"success": true}))
    }

    pub(super) fn cancel(&mut self, map: &Map<String, Value>) -> Answer {
        let id = self.stored(&map["task_id"])?;
        let open = |t: &Task| matches!(t.status, Pending | InProgress);
        if !open(self.task(&id)) {
            return refuse(-32006);
        }
        let wide = self.task(&id).is_group() || flag(map, "cascade");
        let reached = if wide {
            self.subtree(&id)
        } else {
            vec![id.clone()]
        };
        let reason = map
            .get("reason")
            .and_then(Value::as_str)
            .unwrap_or(ANY_TEXT);
        for symbol in reached {
            if open(self.task(&symbol)) {
                self.give_up(&symbol, Cancelled, reason);
            }
        }
        Ok(json!({"task_id": format!("@{id}"), "status": "cancelled"}))
    }

    pub(super) fn copy(&mut self, mark: &str, map: &Map<String, Value>) -> Answer {
        let id = self.stored(&map["task_id"])?;
        let parent = map
            .get("parent_id")
            .and_then(Value::as_str)
            .and_then(ids::symbol);
        let target = match &parent {
            None => None,
            Some(parent) => match self.tasks.get(parent) {
                None => return refuse(-32010),
                Some(task) => Some(task.flow.clone()),
            },
        };
        let copied: BTreeSet<Symbol> = if flag(map, "copy_children") {
            self.coverage(self.subtree(&id))
        } else {
            BTreeSet::from([id.clone()])
        };
        let fresh = |s: &str| format!("{mark}~{s}");
        let names: BTreeMap<_, _> = copied.iter().map(|s| (s.clone(), fresh(s))).collect();
        let mut dropped = Vec::new();
        let mut list = Vec::new();
        for original in self.copy_order(&id, &copied) {
            let task = self.task(&original);
            let mut dependencies = Vec::new();
            for (dependency, when) in &task.dependencies {
                match names.get(dependency) {
                    Some(name) => dependencies.push((name.clone(), *when)),
                    None if target.as_ref() == Some(&task.flow) => {
                        dependencies.push((dependency.clone(), *when));
                    }
                    None => dropped.push(json!({
                        "task_id": format!("@{}", names[&original]),
                        "id": format!("@{dependency}"), "required": *when == When::Completed,
                    })),
                }
            }
            let above = task.parent.as_ref().and_then(|p| names.get(p));
            let spec = json!({
                "name": task.name, "user_id": task.user, "priority": task.priority,
                "inputs": task.inputs, "params": task.params, "start_at": task.start_at,
                "labels": task.labels,
                "schemas": wires::renamed(&task.schemas, &|s| names.get(&symbol(s)?).cloned()),
            });
            list.push(New {
                symbol: names[&original].clone(),
                parent: if original == id {
                    parent.clone()
                } else {
                    Some(above.cloned().unwrap_or(fresh(&id)))
                },
                map: spec.as_object().cloned().unwrap_or_default(),
                dependencies,
            });
        }
        self.place(list)?;
        let pairs = names
            .iter()
            .map(|(old, new)| (format!("@{old}"), json!(format!("@{new}"))));
        Ok(json!({
            "original_task_id": format!("@{id}"), "copied_task_id": format!("@{}", fresh(&id)),
            "status": "pending", "task_ids": pairs.collect::<Map<_, _>>(),
            "dropped_dependencies": dropped,
        }))
    }

    /// The originals in the order of their copies: the subtree that was asked for, then the others
    /// in the order of the whole tree.
    fn copy_order(&self, root: &str, copied: &BTreeSet<Symbol>) -> Vec<Symbol> {
        let mut order = self.depth_first(root);
        let outside = self.depth_first(&self.task(root).flow);
        order.extend(outside);
        let mut seen = BTreeSet::new();
        order.retain(|s| copied.contains(s) && seen.insert(s.clone()));
        order
    }

    fn depth_first(&self, root: &str) -> Vec<Symbol> {
        let mut order = Vec::new();
        let mut open = vec![root.to_owned()];
        while let Some(symbol) = open.pop() {
            open.extend(self.children(&symbol).into_iter().rev());
            order.push(symbol);
        }
        order
    }
}

/// What decides what a task waits for.
struct Planned {
    parent: Option<Symbol>,
    is_group: bool,
    dependencies: Vec<(Symbol, When)>,
}

impl Planned {
    fn of(task: &Task) -> Self {
        Self {
            parent: task.parent.clone(),
            is_group: task.is_group(),
            dependencies: task.dependencies.clone(),
        }
    }
}

type Plan = BTreeMap<Symbol, Planned>;

/// Whether a task waits for itself: tasks wait for their dependencies, and groups for everything below them.
fn waits_for_itself(plan: &Plan) -> bool {
    let mut waits: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (symbol, task) in plan {
        let on = task.dependencies.iter().map(|(on, _)| on.as_str());
        waits.entry(symbol).or_default().extend(on);
        let mut above = task.parent.as_deref();
        // No tree of these scripts is deeper.
        for _ in 0..plan.len() {
            let Some(parent) = above.and_then(|above| plan.get_key_value(above)) else {
                break;
            };
            if parent.1.is_group {
                waits.entry(parent.0).or_default().insert(symbol);
            }
            above = parent.1.parent.as_deref();
        }
    }
    // Tasks that wait for nothing that is left are taken away, until none is left or all wait.
    let mut left: BTreeSet<&str> = plan.keys().map(String::as_str).collect();
    loop {
        let free = |s: &&str| !waits[s].iter().any(|on| left.contains(on));
        let free: Vec<&str> = left.iter().copied().filter(free).collect();
        if free.is_empty() {
            return !left.is_empty();
        }
        free.iter().for_each(|s| {
            left.remove(s);
        });
    }
}

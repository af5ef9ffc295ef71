//! Tasks that a sensible client writes, alone and as trees, and changes to them.

use super::Generator;
use crate::differential::oracle::{Oracle, When};
use crate::differential::script::Call;
use serde_json::{Map, Value, json};

/// Few, so that some tasks of a call share one.
pub(super) const NAMES: &[&str] = &["ada", "bea", "cid", "dan", "eva"];

/// Labels of tasks, some of them wrong.
const LABELS: &[&str] = &[
    r#"{"team":"data"}"#,
    r#"{"team":"data","stage":"test"}"#,
    r#"{"team":"ops","a/b.c":"täglich"}"#,
    r#"{"stage":""}"#,
    "{}",
    "null",
];

const WRONG_LABELS: &[&str] = &[
    r#"{"team":1}"#,
    r#"{"-":"x","team":"data"}"#,
    "[]",
    r#"{"a":null}"#,
];

/// What lists look for, some of it wrong.
pub(super) const SELECTORS: &[&str] = &[
    r#"{"team":"data"}"#,
    r#"{"team":null}"#,
    r#"{"stage":""}"#,
    r#"{"team":"data","stage":null}"#,
    r#"{"a/b.c":"täglich"}"#,
    "{}",
    r#"{"/":"x"}"#,
];

/// Tasks of a call.
const TREE_MAX: usize = 7;

const ALIASES: [&str; TREE_MAX + 1] = ["r", "a", "b", "c", "d", "e", "f", "g"];

impl Generator {
    /// A task without references.
    fn plain(&mut self) -> Value {
        let r = &mut self.random;
        let mut task = json!({"name": *r.pick(NAMES)});
        if r.chance(40) {
            task["priority"] = json!(r.below(4));
        }
        if r.chance(15) {
            task["user_id"] = json!(*r.pick(&["ann", "bob"]));
        }
        if r.chance(30) {
            task["labels"] = self.labels();
        }
        let r = &mut self.random;
        if r.chance(25) {
            task["inputs"] = json!({"n": r.below(5)});
            if r.chance(8) {
                task["inputs"] = json!({"n": "many"});
            }
        }
        if r.chance(65) {
            task["schemas"] = self.schemas();
        }
        let r = &mut self.random;
        if r.chance(25) {
            task["params"] = self.params();
        }
        if self.random.chance(7) {
            task["start_at"] = self.start_at();
        }
        task
    }

    fn labels(&mut self) -> Value {
        let r = &mut self.random;
        let some = if r.chance(6) { WRONG_LABELS } else { LABELS };
        let chosen: &str = r.pick::<&str>(some);
        serde_json::from_str(chosen).expect("it is JSON")
    }

    fn schemas(&mut self) -> Value {
        let r = &mut self.random;
        let methods = [
            "free", "free", "free", "one", "one", "uno", "pair", "once", "once",
        ];
        let mut schemas = json!({"method": *r.pick(&methods)});
        if r.chance(4) {
            schemas["method"] = json!("ghost");
        }
        if r.chance(if self.is_for_workers { 75 } else { 25 }) {
            schemas = json!({"method": "far", "type": "remote"});
            self.declare(&mut schemas);
            return schemas;
        }
        if r.chance(10) {
            schemas["type"] = json!("local");
        }
        if r.chance(6) {
            let property = *r.pick(&["integer", "string"]);
            schemas["input_schema"] =
                json!({"type": "object", "properties": {"n": {"type": property}}});
        }
        self.declare(&mut schemas);
        schemas
    }

    fn params(&mut self) -> Value {
        let r = &mut self.random;
        match r.below(12) {
            10 => json!({"delay_seconds": *r.pick(&[0.5, 2.0, 4.0])}),
            11 => json!({"delay_seconds": 1, "retry_count": 1}),
            0 => json!({"deadline": "2020-01-01T00:00:00Z"}),
            1 => json!({"deadline": "2126-01-01T00:00:00+02:00", "timeout_seconds": 86_400}),
            2 | 3 => json!({"retry_count": r.below(3)}),
            4..=7 => {
                let mut retry = json!({"max_attempts": 1 + r.below(3)});
                if r.chance(80) {
                    retry["initial_delay_ms"] = json!(*r.pick(&[0, 1000, 3000]));
                }
                if r.chance(40) {
                    retry["multiplier"] = json!(*r.pick(&[1.0, 3.0]));
                }
                if r.chance(30) {
                    retry["max_delay_ms"] = json!(2000);
                }
                json!({"retry": retry})
            }
            _ => json!({"colour": "red"}),
        }
    }

    /// Long ago, or soon after the beginning.
    fn start_at(&mut self) -> Value {
        let times = [
            "2020-01-01T00:00:00Z",
            "2026-01-01T00:00:08Z",
            "2026-01-01T01:01:00+01:00",
        ];
        json!(*self.random.pick(&times))
    }

    /// A tree as a flat list with aliases, the root first.
    fn flat(&mut self) -> Vec<Value> {
        let len = 2 + self.random.below(TREE_MAX - 1);
        let mut list = Vec::with_capacity(len);
        for i in 0..len {
            let node = self.node(i, len, &list);
            list.push(node);
        }
        list
    }

    /// The `i`-th of `len` tasks of a tree: below an earlier one, waiting for earlier ones, now and
    /// then for later ones or for a group above it too.
    fn node(&mut self, i: usize, len: usize, earlier: &[Value]) -> Value {
        let mut task = self.plain();
        task["id"] = json!(ALIASES[i]);
        if i == 0 {
            if self.random.chance(60) {
                task.as_object_mut().and_then(|t| t.remove("schemas"));
            }
            return task;
        }
        let above = if self.random.chance(45) {
            0
        } else {
            self.random.below(i)
        };
        task["parent_id"] = json!(ALIASES[above]);
        let mut used = Vec::new();
        let mut dependencies = Vec::new();
        while used.len() < 3 && self.random.chance(45) {
            let on = if self.random.chance(93) {
                self.random.below(i)
            } else {
                self.random.below(len)
            };
            let waits = is_group_above(earlier, on, above) && !self.random.chance(8);
            if !used.contains(&on) && !waits {
                used.push(on);
                dependencies.push(self.dependency(&json!(ALIASES[on])));
            }
        }
        if !dependencies.is_empty() {
            task["dependencies"] = Value::Array(dependencies);
            self.wire(&mut task, str::to_owned);
        }
        task
    }

    /// The same tasks in another order, some without an alias: then only a name can mean them.
    fn shuffled(&mut self, mut list: Vec<Value>) -> Vec<Value> {
        let i = self.random.below(list.len());
        let j = self.random.below(list.len());
        list.swap(i, j);
        let task = &mut list[i];
        if self.random.chance(50) {
            let alias = task.as_object_mut().and_then(|t| t.remove("id"));
            let name = task["name"].clone();
            for other in &mut list {
                if Some(&other["parent_id"]) == alias.as_ref() {
                    other["parent_id"] = name.clone();
                }
                rename(other, &alias, &name);
                let dependencies = other.get_mut("dependencies").and_then(Value::as_array_mut);
                for dependency in dependencies.into_iter().flatten() {
                    if Some(&dependency["id"]) == alias.as_ref() {
                        dependency["id"] = name.clone();
                    }
                }
            }
        }
        list
    }

    fn dependency(&mut self, id: &Value) -> Value {
        match self.random.below(10) {
            0..=4 => json!({"id": id}),
            5 | 6 => json!({"id": id, "required": true}),
            7 => json!({"id": id, "when": "always"}),
            _ => json!({"id": id, "required": false}),
        }
    }

    /// The same tree, written nested; the aliases stay for the dependencies.
    fn nested(&mut self, list: Vec<Value>) -> Value {
        let wrapped = self.random.chance(50);
        let mut nodes: Vec<Option<Value>> = list.into_iter().map(Some).collect();
        for i in (0..nodes.len()).rev() {
            let mut node = nodes[i].take().unwrap_or_default();
            let parent = node.as_object_mut().and_then(|t| t.remove("parent_id"));
            let children = node.as_object_mut().and_then(|t| t.remove("children"));
            let children = children.unwrap_or(json!([]));
            if wrapped {
                node = json!({"task": node, "children": children});
            } else if children != json!([]) {
                node["children"] = children;
            }
            let Some(parent) = parent else {
                return node;
            };
            for above in nodes[..i].iter_mut().flatten() {
                if above["id"] == parent {
                    let list = above["children"].as_array().cloned().unwrap_or_default();
                    above["children"] = [vec![node.clone()], list].concat().into();
                }
            }
        }
        Value::Null
    }

    pub(super) fn create(&mut self, world: &Oracle) -> Call {
        let kind = self.random.below(10);
        let below = !world.order.is_empty() && self.random.chance(40);
        let mut params = match kind {
            0..=4 => self.plain(),
            5 => json!({"tasks": self.flat()}),
            6 => {
                let list = self.flat();
                json!({"tasks": self.shuffled(list)})
            }
            _ => {
                let list = self.flat();
                self.nested(list)
            }
        };
        if self.random.chance(5) && kind <= 4 {
            let n = self.random.below(4);
            params["id"] = json!(format!("@chosen{n}"));
        }
        if below && kind <= 6 {
            let parent = self.task(world);
            let flow =
                crate::differential::oracle::symbol(&parent).map(|s| world.task(&s).flow.clone());
            let top = if kind <= 4 {
                &mut params
            } else {
                &mut params["tasks"][0]
            };
            top["parent_id"] = parent;
            let same: Vec<_> = world
                .order
                .iter()
                .filter(|s| Some(&world.task(s).flow) == flow.as_ref())
                .collect();
            if !same.is_empty() && self.random.chance(35) {
                let on = json!(format!("@{}", self.random.pick(&same)));
                top["dependencies"] = json!([self.dependency(&on)]);
                self.wire(top, |id| format!("{id}:"));
            }
        }
        Call::new("tasks.create", params)
    }

    pub(super) fn execute_new(&mut self) -> Call {
        let list = if self.random.chance(20) {
            vec![self.plain()]
        } else {
            self.flat()
        };
        let list = match self.random.below(10) {
            0..=2 if list.len() > 1 => vec![self.nested(list)],
            3 | 4 => self.shuffled(list),
            _ => list,
        };
        let mut params = json!({"tasks": list});
        self.allow(&mut params);
        Call::new("tasks.execute", params)
    }

    pub(super) fn update(&mut self, world: &Oracle) -> Call {
        let wanted = [
            crate::differential::oracle::Status::Pending,
            crate::differential::oracle::Status::Failed,
        ];
        let task = self
            .with_status(world, &wanted)
            .unwrap_or_else(|| self.task(world));
        let flow = crate::differential::oracle::symbol(&task).map(|s| world.task(&s).flow.clone());
        let same: Vec<_> = world
            .order
            .iter()
            .filter(|s| Some(&world.task(s).flow) == flow.as_ref())
            .collect();
        let mut updates = Map::new();
        for _ in 0..=self.random.below(2) {
            let (name, value) = match self.random.below(11) {
                0 => ("name", json!(*self.random.pick(NAMES))),
                1 | 2 => ("priority", json!(self.random.below(4))),
                3 => ("inputs", json!({"n": self.random.below(5)})),
                4 => (
                    "schemas",
                    if self.random.chance(25) {
                        Value::Null
                    } else {
                        self.schemas()
                    },
                ),
                5 => ("params", self.params()),
                9 if self.random.chance(30) => ("start_at", Value::Null),
                9 => ("start_at", self.start_at()),
                10 => ("labels", self.labels()),
                6 => (
                    "user_id",
                    self.random
                        .pick(&[json!("ann"), json!("bob"), Value::Null])
                        .clone(),
                ),
                7 if !same.is_empty() => {
                    ("parent_id", json!(format!("@{}", self.random.pick(&same))))
                }
                _ if !same.is_empty() => {
                    let mut list = Vec::new();
                    let mut used: Vec<&String> = Vec::new();
                    for _ in 0..self.random.below(3) {
                        let on = *self.random.pick(&same);
                        if !used.contains(&on) {
                            used.push(on);
                            list.push(self.dependency(&json!(format!("@{on}"))));
                        }
                    }
                    ("dependencies", Value::Array(list))
                }
                _ => ("name", json!("zoe")),
            };
            updates.insert(name.to_owned(), value);
        }
        self.rewire(&task, world, &mut updates);
        Call::new("tasks.update", json!({"task_id": task, "updates": updates}))
    }
    /// Other `schemas` take inputs from the dependencies that the task has.
    fn rewire(&mut self, task: &Value, world: &Oracle, updates: &mut Map<String, Value>) {
        let symbol = crate::differential::oracle::symbol(task);
        let known = symbol.and_then(|s| world.tasks.get(&s));
        let (Some(known), Some(schemas)) = (known, updates.get("schemas")) else {
            return;
        };
        let on = |(s, when): &(String, When)| when.shown(json!(format!("@{s}")));
        let stored: Vec<Value> = known.dependencies.iter().map(on).collect();
        let dependencies = updates
            .get("dependencies")
            .cloned()
            .unwrap_or(json!(stored));
        let mut wired = json!({"schemas": schemas, "dependencies": dependencies});
        self.wire(&mut wired, |id| format!("{id}:"));
        updates.insert("schemas".to_owned(), wired["schemas"].take());
    }
}

/// What is wired to an alias is wired to a name.
fn rename(task: &mut Value, alias: &Option<Value>, name: &Value) {
    let (Some(alias), Some(name)) = (alias.as_ref().and_then(Value::as_str), name.as_str()) else {
        return;
    };
    let renamed = |text: &str| {
        let place = text.strip_prefix(alias)?;
        place
            .starts_with(['.', '#'])
            .then(|| format!("{name}{place}"))
    };
    let wiring = task.pointer_mut("/schemas/wiring");
    for wire in wiring
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(Map::values_mut)
    {
        let from = if wire.is_object() {
            &mut wire["from"]
        } else {
            wire
        };
        if let Some(text) = from.as_str().and_then(renamed) {
            *from = json!(text);
        }
    }
}

/// Whether one of these tasks is a group that contains the other or is it.
fn is_group_above(tasks: &[Value], group: usize, task: usize) -> bool {
    let place = |alias: &Value| ALIASES.iter().position(|it| alias == it);
    let parent = |i: &usize| place(&tasks.get(*i)?["parent_id"]);
    let is_group = tasks
        .get(group)
        .is_some_and(|task| task.get("schemas").is_none());
    is_group && std::iter::successors(Some(task), parent).any(|i| i == group)
}

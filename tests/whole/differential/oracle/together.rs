//! Section "Errors": everything that is wrong with the tasks of a call is told at once.

use super::ids::{self, Written, join, symbol, text};
use super::{Oracle, Refusal, When, inputs, wires};
use crate::differential::gate;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use taskledger_domain::Timestamp;

impl Oracle {
    /// Paths of all faults of a call with new tasks for which it is -32602, those of `shape` included;
    /// empty when there is none. Unknown executors of tasks that would run are told with others only:
    /// by themselves they have a code of their own.
    pub(super) fn faults(
        &self,
        method: &str,
        map: &Map<String, Value>,
        shape: BTreeSet<String>,
    ) -> BTreeSet<String> {
        let runs = method == "tasks.execute";
        let given = match (method, map.get("tasks")) {
            ("tasks.create", _) => map.clone(),
            ("tasks.execute", Some(tasks)) if tasks.is_array() => {
                Map::from_iter([("tasks".to_owned(), tasks.clone())])
            }
            ("tasks.update", _) => return self.update_faults(map, shape),
            _ => return shape,
        };
        let tasks = ids::written(&given);
        let mut found = shape.clone();
        let mut executors = BTreeSet::new();
        for task in tasks.iter().filter(|task| is_specified(task, &shape)) {
            let member = |name: &str| task.map.get(name).cloned().unwrap_or(Value::Null);
            let (schemas, params) = (member("schemas"), member("params"));
            found.extend(inputs::faults(&member("inputs"), &schemas, &task.path));
            let deadline = params["deadline"].as_str();
            let deadline = deadline.and_then(|d| Timestamp::parse(d).ok());
            if runs && deadline.is_some_and(|d| d.0 <= self.now) {
                found.insert(join(&task.path, "params.deadline"));
            }
            let method = schemas["method"].as_str();
            let is_unknown = method.is_some_and(|method| gate::executor(method).is_none());
            if is_unknown && schemas["type"] != "remote" {
                executors.insert(join(&task.path, "schemas.method"));
            }
        }
        let taken = |t: &&Written<'_>| {
            let chosen = symbol(&text(t.map, "id"));
            chosen.is_some_and(|s| self.ever.contains(&s))
        };
        found.extend(tasks.iter().filter(taken).map(|t| join(&t.path, "id")));
        if let Err(Refusal {
            paths: Some(paths), ..
        }) = self.resolve("", &tasks)
        {
            // Of a dependency that is none, nothing more is said.
            let is_known = |path: &String| shape.iter().any(|s| lies_below(path, s));
            // Of a task that is wrong in itself nothing is said of what is wired to it.
            let is_unread = |path: &String| {
                let of = |t: &&Written<'_>| lies_below(path, &join(&t.path, "schemas.wiring"));
                tasks
                    .iter()
                    .find(of)
                    .is_some_and(|t| !is_specified(t, &shape))
            };
            let is_told = |path: &String| !is_known(path) && !is_unread(path);
            found.extend(paths.into_iter().filter(is_told));
        }
        if runs && !found.is_empty() && map.get("allow_unknown_executors") != Some(&json!(true)) {
            found.extend(executors);
        }
        found
    }
}

impl Oracle {
    /// The same for an update, of which `known` is wrong: with what is wrong with the task as it would be, if all that
    /// it executes was read.
    pub(super) fn update_faults(
        &self,
        map: &Map<String, Value>,
        known: BTreeSet<String>,
    ) -> BTreeSet<String> {
        let is_wrong = |member: &str| {
            let place = join("updates", member);
            known
                .iter()
                .any(|it| *it == place || lies_below(it, &place))
        };
        let specification = ["inputs", "schemas", "params", "start_at"];
        let task = map.get("task_id").and_then(Value::as_str).and_then(symbol);
        let updates = map.get("updates").and_then(Value::as_object);
        let (Some(old), Some(updates)) = (task.and_then(|s| self.tasks.get(&s)), updates) else {
            return known;
        };
        if specification.iter().any(|it| is_wrong(it)) || known.contains("task_id") {
            return known;
        }
        let of = |name: &str, old: &Value| updates.get(name).unwrap_or(old).clone();
        let (inputs, schemas) = (of("inputs", &old.inputs), of("schemas", &old.schemas));
        let respecifies = specification.iter().any(|it| updates.contains_key(*it));
        let mut found = known.clone();
        if respecifies {
            found.extend(inputs::faults(&inputs, &schemas, "updates"));
        }
        // Without its dependencies nothing can be said of what is wired to them.
        let rewires = respecifies || (known.is_empty() && updates.contains_key("dependencies"));
        if rewires && !is_wrong("dependencies") {
            let given = updates.get("dependencies").and_then(Value::as_array);
            let read = |d: &Value| {
                let id = d["id"].as_str().and_then(symbol);
                id.map(|id| (id, When::of(d)))
            };
            let given = given.map(|list| list.iter().filter_map(read).collect());
            let dependencies = given.unwrap_or_else(|| old.dependencies.clone());
            let find = |name: &str| symbol(name);
            let wrong = wires::faults(&inputs, &schemas, &dependencies, &find, "updates");
            found.extend(wrong);
        }
        found
    }
}

/// Whether nothing is wrong with what the task executes.
fn is_specified(task: &Written<'_>, shape: &BTreeSet<String>) -> bool {
    let members = ["inputs", "schemas", "params"].map(|name| join(&task.path, name));
    let is_wrong = |path: &String| shape.iter().any(|s| s == path || lies_below(s, path));
    !members.iter().any(is_wrong)
}

/// Whether one path goes through another.
fn lies_below(path: &str, above: &str) -> bool {
    let rest = path.strip_prefix(above);
    rest.is_some_and(|rest| rest.starts_with('.'))
}

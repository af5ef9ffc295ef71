//! Section "Errors": everything that is wrong with the tasks of a call is told at once.

use super::ids::{self, Written, join, symbol, text};
use super::{Oracle, Refusal, inputs};
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

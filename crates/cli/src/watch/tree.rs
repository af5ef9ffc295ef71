//! The tree of a flow as it stands, kept up to date by events: with what its tasks wait for, and how far its groups
//! are.

use crate::output::member;
use crate::tree::{self, Line};
use crate::when::time;
use serde_json::{Map, Value};
use std::collections::HashMap;
use taskledger_domain::Timestamp;

/// A tree of tasks.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Parents before their children.
    rows: Vec<Row>,
    /// Where the tasks are.
    places: HashMap<String, usize>,
}

#[derive(Debug)]
struct Row {
    line: Line,
    /// What [`KEPT`] names of the task, as the server shows it.
    task: Value,
    parent: Option<usize>,
}

/// The members of a task that say where it stands and what it waits for. Payloads are not among them.
const KEPT: [&str; 14] = [
    "id",
    "parent_id",
    "name",
    "status",
    "skipped",
    "progress",
    "error",
    "attempt",
    "next_attempt_at",
    "start_at",
    "started_at",
    "completed_at",
    "dependencies",
    "suspension",
];

impl Tree {
    /// Takes the tree as the server shows it.
    pub(super) fn read(&mut self, tree: &Value) {
        self.rows.clear();
        let mut lines = tree::lines(tree).into_iter();
        let mut waiting = vec![(tree, None)];
        // In the order of the lines.
        while let Some((node, parent)) = waiting.pop() {
            let mut own = parent;
            if let (Some(task), Some(line)) = (node.get("task"), node.get("task").and(lines.next()))
            {
                own = Some(self.rows.len());
                let task = kept(task);
                self.rows.push(Row { line, task, parent });
            }
            let children = node.get("children").and_then(Value::as_array);
            let children = children.map_or(&[][..], Vec::as_slice);
            waiting.extend(children.iter().rev().map(|child| (child, own)));
        }
        let places = self.rows.iter().enumerate();
        self.places = places.map(|(at, row)| (row.line.id.clone(), at)).collect();
    }

    /// Takes an event; false when it is about a task that is not in the tree.
    pub(super) fn take(&mut self, event: &Value) -> bool {
        let Some(at) = self.places.get(&member(event, "task_id")) else {
            return false;
        };
        let task = &mut self.rows[*at].task;
        let (before, now) = (member(task, "status"), member(event, "status"));
        let at = event.get("timestamp").cloned().unwrap_or_default();
        // Whoever begins again is skipped no more.
        task["skipped"] = Value::Null;
        for name in ["status", "error", "next_attempt_at"] {
            task[name] = event.get(name).cloned().unwrap_or_default();
        }
        for name in ["attempt", "progress"] {
            if let Some(value) = event.get(name) {
                task[name] = value.clone();
            }
        }
        let suspension = event.get("suspension");
        let is_open =
            |it: &&Value| it.is_object() && it.get("resolution").is_none_or(Value::is_null);
        task["suspension"] = match suspension.filter(is_open) {
            Some(open) => open.clone(),
            // Progress while somebody is asked does not say so again.
            None if suspension.is_none() && now == "in_progress" && before == now => {
                task["suspension"].take()
            }
            None => Value::Null,
        };
        match now.as_str() {
            "pending" => {
                task["started_at"] = Value::Null;
                task["completed_at"] = Value::Null;
            }
            "in_progress" if before != now => {
                task["started_at"] = at;
                task["completed_at"] = Value::Null;
            }
            "in_progress" => {}
            _ if before != now => task["completed_at"] = at,
            _ => {}
        }
        true
    }

    /// Whether what is shown changes with time: somebody is at work, or waits for a time.
    pub(super) fn is_running(&self) -> bool {
        self.rows.iter().any(|row| {
            let waits = |name| row.task.get(name).is_some_and(Value::is_string);
            match row.task.get("status").and_then(Value::as_str) {
                Some("in_progress") => true,
                Some("pending") => waits("next_attempt_at") || waits("start_at"),
                Some(_) | None => false,
            }
        })
    }

    /// The tree as lines, with how long each task has taken and what it waits for. Cost: O(tasks + dependencies).
    pub(super) fn lines(&self, now: Timestamp) -> Vec<Line> {
        let tasks = self.rows.iter().map(|row| (row.line.id.clone(), &row.task));
        let tasks: HashMap<String, &Value> = tasks.collect();
        let progress = self.progress();
        let rows = self.rows.iter().zip(progress);
        rows.map(|(Row { line, task, .. }, progress)| Line {
            status: tree::shown_status(task),
            percent: tree::percent(task, progress),
            changed_at: time(task, "completed_at").or_else(|| time(task, "started_at")),
            error: member(task, "error"),
            attempt: task.get("attempt").and_then(Value::as_u64).unwrap_or(0),
            took: tree::took(task, now),
            note: tree::note(task, &tasks, now),
            ..line.clone()
        })
        .collect()
    }

    /// How far each task is; a group that is in progress as far as its children are on average, which no event tells.
    fn progress(&self) -> Vec<f64> {
        let mut below = vec![(0.0, 0_u32); self.rows.len()];
        let mut progress = vec![0.0; self.rows.len()];
        for (at, row) in self.rows.iter().enumerate().rev() {
            let status = row.task.get("status").and_then(Value::as_str);
            let reported = row.task.get("progress").and_then(Value::as_f64);
            progress[at] = match (status, below[at]) {
                (Some("completed"), _) => 1.0,
                (Some("in_progress"), (sum, count)) if count > 0 => sum / f64::from(count),
                _ => reported.unwrap_or(0.0),
            };
            if let Some(parent) = row.parent {
                below[parent].0 += progress[at];
                below[parent].1 += 1;
            }
        }
        progress
    }
}

fn kept(task: &Value) -> Value {
    let members = KEPT
        .iter()
        .filter_map(|name| Some((*name, task.get(name)?)));
    let members = members.map(|(name, value)| (name.to_owned(), value.clone()));
    Value::Object(members.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const START: &str = "2026-01-31T12:00:00Z";

    fn at(seconds: u64) -> Timestamp {
        Timestamp::parse(START).unwrap().plus_ms(seconds * 1000)
    }

    fn event(id: &str, status: &str, progress: f64, seconds: u64) -> Value {
        json!({"task_id": id, "status": status, "progress": progress, "timestamp": at(seconds)})
    }

    fn shown(tree: &Tree, seconds: u64) -> Vec<String> {
        tree.lines(at(seconds))
            .iter()
            .map(|line| line.text().letters())
            .collect()
    }

    #[test]
    fn events_move_tasks_on_and_times_grow_while_they_run() {
        let mut tree = Tree::default();
        tree.read(&json!({"task": {"id": "r", "name": "root", "status": "in_progress", "progress": 0.1, "started_at": START},
            "children": [{"task": {"id": "a", "name": "leaf", "status": "pending"}, "children": []}]}));
        assert_eq!(
            shown(&tree, 5),
            [
                "▸ root  in_progress ▱▱▱▱▱▱▱▱ 0 %  5.0 s",
                "└─ · leaf  pending"
            ]
        );

        assert!(tree.take(&event("a", "in_progress", 0.0, 10)));
        assert!(tree.take(&event("a", "in_progress", 0.5, 12)));
        assert_eq!(
            shown(&tree, 13)[1],
            "└─ ▸ leaf  in_progress ▰▰▰▰▱▱▱▱ 50 %  3.0 s"
        );

        let mut failed = event("a", "failed", 0.5, 14);
        failed["error"] = "broken".into();
        assert!(tree.take(&failed));
        assert_eq!(shown(&tree, 60)[1], "└─ ✗ leaf  failed: broken  4.0 s");
        assert!(tree.take(&event("a", "pending", 0.0, 20)));
        assert_eq!(shown(&tree, 60)[1], "└─ · leaf  pending");
        assert!(tree.is_running());
        assert!(tree.take(&event("r", "completed", 1.0, 61)));
        assert!(!tree.is_running());
    }

    #[test]
    fn tasks_say_what_they_wait_for_and_groups_how_far_they_are() {
        let leaf = |id: &str, needs: Value| json!({"task": {"id": id, "name": id, "status": "pending", "schemas": {"method": "m"}, "dependencies": needs}});
        let inner = json!({"task": {"id": "g", "name": "g", "status": "in_progress", "started_at": START},
            "children": [leaf("fetch", json!([])), leaf("load", json!([{"id": "fetch", "required": true}]))]});
        let mut tree = Tree::default();
        tree.read(
            &json!({"task": {"id": "r", "name": "r", "status": "in_progress", "started_at": START},
            "children": [inner, leaf("clean", json!([{"id": "g"}]))]}),
        );
        assert_eq!(
            shown(&tree, 1)[3..],
            [
                "│  └─ · load  pending  waits for `fetch`",
                "└─ · clean  pending  waits for `g`"
            ]
        );

        // The events of an attempt that fails and is repeated.
        assert!(tree.take(&event("fetch", "in_progress", 0.0, 1)));
        assert!(tree.take(&event("fetch", "failed", 0.0, 2)));
        let mut again = event("fetch", "pending", 0.0, 2);
        again["next_attempt_at"] = json!(at(9));
        again["attempt"] = 1.into();
        assert!(tree.take(&again));
        assert_eq!(shown(&tree, 4)[2], "│  ├─ · fetch  pending  retry in 5.0 s");
        assert_eq!(shown(&tree, 6)[2], "│  ├─ · fetch  pending  retry in 3.0 s");

        assert!(tree.take(&event("fetch", "in_progress", 0.0, 9)));
        let mut asked = event("fetch", "in_progress", 0.0, 10);
        asked["suspension"] = json!({"suspension_id": "s", "question": "?"});
        assert!(tree.take(&asked));
        assert!(shown(&tree, 11)[2].ends_with("waits for a person"));
        asked["suspension"]["resolution"] = "responded".into();
        assert!(tree.take(&asked));
        assert!(tree.take(&event("fetch", "completed", 1.0, 12)));
        assert_eq!(
            shown(&tree, 12),
            [
                "▸ r  in_progress ▰▰▱▱▱▱▱▱ 25 %  12 s",
                "├─ ▸ g  in_progress ▰▰▰▰▱▱▱▱ 50 %  12 s",
                "│  ├─ ✓ fetch  completed  3.0 s",
                "│  └─ · load  pending",
                "└─ · clean  pending  waits for `g`",
            ]
        );
    }

    #[test]
    fn a_time_that_is_waited_for_is_drawn_again_while_it_comes_nearer() {
        let mut tree = Tree::default();
        tree.read(&json!({"task": {"id": "a", "name": "a", "status": "pending"}}));
        assert!(!tree.is_running());
        let mut again = event("a", "pending", 0.0, 0);
        again["next_attempt_at"] = json!(at(9));
        assert!(tree.take(&again) && tree.is_running());
    }

    #[test]
    fn a_task_that_is_not_there_is_told() {
        assert!(!Tree::default().take(&event("x", "pending", 0.0, 0)));
    }
}

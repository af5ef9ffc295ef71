//! The tree of a flow as it stands, kept up to date by events.

use super::known;
use super::lines::percent;
use crate::output::member;
use crate::tree::{self, Line};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use taskledger_domain::Timestamp;

/// A tree of tasks.
#[derive(Debug, Default)]
pub(super) struct Tree {
    rows: Vec<Row>,
    /// Where the tasks are.
    places: HashMap<String, usize>,
}

#[derive(Debug)]
struct Row {
    line: Line,
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
    /// Tasks are below it. How far they are is not told when it changes, so it is not shown.
    is_group: bool,
}

impl Tree {
    /// Takes the tree as the server shows it.
    pub(super) fn read(&mut self, tree: &Value) {
        let mut times: HashMap<String, (Option<Timestamp>, Option<Timestamp>)> = known::tasks(tree)
            .map(|task| {
                (
                    member(task, "id"),
                    (time(task, "started_at"), time(task, "completed_at")),
                )
            })
            .collect();
        let groups: HashSet<String> = known::parents(tree).collect();
        let rows = tree::lines(tree).into_iter().map(|mut line| {
            let is_group = groups.contains(&line.id);
            line.percent = line.percent.filter(|_| !is_group);
            let (started, ended) = times.remove(&line.id).unwrap_or_default();
            Row {
                line,
                started,
                ended,
                is_group,
            }
        });
        self.rows = rows.collect();
        let places = self.rows.iter().enumerate();
        self.places = places.map(|(at, row)| (row.line.id.clone(), at)).collect();
    }

    /// Takes an event; false when it is about a task that is not in the tree.
    pub(super) fn take(&mut self, event: &Value) -> bool {
        let Some(at) = self.places.get(&member(event, "task_id")) else {
            return false;
        };
        let Row {
            line,
            started,
            ended,
            is_group,
        } = &mut self.rows[*at];
        let (before, now) = (line.status.clone(), member(event, "status"));
        let at = time(event, "timestamp");
        line.percent = percent(event).filter(|_| now == "in_progress" && !*is_group);
        line.error = member(event, "error");
        match now.as_str() {
            "pending" => (*started, *ended) = (None, None),
            "in_progress" if before != now => (*started, *ended) = (at, None),
            "in_progress" => {}
            _ if before != now => *ended = at,
            _ => {}
        }
        line.status = now;
        true
    }

    /// Whether somebody is at work, so that times grow.
    pub(super) fn is_running(&self) -> bool {
        self.rows.iter().any(|row| row.line.status == "in_progress")
    }

    /// The tree as lines, with how long each task has taken.
    pub(super) fn lines(&self, now: Timestamp) -> Vec<Line> {
        let rows = self.rows.iter();
        rows.map(|row| {
            let mut line = row.line.clone();
            if let Some(started) = row.started {
                line.took = Some(row.ended.unwrap_or(now).ms_since(started));
            }
            line
        })
        .collect()
    }
}

fn time(object: &Value, name: &str) -> Option<Timestamp> {
    Timestamp::parse(object.get(name)?.as_str()?).ok()
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
            ["▸ root  in_progress  5.0 s", "└─ · leaf  pending"]
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
    fn a_task_that_is_not_there_is_told() {
        assert!(!Tree::default().take(&event("x", "pending", 0.0, 0)));
    }
}

//! Shows a whole server: one line for each flow, the newest first.

use super::known;
use crate::output::{Style, Text, counted, member, style};
use crate::span::span;
use crate::tree::{WORDS, mark};
use crate::when::time;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use taskledger_domain::Timestamp;

/// Flows that are held: more than any terminal has lines.
const FLOWS_MAX: usize = 200;

/// The flows about which something was told.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    /// By the order in which they were first told of.
    flows: BTreeMap<u64, Flow>,
    /// Where they are, by their roots.
    places: HashMap<String, u64>,
    /// How many there were in all.
    seen: u64,
}

#[derive(Debug, Default)]
struct Flow {
    root: String,
    name: String,
    /// Its tree was read: the counts are whole.
    read: bool,
    statuses: HashMap<String, String>,
    /// Tasks in each status.
    counts: HashMap<String, usize>,
    began: Option<Timestamp>,
    /// Verdict and time of the run that ended last, while no other has begun.
    ended: Option<(String, Option<Timestamp>)>,
}

impl Flows {
    /// Takes an event.
    pub(crate) fn take(&mut self, event: &Value) {
        let (root, task) = (member(event, "root_task_id"), member(event, "task_id"));
        if root.is_empty() || task.is_empty() {
            return;
        }
        let at = time(event, "timestamp");
        let place = match self.places.get(&root) {
            Some(place) => *place,
            None => self.add(&root, at),
        };
        let Some(flow) = self.flows.get_mut(&place) else {
            return;
        };
        let status = member(event, "status");
        if event.get("final").and_then(Value::as_bool) == Some(true) {
            let run = event.get("run").unwrap_or(&Value::Null);
            let state = Some(member(run, "state")).filter(|state| !state.is_empty());
            flow.ended = Some((state.unwrap_or_else(|| status.clone()), at));
        } else if status == "in_progress" && flow.ended.take().is_some() {
            flow.began = at;
        }
        flow.set(task, status);
    }

    fn add(&mut self, root: &str, began: Option<Timestamp>) -> u64 {
        if self.flows.len() >= FLOWS_MAX {
            self.forget();
        }
        let place = self.seen;
        self.seen += 1;
        self.places.insert(root.to_owned(), place);
        self.flows.insert(
            place,
            Flow {
                root: root.to_owned(),
                began,
                ..Flow::default()
            },
        );
        place
    }

    /// Makes room: the oldest that has ended, else the oldest.
    fn forget(&mut self) {
        let ended = self.flows.iter().find(|(_, flow)| flow.ended.is_some());
        let oldest = ended.or_else(|| self.flows.first_key_value());
        if let Some(place) = oldest.map(|(place, _)| *place)
            && let Some(flow) = self.flows.remove(&place)
        {
            self.places.remove(&flow.root);
        }
    }

    /// Roots of flows that are shown and whose trees were not read, newest first.
    pub(super) fn unread(&self, room: usize) -> impl Iterator<Item = String> {
        let shown = self.flows.values().rev().take(room);
        let unread = shown.filter(|flow| !flow.read);
        unread.map(|flow| flow.root.clone())
    }

    /// Takes the tree of a flow; what events said of its tasks is newer. Without one, it counts as read.
    pub(crate) fn read(&mut self, root: &str, tree: Option<&Value>) {
        let place = self.places.get(root);
        let Some(flow) = place.and_then(|place| self.flows.get_mut(place)) else {
            return;
        };
        flow.read = true;
        for task in tree.into_iter().flat_map(known::tasks) {
            let id = member(task, "id");
            if id == root {
                flow.name = member(task, "name");
            }
            if !flow.statuses.contains_key(&id) {
                flow.set(id, member(task, "status"));
            }
        }
    }

    /// Whether something runs, so that times grow.
    pub(super) fn is_running(&self) -> bool {
        self.flows
            .values()
            .any(|flow| flow.count("in_progress") > 0)
    }

    /// A line about all, then one for each flow, as many as there is room for.
    pub(crate) fn lines(&self, room: usize, now: Timestamp) -> Vec<Text> {
        let running = self
            .flows
            .values()
            .filter(|flow| flow.count("in_progress") > 0);
        let seen = counted(self.seen, "flow", "flows");
        let head = Text::from(format!("{seen} seen, {} running", running.count()));
        let flows = self.flows.values().rev().take(room.saturating_sub(1));
        std::iter::once(head)
            .chain(flows.map(|flow| flow.line(now)))
            .collect()
    }
}

impl Flow {
    fn count(&self, status: &str) -> usize {
        self.counts.get(status).copied().unwrap_or(0)
    }

    fn set(&mut self, task: String, status: String) {
        *self.counts.entry(status.clone()).or_default() += 1;
        let before = self.statuses.insert(task, status);
        if let Some(count) = before.and_then(|before| self.counts.get_mut(&before)) {
            *count -= 1;
        }
    }

    fn line(&self, now: Timestamp) -> Text {
        let status = match &self.ended {
            Some((state, _)) => state.as_str(),
            None if self.count("in_progress") > 0 => "in_progress",
            None => "pending",
        };
        let name = if self.name.is_empty() {
            "…"
        } else {
            &self.name
        };
        let tasks = counted(self.statuses.len() as u64, "task", "tasks");
        let mut line = Text::of(style(status), mark(status).to_string())
            .with(Style::Plain, format!(" {name}  {tasks}"));
        let mut sign = ": ";
        for (status, word) in WORDS {
            match self.count(status) {
                0 => {}
                count => {
                    line.push(Style::Plain, sign);
                    line.push(style(status), format!("{count} {word}"));
                    sign = ", ";
                }
            }
        }
        if let Some(began) = self.began {
            let until = self.ended.as_ref().map_or(Some(now), |(_, at)| *at);
            let took = span(until.unwrap_or(now).ms_since(began));
            line.push(Style::Dim, format!("  {took}"));
        }
        line.push(Style::Dim, format!("  ({})", self.root));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const START: &str = "2026-01-31T12:00:00Z";

    fn at(seconds: u64) -> Timestamp {
        Timestamp::parse(START).unwrap().plus_ms(seconds * 1000)
    }

    fn event(root: &str, task: &str, status: &str, seconds: u64) -> Value {
        json!({"root_task_id": root, "task_id": task, "status": status, "timestamp": at(seconds)})
    }

    fn shown(flows: &Flows, seconds: u64) -> Vec<String> {
        let lines = flows.lines(10, at(seconds));
        lines.iter().map(Text::letters).collect()
    }

    #[test]
    fn a_flow_is_one_line_with_its_counts() {
        let mut flows = Flows::default();
        flows.take(&event("r", "r", "in_progress", 0));
        flows.take(&event("r", "a", "completed", 1));
        assert_eq!(flows.unread(10).collect::<Vec<_>>(), ["r"]);
        let node = |id: &str, status: &str| json!({"task": {"id": id, "name": format!("the {id}"), "status": status}});
        let mut tree = node("r", "pending");
        tree["children"] = json!([node("a", "pending"), node("b", "pending")]);
        flows.read("r", Some(&tree));
        assert_eq!(flows.unread(10).count(), 0);
        assert_eq!(
            shown(&flows, 5),
            [
                "1 flow seen, 1 running",
                "▸ the r  3 tasks: 1 completed, 1 running, 1 pending  5.0 s  (r)"
            ],
            "what events said is newer than the tree"
        );

        let mut end = event("r", "r", "failed", 7);
        end["final"] = true.into();
        end["run"] = json!({"state": "failed"});
        flows.take(&end);
        flows.take(&event("s", "s", "pending", 8));
        assert_eq!(
            shown(&flows, 60),
            [
                "2 flows seen, 0 running",
                "· …  1 task: 1 pending  52 s  (s)",
                "✗ the r  3 tasks: 1 completed, 1 pending, 1 failed  7.0 s  (r)"
            ]
        );
        assert_eq!(
            flows.lines(2, at(60)).len(),
            2,
            "as many as there is room for"
        );
    }

    #[test]
    fn flows_that_have_ended_make_room_first() {
        let mut flows = Flows::default();
        let mut end = event("ended", "ended", "completed", 0);
        end["final"] = true.into();
        flows.take(&event("first", "first", "in_progress", 0));
        flows.take(&end);
        for n in 2..=FLOWS_MAX {
            let root = n.to_string();
            flows.take(&event(&root, &root, "in_progress", 0));
        }
        assert_eq!(flows.flows.len(), FLOWS_MAX);
        assert!(flows.places.contains_key("first") && !flows.places.contains_key("ended"));
        flows.take(&event("one more", "x", "in_progress", 0));
        assert!(!flows.places.contains_key("first"));
        assert_eq!(flows.places.len(), FLOWS_MAX);
    }
}

//! The recorded events, from `events export`.

use crate::program;
use crate::server::Folder;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// An event as it was exported.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its place in the log, from 1.
    pub position: u64,
    /// The id of its flow.
    pub flow: String,
    /// Its place in the flow, from 1.
    pub version: u64,
    /// When it was recorded, in microseconds since 1970.
    pub micros: i64,
    /// The name of its type.
    pub kind: String,
    /// Its members.
    pub data: Value,
}

impl Event {
    /// A member of its data as text.
    pub fn text(&self, member: &str) -> &str {
        self.data[member].as_str().unwrap_or_default()
    }

    /// The id of its task; empty if it is about none.
    pub fn task(&self) -> &str {
        self.text("task_id")
    }
}

/// The whole log; works beside a running server and after one was killed.
pub async fn export(folder: &Folder) -> Vec<Event> {
    let command = ["events", "export"].map(str::to_owned).into_iter();
    let text = program::run(command.chain(folder.storage())).await.done();
    let events = program::events_of(&text);
    let events = events.filter(|line| !line.starts_with("{\"dropped\""));
    events.map(parse).collect()
}

fn parse(line: &str) -> Event {
    let mut value: Value = serde_json::from_str(line).unwrap();
    let text = |member: &str| value[member].as_str().unwrap().to_owned();
    let time =
        chrono::DateTime::parse_from_rfc3339(value["recorded_at"].as_str().unwrap()).unwrap();
    Event {
        position: value["position"].as_u64().unwrap(),
        flow: text("flow_id"),
        version: value["version"].as_u64().unwrap(),
        micros: time.timestamp_micros(),
        kind: text("kind"),
        data: value["data"].take(),
    }
}

/// Positions and versions have no gaps.
pub fn assert_dense(events: &[Event]) {
    let mut versions: HashMap<&str, u64> = HashMap::new();
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event.position, index as u64 + 1);
        let version = versions.entry(&event.flow).or_default();
        *version += 1;
        assert_eq!(event.version, *version, "{event:?}");
    }
}

/// No task started before each of its dependencies had ended as it must; no attempt started twice,
/// out of order, or ended twice; what waits for a person is answered once before it goes on.
pub fn assert_started_in_order(events: &[Event]) {
    let mut waits: HashMap<&str, Vec<(&str, bool)>> = HashMap::new();
    let mut status: HashMap<&str, &str> = HashMap::new();
    let mut attempts: HashMap<&str, u64> = HashMap::new();
    let mut ended: HashSet<(&str, u64)> = HashSet::new();
    for event in events {
        let task = event.task();
        match event.kind.as_str() {
            "TaskCreated" | "DependenciesChanged" => {
                let list = event.data["dependencies"].as_array().into_iter().flatten();
                let list =
                    list.map(|d| (d["id"].as_str().unwrap(), d["required"].as_bool().unwrap()));
                waits.insert(task, list.collect());
            }
            "TaskStarted" => {
                for (dependency, required) in &waits[task] {
                    let found = status.get(dependency).copied().unwrap_or("pending");
                    let good = found == "completed"
                        || (!required && matches!(found, "failed" | "cancelled"));
                    assert!(good, "{task} started while {dependency} was {found}");
                }
                let attempt = event.data["attempt"].as_u64().unwrap();
                assert_eq!(
                    attempts.insert(task, attempt).unwrap_or(0) + 1,
                    attempt,
                    "{event:?}"
                );
                status.insert(task, "in_progress");
            }
            "TaskCompleted" | "TaskFailed" => {
                let attempt = event.data["attempt"].as_u64().unwrap();
                assert!(ended.insert((task, attempt)), "ended twice: {event:?}");
                let known = status.get(task).copied();
                // The time of a task may pass while it waits.
                let waits = known == Some("suspended") && event.kind == "TaskFailed";
                let ends = waits || matches!(known, Some("in_progress" | "answered"));
                assert!(ends, "{known:?}: {event:?}");
                status.insert(
                    task,
                    if event.kind == "TaskCompleted" {
                        "completed"
                    } else {
                        "failed"
                    },
                );
            }
            "TaskCancelled" => {
                status.insert(task, "cancelled");
            }
            "TaskRequeued" => {
                let known = status.insert(task, "pending");
                let again = matches!(known, Some("failed" | "answered"));
                assert!(again, "{known:?}: {event:?}");
            }
            "TaskSuspended" => {
                let known = status.insert(task, "suspended");
                assert_eq!(known, Some("in_progress"), "{event:?}");
            }
            "TaskAnswered" | "TaskSuspensionExpired" => {
                let known = status.insert(task, "answered");
                assert_eq!(known, Some("suspended"), "{event:?}");
            }
            _ => {}
        }
    }
}

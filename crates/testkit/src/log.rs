//! The recorded events, from `events export`.

use crate::program;
use crate::server::Folder;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};

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
    /// The JSON members of the event.
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
    let mut events = Vec::new();
    read(folder, |event| events.push(event)).await;
    events
}

/// The same, one event after the other: for logs that are too long to be kept.
pub async fn read(folder: &Folder, mut each: impl FnMut(Event)) {
    let mut command = program::command();
    command.args(["events", "export"]).args(folder.storage());
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut is_whole = false;
    while let Some(line) = lines.next_line().await.unwrap() {
        assert!(!is_whole, "behind the end: {line}");
        is_whole = line.starts_with("{\"end\":");
        if !is_whole && !line.starts_with("{\"dropped\"") {
            each(parse(&line));
        }
    }
    let status = child.wait().await.unwrap();
    assert!(status.success() && is_whole, "{status}");
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
    let mut dense = Dense::default();
    events.iter().for_each(|event| dense.check(event));
}

/// No task started before each of its dependencies had ended as it must; no attempt started twice,
/// out of order, or ended twice; what waits for a person is answered once before it goes on.
pub fn assert_started_in_order(events: &[Event]) {
    let mut started = Started::default();
    events.iter().for_each(|event| started.check(event));
}

/// [`assert_dense`], one event after the other.
#[derive(Debug, Default)]
pub struct Dense {
    position: u64,
    versions: HashMap<String, u64>,
}

impl Dense {
    /// The next event.
    pub fn check(&mut self, event: &Event) {
        self.position += 1;
        assert_eq!(event.position, self.position);
        let version = match self.versions.get_mut(&event.flow) {
            Some(version) => version,
            None => self.versions.entry(event.flow.clone()).or_default(),
        };
        *version += 1;
        assert_eq!(event.version, *version, "{event:?}");
    }
}

/// [`assert_started_in_order`], one event after the other.
#[derive(Debug, Default)]
pub struct Started {
    tasks: HashMap<String, Standing>,
}

/// What is known of a task.
#[derive(Debug, Default)]
struct Standing {
    /// The tasks that it waits for, and whether they must complete.
    waits: Vec<(String, bool)>,
    status: Option<&'static str>,
    attempt: u64,
    ended: HashSet<u64>,
}

impl Started {
    /// The next event.
    pub fn check(&mut self, event: &Event) {
        let attempt = || event.data["attempt"].as_u64().unwrap();
        match event.kind.as_str() {
            "TaskCreated" | "DependenciesChanged" => {
                let list = event.data["dependencies"].as_array().into_iter().flatten();
                let waits = list.map(|d| {
                    let id = d["id"].as_str().unwrap().to_owned();
                    (id, d["required"].as_bool().unwrap())
                });
                self.of(event).waits = waits.collect();
            }
            "TaskStarted" => {
                for (dependency, required) in &self.tasks[event.task()].waits {
                    let found = self.tasks.get(dependency).and_then(|it| it.status);
                    let found = found.unwrap_or("pending");
                    let good = found == "completed"
                        || (!required && matches!(found, "failed" | "cancelled"));
                    let task = event.task();
                    assert!(good, "{task} started while {dependency} was {found}");
                }
                let task = self.of(event);
                task.attempt += 1;
                assert_eq!(task.attempt, attempt(), "{event:?}");
                task.status = Some("in_progress");
            }
            "TaskCompleted" | "TaskFailed" => {
                let is_completed = event.kind == "TaskCompleted";
                let task = self.of(event);
                let first = task.ended.insert(attempt());
                assert!(first, "ended twice: {event:?}");
                // The time of a task may pass while it waits.
                let waits = task.status == Some("suspended") && !is_completed;
                let ends = waits || matches!(task.status, Some("in_progress" | "answered"));
                assert!(ends, "{:?}: {event:?}", task.status);
                task.status = Some(if is_completed { "completed" } else { "failed" });
            }
            "TaskCancelled" => self.of(event).status = Some("cancelled"),
            "TaskRequeued" => {
                let known = self.of(event).status.replace("pending");
                let again = matches!(known, Some("failed" | "answered"));
                assert!(again, "{known:?}: {event:?}");
            }
            "TaskSuspended" => {
                let known = self.of(event).status.replace("suspended");
                assert_eq!(known, Some("in_progress"), "{event:?}");
            }
            "TaskAnswered" | "TaskSuspensionExpired" => {
                let known = self.of(event).status.replace("answered");
                assert_eq!(known, Some("suspended"), "{event:?}");
            }
            _ => {}
        }
    }

    fn of(&mut self, event: &Event) -> &mut Standing {
        if !self.tasks.contains_key(event.task()) {
            self.tasks
                .insert(event.task().to_owned(), Standing::default());
        }
        self.tasks.get_mut(event.task()).unwrap()
    }
}

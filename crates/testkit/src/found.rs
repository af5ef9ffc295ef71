//! Compares the log with the tasks of all clients.

use crate::log::Event;
use std::collections::HashMap;

/// A task in the log.
#[derive(Debug, Default)]
pub struct FoundTask {
    /// Its last name.
    pub name: String,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Whether it was deleted.
    pub deleted: bool,
}

/// What the log says of all clients' tasks.
#[derive(Debug, Default)]
pub struct Found {
    /// By id.
    pub tasks: HashMap<String, FoundTask>,
    /// Tasks created under each mark.
    pub created: HashMap<String, usize>,
    /// Flows with tasks of each mark.
    pub flows: HashMap<String, Vec<String>>,
    /// Runs, and whether they have ended.
    pub runs: HashMap<String, bool>,
    /// Names given by `TaskRenamed`, and how often.
    pub renamed: HashMap<String, usize>,
}

impl Found {
    /// What these events say; a run that begins or ends twice is a failure.
    pub fn in_log(events: &[Event]) -> Self {
        let mut found = Self::default();
        for event in events {
            let task = event.task().to_owned();
            match event.kind.as_str() {
                "TaskCreated" => {
                    let name = event.text("name").to_owned();
                    let mark = name.split_inclusive('.').next().unwrap().to_owned();
                    *found.created.entry(mark.clone()).or_default() += 1;
                    let flows = found.flows.entry(mark).or_default();
                    if !flows.contains(&event.flow) {
                        flows.push(event.flow.clone());
                    }
                    found.tasks.insert(
                        task,
                        FoundTask {
                            name,
                            ..FoundTask::default()
                        },
                    );
                }
                "TaskRenamed" => {
                    let name = event.text("name").to_owned();
                    *found.renamed.entry(name.clone()).or_default() += 1;
                    found.tasks.get_mut(&task).unwrap().name = name;
                }
                "TaskCancelled" => found.tasks.get_mut(&task).unwrap().cancelled = true,
                "TaskDeleted" => found.tasks.get_mut(&task).unwrap().deleted = true,
                "RunStarted" => {
                    assert!(
                        found
                            .runs
                            .insert(event.text("run_id").to_owned(), false)
                            .is_none(),
                        "{event:?}"
                    );
                }
                "RunEnded" => {
                    let before = found.runs.insert(event.text("run_id").to_owned(), true);
                    assert_eq!(before, Some(false), "a run ends once: {event:?}");
                }
                _ => {}
            }
        }
        found
    }
}

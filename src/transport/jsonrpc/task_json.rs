//! The protocol's JSON for a task. Payloads are copied as text, never parsed again.
//! spec: data-model / Task Schema, with our own members behind the protocol's.

use super::replies::LineageJson;
use crate::application::api::views::{Blocker, RunView, TaskRow, TaskView};
use crate::application::api::{Lineage, Moment, Page, Then};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// A task object.
#[derive(Debug, Clone, Copy)]
pub struct TaskJson<'a>(pub &'a TaskView);

/// A task object with the moment that it shows.
#[derive(Debug, Clone, Copy)]
pub struct ThenJson<'a>(pub &'a Then);

/// A task object made of the task's own row alone.
#[derive(Debug, Clone, Copy)]
pub struct RowJson<'a>(pub &'a TaskRow);

/// The result of `tasks.list`.
#[derive(Debug, Clone, Copy)]
pub struct PageJson<'a>(pub &'a Page);

/// The JSON of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunJson<'a>(pub &'a RunView);

/// The last event that an answer about the past contains.
#[derive(Debug, Clone, Copy)]
pub(super) struct MomentJson(pub(super) Moment);

struct BlockersJson<'a>(&'a [Blocker]);
struct BlockerJson<'a>(&'a Blocker);
struct TasksJson<'a>(&'a [TaskView]);

/// A task with what its latest attempt worked on.
#[derive(Debug)]
pub struct WithInputJson<'a>(pub &'a TaskView, pub Option<&'a Lineage>);

impl Serialize for TaskJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        members(self.0, &mut map)?;
        map.end()
    }
}

impl Serialize for ThenJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        members(&self.0.task, &mut map)?;
        map.serialize_entry("as_of", &MomentJson(self.0.as_of))?;
        map.end()
    }
}

impl Serialize for WithInputJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        members(self.0, &mut map)?;
        if let Some(lineage) = self.1 {
            if let Some(input) = &lineage.input {
                map.serialize_entry("attempt_input", input)?;
            }
            map.serialize_entry("lineage", &LineageJson(&lineage.origins))?;
        }
        map.end()
    }
}

impl Serialize for RowJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        row_members(self.0, &mut map)?;
        map.end()
    }
}

fn members<M: SerializeMap>(task: &TaskView, map: &mut M) -> Result<(), M::Error> {
    row_members(task.row.as_ref(), map)?;
    if !task.blocked_by.is_empty() {
        map.serialize_entry("blocked_by", &BlockersJson(&task.blocked_by))?;
    }
    if task.skipped {
        map.serialize_entry("skipped", &true)?;
    }
    if let Some(run) = &task.run {
        map.serialize_entry("run", &RunJson(run))?;
    }
    Ok(())
}

fn row_members<M: SerializeMap>(row: &TaskRow, map: &mut M) -> Result<(), M::Error> {
    map.serialize_entry("id", &row.id)?;
    map.serialize_entry("parent_id", &row.parent_id)?;
    map.serialize_entry("user_id", &row.user_id)?;
    map.serialize_entry("name", &row.name)?;
    map.serialize_entry("status", &row.status)?;
    map.serialize_entry("priority", &row.priority)?;
    map.serialize_entry("inputs", &row.inputs)?;
    map.serialize_entry("schemas", &row.schemas)?;
    map.serialize_entry("params", &row.params)?;
    map.serialize_entry("result", &row.result)?;
    map.serialize_entry("error", &row.error)?;
    map.serialize_entry("dependencies", &row.dependencies)?;
    map.serialize_entry("progress", &row.progress)?;
    map.serialize_entry("created_at", &row.created_at)?;
    map.serialize_entry("started_at", &row.started_at)?;
    map.serialize_entry("updated_at", &row.updated_at)?;
    map.serialize_entry("completed_at", &row.completed_at)?;
    map.serialize_entry("root_task_id", &row.flow_id)?;
    map.serialize_entry("attempt", &row.attempt)?;
    if let Some(at) = row.start_at {
        map.serialize_entry("start_at", &at)?;
    }
    if let Some(at) = row.next_attempt_at {
        map.serialize_entry("next_attempt_at", &at)?;
    }
    if let Some(suspension) = &row.suspension {
        map.serialize_entry("suspension", suspension)?;
    }
    if !row.labels.is_empty() {
        map.serialize_entry("labels", &row.labels)?;
    }
    Ok(())
}

impl Serialize for BlockersJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(BlockerJson))
    }
}

impl Serialize for BlockerJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("id", &self.0.id)?;
        map.serialize_entry("status", &self.0.status)?;
        map.end()
    }
}

impl Serialize for RunJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.0.id)?;
        map.serialize_entry("state", &self.0.state)?;
        map.serialize_entry("counts", &self.0.counts)?;
        if let Some(skipped) = self.0.skipped() {
            map.serialize_entry("skipped", &skipped)?;
        }
        map.end()
    }
}

impl Serialize for MomentJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("position", &self.0.position)?;
        map.serialize_entry("time", &self.0.time)?;
        map.end()
    }
}

impl Serialize for TasksJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(TaskJson))
    }
}

impl Serialize for PageJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let page = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("tasks", &TasksJson(&page.tasks))?;
        map.serialize_entry("total", &page.total)?;
        map.serialize_entry("limit", &page.limit)?;
        map.serialize_entry("offset", &page.offset)?;
        if let Some(cursor) = page.next_cursor {
            map.serialize_entry("next_cursor", &cursor.to_string())?;
        }
        map.end()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;
    use taskledger_domain::flow::{RunState, StatusCounts};
    use taskledger_domain::task::{Priority, Progress, Status};
    use taskledger_domain::testing::{START, id};
    use taskledger_domain::{Payload, RunId};

    /// A pending task with this name, at the root of a flow.
    pub(in crate::transport::jsonrpc) fn view(name: &str) -> TaskView {
        TaskView::plain(TaskRow {
            id: id(name),
            flow_id: id(name).as_flow(),
            ordinal: 0,
            parent_id: None,
            user_id: None,
            owner: None,
            name: Arc::from(name),
            status: Status::Pending,
            priority: Priority::NORMAL,
            inputs: Payload::parse(r#"{"z": 1.0, "a":[ ]}"#).unwrap(),
            schemas: None,
            params: None,
            method: None,
            start_at: None,
            deadline: None,
            result: None,
            error: None,
            dependencies: Vec::new(),
            progress: Progress::ZERO,
            created_at: START,
            started_at: None,
            updated_at: START,
            completed_at: None,
            attempt: 0,
            run_id: None,
            next_attempt_at: None,
            suspension: None,
            created_position: 1,
            position: 1,
            child_count: 0,
            child_progress_sum: 0,
            labels: taskledger_domain::task::Labels::default(),
        })
    }

    #[test]
    fn a_task_shows_all_members_of_the_protocol_and_payloads_as_they_came() {
        let name = "root \"quoted\"";
        let text = serde_json::to_string(&TaskJson(&view(name))).unwrap();
        assert!(text.contains(r#""inputs":{"z": 1.0, "a":[ ]},"#), "{text}");
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = json!({
            "id": id(name), "parent_id": null, "user_id": null, "name": name, "status": "pending",
            "priority": 2, "inputs": {"z": 1.0, "a": []}, "schemas": null, "params": null,
            "result": null, "error": null, "dependencies": [], "progress": 0.0, "created_at": START,
            "started_at": null, "updated_at": START, "completed_at": null, "root_task_id": id(name),
            "attempt": 0,
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn what_other_rows_say_stands_behind_the_task() {
        let mut view = view("root");
        view.blocked_by = vec![Blocker {
            id: id("first"),
            status: Status::Failed,
        }];
        view.run = Some(RunView {
            id: RunId(id("run").0),
            state: RunState::Running,
            counts: StatusCounts {
                pending: 1,
                failed: 1,
                ..StatusCounts::default()
            },
        });
        view.skipped = true;
        let as_of = Moment {
            position: 7,
            time: START,
        };
        let plain = serde_json::to_string(&TaskJson(&view)).unwrap();
        let then = Then { task: view, as_of };
        let text = serde_json::to_string(&ThenJson(&then)).unwrap();
        let (first, run) = (id("first"), id("run"));
        let expected = format!(
            r#""attempt":0,"blocked_by":[{{"id":"{first}","status":"failed"}}],"skipped":true,"run":{{"id":"{run}","state":"running","counts":{{"pending":1,"in_progress":0,"completed":0,"failed":1,"cancelled":0}}}}"#
        );
        assert!(plain.ends_with(&format!("{expected}}}")), "{plain}");
        let moment = format!(r#""as_of":{{"position":7,"time":"{START}"}}"#);
        assert!(text.ends_with(&format!("{expected},{moment}}}")), "{text}");
    }
}

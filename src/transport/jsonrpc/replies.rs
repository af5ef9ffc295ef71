//! Writes replies of the application as results of JSON-RPC methods. Members stand in alphabetical order, as they
//! always have.

pub(super) mod a2a;
mod explained;
mod history;
mod lineage;
mod people;
mod schedules;
mod secrets;
mod subscribed;
mod system;
mod tokens;
mod work;
mod workflows;

pub(super) use history::events_page;
pub(super) use schedules::{run_by_hand, schedule_deleted, schedule_shown, schedules};
pub(super) use secrets::{secret, secret_deleted, secrets};
pub(super) use subscribed::subscribed;
pub(super) use system::{draining, executors, health, rebuild_started};
pub(super) use tokens::{audit_page, created_token, denied, token, token_page, whoami};
pub(crate) use work::ClaimJson;
pub(super) use work::{claims, drained, method, methods, undeclared, workers};
pub(super) use workflows::{
    compared_workflows, fault, kept_workflow, kept_workflows, played, saved_workflow, workflow,
    workflow_deleted, workflow_events, workflow_report, workflow_schemas,
};

pub(super) use lineage::LineageJson;

use super::text::raw;
use crate::application::api::{Copied, Created, Reply, Started, TaskIds, Warning};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use taskledger_domain::flow::WillRun;
use taskledger_domain::task::Status;
use taskledger_domain::{RunId, TaskId};

/// The result of a call that concerns a flow. Cost: O(size).
#[must_use]
pub fn reply(reply: &Reply) -> Box<RawValue> {
    match reply {
        Reply::Created(created) => created_tasks(created),
        Reply::Started(started) => started_run(started),
        Reply::Updated { task, status } => raw(&UpdatedTask {
            id: *task,
            status: status.map_or("ok", Status::as_str),
        }),
        Reply::Deleted => raw(&Success { success: true }),
        Reply::Cancelled { task } => raw(&CancelledTask {
            status: Status::Cancelled.as_str(),
            task_id: *task,
        }),
        Reply::Copied(copied) => copied_task(copied),
        Reply::Explained(explained) => explained::explained(explained),
        Reply::Progress(progress) => workflows::workflow_progress(progress),
        Reply::History(page) => history::page(page),
        // A claim is answered by `work::claims`, which shows the tasks too; the others are between nodes, or of other
        // doors.
        Reply::Claimed(begun) => raw(begun),
        Reply::OfRun(done) => raw(done),
        Reply::Hinted => raw(&()),
        Reply::HeldHere(held) => raw(held),
        Reply::TasksHeld(tasks) => raw(tasks),
        Reply::MethodFigures(figures) => raw(figures),
        Reply::Renewed(renewed) => work::renewed(renewed),
        Reply::Ended(ended) => work::ended(ended),
        Reply::Suspended(suspended) => people::suspended(suspended),
        Reply::Responded(responded) => people::responded(responded),
        Reply::Sibling(sibling) => work::sibling(sibling),
        Reply::Lease(lease) => raw(lease),
    }
}

/// The same result with warnings, if there are some. Cost: O(size) then.
#[must_use]
pub fn with_warnings(result: Box<RawValue>, warnings: &[Warning]) -> Box<RawValue> {
    if warnings.is_empty() {
        return result;
    }
    match serde_json::from_str::<BTreeMap<&str, &RawValue>>(result.get()) {
        Ok(mut members) => {
            let warnings = raw(&warnings);
            members.insert("warnings", &warnings);
            raw(&members)
        }
        // The results of these calls are objects.
        Err(_) => result,
    }
}

#[derive(Serialize)]
struct Success {
    success: bool,
}

#[derive(Serialize)]
struct UpdatedTask {
    id: TaskId,
    status: &'static str,
}

#[derive(Serialize)]
struct CancelledTask {
    status: &'static str,
    task_id: TaskId,
}

fn created_tasks(created: &Created) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Result<'a> {
        id: TaskId,
        status: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        task_ids: Option<Ids<'a>>,
    }
    raw(&Result {
        id: created.task,
        status: Status::Pending.as_str(),
        task_ids: created.task_ids.as_ref().map(Ids),
    })
}

fn started_run(started: &Started) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Result<'a> {
        root_task_id: TaskId,
        run_id: RunId,
        status: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        task_id: Option<TaskId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        task_ids: Option<Ids<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        will_run: Option<&'a WillRun>,
    }
    raw(&Result {
        root_task_id: started.root,
        run_id: started.run,
        status: "started",
        task_id: started.task,
        task_ids: started.task.is_none().then_some(Ids(&started.task_ids)),
        will_run: started.task.map(|_| &started.will_run),
    })
}

fn copied_task(copied: &Copied) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Dropped {
        id: TaskId,
        required: bool,
        task_id: TaskId,
    }
    #[derive(Serialize)]
    struct Result {
        copied_task_id: TaskId,
        dropped_dependencies: Vec<Dropped>,
        original_task_id: TaskId,
        status: &'static str,
        task_ids: BTreeMap<TaskId, TaskId>,
    }
    let dropped = copied.dropped.iter().map(|it| Dropped {
        id: it.on,
        required: it.required,
        task_id: it.task,
    });
    raw(&Result {
        copied_task_id: copied.copy,
        dropped_dependencies: dropped.collect(),
        original_task_id: copied.original,
        status: Status::Pending.as_str(),
        task_ids: copied.task_ids.iter().copied().collect(),
    })
}

/// Ids by the names that the caller gave, in the order of these.
struct Ids<'a>(&'a TaskIds);

impl Serialize for Ids<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let by_name: BTreeMap<&str, TaskId> =
            self.0.iter().map(|(name, id)| (&**name, *id)).collect();
        serializer.collect_map(by_name)
    }
}

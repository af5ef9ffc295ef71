//! Which flow a call is for, and whether the ids that it chooses are free.

use super::App;
use super::error::Error;
use serde_json::Value;
use taskledger_domain::flow::{Archived, Event, Kind, Rejection};
use taskledger_domain::task::call::{Fresh, ResolvedTasks, TaskList};
use taskledger_domain::violation::Violation;
use taskledger_domain::{FlowId, Recorded, TaskId, Version};

impl App {
    /// A new id; that of a new flow is one that this node decides about, if it can be.
    pub(super) fn fresh(&self, place: Fresh) -> TaskId {
        let clock = &self.clock;
        TaskId(match place {
            Fresh::Root => self.flows.ownership().mint(&|| clock.uuid()),
            Fresh::Below => clock.uuid(),
        })
    }

    /// The flow of a stored task, named in the member `field`.
    pub(super) async fn flow_of(&self, field: &str, task: TaskId) -> Result<FlowId, Error> {
        self.directory
            .flow_of(task)
            .await?
            .ok_or_else(|| Rejection::not_found(field, task).into())
    }

    /// Why a task that was looked for in its flow is not there. Cost: one look at the log.
    pub(super) async fn missing(&self, field: &str, task: TaskId, flow: FlowId) -> Error {
        match self.archived(flow).await {
            Ok(Some(archived)) => Rejection::archived(field, task, &archived).into(),
            Ok(None) => Rejection::not_found(field, task).into(),
            Err(error) => error,
        }
    }

    /// Where a flow has gone, if it was archived. Cost: one look at the log.
    pub(super) async fn archived(&self, flow: FlowId) -> Result<Option<Archived>, Error> {
        let last = self
            .store
            .read_stream_back(flow, Version::MAX, 1, usize::MAX);
        let last = last.await?;
        Ok(last.first().and_then(|recorded| archived(recorded)))
    }

    /// The flow that new tasks begin or join.
    pub(super) async fn flow_for(&self, resolved: &ResolvedTasks) -> Result<FlowId, Error> {
        let Some(parent) = resolved.joins else {
            return Ok(resolved.tasks[0].id.as_flow());
        };
        match self.directory.flow_of(parent).await? {
            Some(flow) => Ok(flow),
            None => {
                let actual = Value::String(parent.to_string());
                let fault = Violation::of(
                    "parent_id",
                    "Parent task not found",
                    "the id of a stored task",
                    &actual,
                );
                Err(Rejection::one(Kind::InvalidParent, fault).into())
            }
        }
    }

    /// Refuses ids of the caller's choice that a task has or ever had. Asked before the tasks are
    /// put into a tree: what is wrong in itself is told before faults of the tree.
    pub(super) async fn taken(
        &self,
        list: &TaskList,
        reason: &str,
        expected: &str,
    ) -> Result<Vec<Violation>, Error> {
        let mut taken = Vec::new();
        for (path, id) in list.chosen_ids() {
            if self.directory.flow_of(id).await?.is_some() {
                let path: Vec<_> = path.iter().cloned().chain(["id".into()]).collect();
                let actual = Value::String(id.to_string());
                taken.push(Violation::new(&path, reason, expected, &actual));
            }
        }
        Ok(taken)
    }

    /// `tasks.execute` with tasks starts a flow of its own.
    pub(super) fn refuse_stored_parent(resolved: &ResolvedTasks) -> Result<(), Error> {
        if let Some(parent) = resolved.joins {
            let expected = "a parent in this call; create tasks in a stored flow with tasks.create, then use task_id";
            let task = resolved.tasks.iter().find(|t| t.parent == Some(parent));
            let path = task.map(|t| t.path.clone()).unwrap_or_default();
            let path: Vec<_> = path.into_iter().chain(["parent_id".into()]).collect();
            let actual = Value::String(parent.to_string());
            let fault = Violation::new(&path, "Parent is not in this call", expected, &actual);
            return Err(Rejection::one(Kind::InvalidParent, fault).into());
        }
        Ok(())
    }
}

/// What the last event of an archived flow says.
pub(super) fn archived(recorded: &Recorded) -> Option<Archived> {
    let Event::FlowArchived(copy) = &*recorded.event else {
        return None;
    };
    Some(Archived {
        at: recorded.time,
        copy: copy.clone(),
    })
}

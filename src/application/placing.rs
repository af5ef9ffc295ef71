//! Which flow a call is for, and whether the ids that it chooses are free.

use super::App;
use super::error::Error;
use serde_json::Value;
use taskledger_domain::flow::{Kind, Rejection};
use taskledger_domain::task::call::ResolvedTasks;
use taskledger_domain::violation::Violation;
use taskledger_domain::{FlowId, TaskId};

impl App {
    /// The flow of a stored task, named in the member `field`.
    pub(super) async fn flow_of(&self, field: &str, task: TaskId) -> Result<FlowId, Error> {
        self.directory
            .flow_of(task)
            .await?
            .ok_or_else(|| Rejection::not_found(field, task).into())
    }

    /// The flow that new tasks begin or join.
    pub(super) async fn flow_for(&self, resolved: &ResolvedTasks) -> Result<FlowId, Error> {
        self.refuse_taken(
            resolved,
            "Id is taken",
            "an id that no task has or ever had",
        )
        .await?;
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

    /// Refuses ids of the caller's choice that a task has or ever had.
    async fn refuse_taken(
        &self,
        resolved: &ResolvedTasks,
        reason: &str,
        expected: &str,
    ) -> Result<(), Error> {
        let mut taken = Vec::new();
        for &id in &resolved.chosen_ids {
            if self.directory.flow_of(id).await?.is_some() {
                let task = resolved.tasks.iter().find(|t| t.id == id);
                let path = task.map(|t| t.path.clone()).unwrap_or_default();
                let path: Vec<_> = path.into_iter().chain(["id".into()]).collect();
                let actual = Value::String(id.to_string());
                taken.push(Violation::new(&path, reason, expected, &actual));
            }
        }
        if taken.is_empty() {
            Ok(())
        } else {
            Err(Error::invalid(taken))
        }
    }

    /// `tasks.execute` with tasks starts a flow of its own.
    pub(super) async fn refuse_stored(&self, resolved: &ResolvedTasks) -> Result<(), Error> {
        let expected = "a new id; use task_id to run a stored task";
        self.refuse_taken(resolved, "Task is stored already", expected)
            .await?;
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

//! `tasks.copy`: reads the source flow at one version and writes only the target.
//! spec: interface / tasks.copy

use super::App;
use super::caller::Caller;
use super::commands::{Answer, raw};
use super::error::{Error, Failure};
use super::facts;
use super::idempotency::AnswerOf;
use super::mailbox::Begins;
use super::sending::engine_metadata;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::flow::{
    Command, Dependency, Flow, Kind, Rejection, Specification, TaskSummary,
};
use taskledger_domain::task::call::NewTask;
use taskledger_domain::violation::Violation;
use taskledger_domain::{FlowId, TaskId, Version};

/// Bytes of inputs, schemas and params in one copy: below what one append may hold.
const COPY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Tasks whose originals are read at once.
const CHUNK_TASKS: usize = 500;

/// What is copied, without payloads.
struct Plan {
    tasks: Vec<TaskSummary>,
}

impl Plan {
    fn of(flow: &Flow, task: TaskId, copy_children: bool) -> Option<Self> {
        let ids = flow.copy_set(task, copy_children)?;
        Some(Self {
            tasks: ids.into_iter().filter_map(|id| flow.task(id)).collect(),
        })
    }
}

impl App {
    /// `tasks.copy`: a new flow, or with `parent` a subtree of an existing one.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn copy(
        &self,
        caller: Caller,
        task: TaskId,
        copy_children: bool,
        parent: Option<TaskId>,
    ) -> Answer {
        self.once(
            &caller,
            "tasks.copy",
            self.copy_task(caller.clone(), task, copy_children, parent),
        )
        .await
    }

    async fn copy_task(
        &self,
        caller: Caller,
        task: TaskId,
        copy_children: bool,
        parent: Option<TaskId>,
    ) -> Answer {
        let source = self.flow_of("task_id", task).await?;
        let target = match parent {
            None => None,
            Some(parent) => Some(self.directory.flow_of(parent).await?.ok_or_else(|| {
                let actual = Value::String(parent.to_string());
                let fault = Violation::of(
                    "parent_id",
                    "Parent task not found",
                    "the id of a stored task",
                    &actual,
                );
                Error::from(Rejection::one(Kind::InvalidParent, fault))
            })?),
        };
        let plan = self
            .flows
            .look(source, engine_metadata(), move |flow| {
                Plan::of(flow, task, copy_children)
            })
            .await?;
        let plan = plan.ok_or_else(|| Rejection::not_found("task_id", task))?;
        let originals = self.read_originals(source, &plan).await?;
        let ids: HashMap<TaskId, TaskId> = plan
            .tasks
            .iter()
            .map(|t| (t.id, TaskId(self.clock.uuid())))
            .collect();
        let copied = ids[&task];
        let mut dropped = Vec::new();
        let mut tasks = Vec::with_capacity(plan.tasks.len());
        for (summary, (name, specification)) in plan.tasks.iter().zip(originals) {
            let mut dependencies = Vec::with_capacity(summary.dependencies.len());
            for dependency in &summary.dependencies {
                match ids.get(&dependency.id) {
                    Some(id) => dependencies.push(Dependency { id: *id, required: dependency.required }),
                    None if target == Some(source) => dependencies.push(*dependency),
                    None => dropped.push(json!({"task_id": ids[&summary.id], "id": dependency.id, "required": dependency.required})),
                }
            }
            let above = if summary.id == task {
                parent
            } else {
                Some(
                    summary
                        .parent
                        .and_then(|p| ids.get(&p).copied())
                        .unwrap_or(copied),
                )
            };
            tasks.push(NewTask {
                id: ids[&summary.id],
                parent: above,
                name,
                user_id: summary.user_id.clone(),
                priority: summary.priority,
                dependencies,
                specification,
                copied_from: Some(summary.id),
                path: Vec::new(),
            });
        }
        let task_ids: serde_json::Map<String, Value> = plan
            .tasks
            .iter()
            .map(|t| (t.id.to_string(), json!(ids[&t.id])))
            .collect();
        let answer: AnswerOf = Arc::new(move |_| {
            raw(&json!({
                "original_task_id": task,
                "copied_task_id": copied,
                "status": "pending",
                "task_ids": task_ids,
                "dropped_dependencies": dropped,
            }))
        });
        let flow = target.unwrap_or(copied.as_flow());
        let begins = if target.is_some() {
            Begins::No
        } else {
            Begins::Minted
        };
        self.command(
            caller,
            "tasks.copy",
            flow,
            Command::Create(tasks),
            begins,
            answer,
        )
        .await
    }

    /// Names and specifications, in the plan's order.
    async fn read_originals(
        &self,
        flow: FlowId,
        plan: &Plan,
    ) -> Result<Vec<(String, Specification)>, Error> {
        let broken = |version: Version| {
            Failure::Broken(format!(
                "event {version} of flow {flow} is not what it should be"
            ))
        };
        let mut originals = Vec::with_capacity(plan.tasks.len());
        let mut bytes = 0;
        for tasks in plan.tasks.chunks(CHUNK_TASKS) {
            let versions: Vec<Version> =
                tasks.iter().flat_map(|t| [t.spec_at, t.name_at]).collect();
            let events = self.store.read_versions(flow, &versions).await?;
            for (pair, versions) in events.chunks(2).zip(versions.chunks(2)) {
                let specification = pair.first().and_then(|e| facts::specification(&e.event));
                let specification = specification.ok_or_else(|| broken(versions[0]))?;
                let name = pair.get(1).and_then(|e| facts::name(&e.event));
                let name = name.ok_or_else(|| broken(versions[1]))?;
                bytes += specification.bytes();
                originals.push((name.to_owned(), specification.clone()));
            }
            if bytes > COPY_BYTES_MAX {
                let expected = format!("tasks of at most {COPY_BYTES_MAX} bytes of JSON in all");
                let fault = Violation::of(
                    "task_id",
                    "Copy is too large",
                    expected,
                    &Value::from(bytes),
                );
                return Err(Error::invalid(vec![fault]));
            }
        }
        Ok(originals)
    }
}

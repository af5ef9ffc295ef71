//! `tasks.copy`: reads the source flow at one version and writes only the target.
//! spec: interface / tasks.copy

use super::App;
use super::api::{Copied, DroppedDependency, Reply};
use super::authorize::UseCase;
use super::context::Context;
use super::error::{Error, Failure};
use super::facts;
use super::guard::sees;
use super::idempotency::{Key, ReplyOf};
use super::mailbox::Begins;
use super::sending::{Sending, engine_metadata};
use crate::runtime::maybe_block_in_place;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_auth::Kind;
use taskledger_domain::flow::{
    Argument, Command, Dependency, Flow, ParentFault, Refusal, Specification, TaskSummary,
};
use taskledger_domain::task::Labels;
use taskledger_domain::task::call::{Fresh, NewTask};
use taskledger_domain::task::wiring;
use taskledger_domain::violation::Violation;
use taskledger_domain::{FlowId, TaskId, Version};

/// Bytes of inputs, schemas and params in one copy: below what one append may hold.
const COPY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Tasks whose originals are read at once.
const CHUNK_TASKS: usize = 500;

/// What is copied, without payloads.
struct Plan {
    tasks: Vec<TaskSummary>,
    /// The owner of the originals.
    owner: Option<String>,
}

impl Plan {
    fn of(flow: &Flow, task: TaskId, copy_children: bool) -> Option<Self> {
        let ids = flow.copy_set(task, copy_children)?;
        Some(Self {
            tasks: ids.into_iter().filter_map(|id| flow.task(id)).collect(),
            owner: flow.owner().map(str::to_owned),
        })
    }

    /// The new tasks. `originals` are the names, specifications and labels in the plan's order, `ids` the
    /// new ids. Cost: O(tasks and their dependencies).
    fn copies(
        &self,
        originals: Vec<Original>,
        ids: &HashMap<TaskId, TaskId>,
        target: Destination,
    ) -> Copies {
        let mut dropped = Vec::new();
        let mut tasks = Vec::with_capacity(self.tasks.len());
        for (summary, original) in self.tasks.iter().zip(originals) {
            let Original {
                name,
                specification,
                labels,
            } = original;
            // Nobody published the copy.
            let specification = specification.unpublished();
            let specification = wiring::copied(specification, |id| ids.get(&id).copied());
            let mut dependencies = Vec::with_capacity(summary.dependencies.len());
            for dependency in &summary.dependencies {
                match ids.get(&dependency.id) {
                    Some(id) => dependencies.push(Dependency {
                        id: *id,
                        when: dependency.when,
                    }),
                    None if target.same_flow => dependencies.push(*dependency),
                    None => dropped.push(DroppedDependency {
                        task: ids[&summary.id],
                        on: dependency.id,
                        required: dependency.when.is_required(),
                    }),
                }
            }
            let around = || summary.parent.and_then(|p| ids.get(&p).copied());
            let above = if summary.id == target.task {
                target.parent
            } else {
                Some(around().unwrap_or(ids[&target.task]))
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
                labels,
            });
        }
        Copies { tasks, dropped }
    }
}

/// What the events of an original hold.
struct Original {
    name: String,
    specification: Specification,
    labels: Labels,
}

/// Where a copy goes.
#[derive(Clone, Copy)]
struct Destination {
    /// The original that was asked for.
    task: TaskId,
    /// What its copy hangs under.
    parent: Option<TaskId>,
    /// Whether the copies stay in the flow of the originals.
    same_flow: bool,
}

/// What becomes of a plan.
struct Copies {
    tasks: Vec<NewTask>,
    /// Dependencies on tasks that the copies cannot see.
    dropped: Vec<DroppedDependency>,
}

impl App {
    /// Copies a task: a new flow, or with `parent` a subtree of an existing one.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn copy(
        &self,
        context: &Context,
        task: TaskId,
        copy_children: bool,
        parent: Option<TaskId>,
    ) -> Result<Reply, Error> {
        let key = Key::of(context, UseCase::CopyTasks);
        let key = key.as_ref();
        let copying = self.copy_task(context, key, task, copy_children, parent);
        self.once(key, copying).await
    }

    async fn copy_task(
        &self,
        context: &Context,
        key: Option<&Key>,
        task: TaskId,
        copy_children: bool,
        parent: Option<TaskId>,
    ) -> Result<Reply, Error> {
        let source = self.flow_of(Argument::Task, task).await?;
        let target = match parent {
            None => None,
            Some(parent) => {
                let target = self.flow_of_parent(parent).await?;
                let foreign = || Refusal::InvalidParent(vec![ParentFault::NotStored { parent }]);
                self.is_owned_here(context, target, foreign).await?;
                Some(target)
            }
        };
        let reach = context.caller.reach();
        let plan = self
            .flows
            .look_anywhere(source, engine_metadata(), move |flow| {
                let is_seen = sees(&reach, flow);
                is_seen
                    .then(|| Plan::of(flow, task, copy_children))
                    .flatten()
            })
            .await?;
        let Some(plan) = plan else {
            return Err(self.missing(context, Argument::Task, task, source).await);
        };
        // What a new task costs, whoever describes it.
        self.limits.further_tasks(context, plan.tasks.len())?;
        let originals = self.read_originals(source, &plan).await?;
        let ids: HashMap<TaskId, TaskId> = plan
            .tasks
            .iter()
            .map(|t| {
                (
                    t.id,
                    self.fresh(if t.id == task && target.is_none() {
                        Fresh::Root
                    } else {
                        Fresh::Below
                    }),
                )
            })
            .collect();
        let copied = ids[&task];
        let place = Destination {
            task,
            parent,
            same_flow: target == Some(source),
        };
        let Copies { mut tasks, dropped } =
            maybe_block_in_place(ids.len(), || plan.copies(originals, &ids, place));
        let is_known = match context.caller.kind() {
            Kind::Anonymous => false,
            Kind::User | Kind::Service => true,
        };
        if is_known && let Some(root) = tasks.iter_mut().find(|task| task.parent.is_none()) {
            // A label of the original would give the copy to somebody else, and that user's secrets to
            // whoever wrote the label.
            root.user_id.clone_from(&plan.owner);
        }
        self.admit(context, &mut tasks)?;
        let task_ids: Arc<[_]> = ids.into_iter().collect();
        let dropped: Arc<[_]> = dropped.into();
        let reply: ReplyOf = Arc::new(move |_| {
            Reply::Copied(Copied {
                original: task,
                copy: copied,
                task_ids: task_ids.clone(),
                dropped: dropped.clone(),
            })
        });
        let flow = target.unwrap_or(copied.as_flow());
        let begins = if target.is_some() {
            Begins::No
        } else {
            Begins::Minted
        };
        let command = Command::Create(tasks);
        let sending = Sending {
            flow,
            command,
            begins,
            reply,
            foreign: match parent {
                Some(parent) => Refusal::InvalidParent(vec![ParentFault::NotStored { parent }]),
                None => Refusal::not_found(Argument::Task, task),
            },
        };
        self.command(context, key, sending).await
    }

    /// Names, specifications and labels, in the plan's order.
    async fn read_originals(&self, flow: FlowId, plan: &Plan) -> Result<Vec<Original>, Error> {
        let broken = |version: Version| {
            Failure::Broken(format!(
                "event {version} of flow {flow} is not what it should be"
            ))
        };
        let mut originals = Vec::with_capacity(plan.tasks.len());
        let mut bytes = 0;
        for tasks in plan.tasks.chunks(CHUNK_TASKS) {
            // Where there are no labels, the name is read in their place.
            let labels_at = |t: &TaskSummary| match t.labels_at {
                0 => t.name_at,
                at => at,
            };
            let versions = |t: &TaskSummary| [t.spec_at, t.name_at, labels_at(t)];
            let wanted: Vec<Version> = tasks.iter().flat_map(versions).collect();
            let events = self.store.read_versions(flow, &wanted).await?;
            for ((task, found), wanted) in tasks.iter().zip(events.chunks(3)).zip(wanted.chunks(3))
            {
                let specification = found.first().and_then(|e| facts::specification(&e.event));
                let specification = specification.ok_or_else(|| broken(wanted[0]))?;
                let name = found.get(1).and_then(|e| facts::name(&e.event));
                let name = name.ok_or_else(|| broken(wanted[1]))?;
                let labels = match task.labels_at {
                    0 => Labels::default(),
                    at => {
                        let labels = found.get(2).and_then(|e| facts::labels(&e.event));
                        labels.ok_or_else(|| broken(at))?.clone()
                    }
                };
                bytes += specification.bytes() + labels.bytes();
                originals.push(Original {
                    name: name.to_owned(),
                    specification: specification.clone(),
                    labels,
                });
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

//! The state-changing calls: each becomes one command for one flow.

use super::App;
use super::api::{Created, Reply, Started, Target, TaskIds};
use super::authorize::UseCase;
use super::context::Context;
use super::error::{Error, Failure};
use super::facts;
use super::idempotency::{Key, ReplyOf};
use super::mailbox::Begins;
use super::sending::{Sending, engine_metadata};
use crate::runtime::maybe_block_in_place;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;
use taskledger_domain::flow::{
    Command, Done, Execute, Kind, Rejection, RunKind, Specification, Update,
};
use taskledger_domain::limits;
use taskledger_domain::task::call::{ResolvedTasks, TaskList, resolve_dependencies, stored_ref};
use taskledger_domain::task::spec::Updates;
use taskledger_domain::violation::Violation;
use taskledger_domain::{CallbackId, FlowId, RunId, TaskId, Version};

/// Times that an update is built again because the specification changed under it.
const UPDATE_ROUNDS_MAX: usize = 8;

/// The options of an execution.
#[derive(Debug, Clone, Copy)]
pub struct ExecuteOptions {
    /// Whether tasks may wait for an executor that does not exist yet.
    pub allow_unknown_executors: bool,
    /// Milliseconds that they wait.
    pub executor_wait_ms: u64,
    /// Where the caller wants to be told of the run.
    pub callback: Option<CallbackId>,
}

impl Default for ExecuteOptions {
    fn default() -> Self {
        Self {
            allow_unknown_executors: false,
            executor_wait_ms: limits::EXECUTOR_WAIT_MS_DEFAULT,
            callback: None,
        }
    }
}

/// The answer to a read: the JSON of its result.
pub type Answer = Result<Box<RawValue>, Error>;

pub(super) fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("answers can always be written as JSON")
}

impl App {
    /// Creates tasks. spec: interface / tasks.create
    ///
    /// # Errors
    /// [`Error`].
    pub async fn create(&self, context: &Context, list: TaskList) -> Result<Reply, Error> {
        let key = Key::of(context, UseCase::CreateTasks, list.first_user());
        let key = key.as_ref();
        self.once(key, self.create_tasks(context, key, list)).await
    }

    async fn create_tasks(
        &self,
        context: &Context,
        key: Option<&Key>,
        list: TaskList,
    ) -> Result<Reply, Error> {
        let single = list.len() == 1;
        let expected = "an id that no task has or ever had";
        let taken = self.taken(&list, "Id is taken", expected).await?;
        let resolved = self.resolve(list, taken).await?;
        let flow = self.flow_for(&resolved).await?;
        let task = resolved.tasks[0].id;
        let words = maybe_block_in_place(resolved.tasks.len(), || resolved.words());
        let task_ids: Option<TaskIds> = (!single).then(|| Arc::from(resolved.aliases));
        let reply: ReplyOf = Arc::new(move |_| {
            let task_ids = task_ids.clone();
            Reply::Created(Created { task, task_ids })
        });
        let begins = match resolved.joins {
            Some(_) => Begins::No,
            None if resolved.chosen_ids.contains(&flow.root()) => Begins::Chosen,
            None => Begins::Minted,
        };
        let command = Command::Create(resolved.tasks);
        let sending = Sending {
            flow,
            command,
            begins,
            reply,
        };
        self.command(context, key, sending)
            .await
            .map_err(|error| error.retold(&words))
    }

    /// Runs tasks. spec: interface / tasks.execute
    ///
    /// # Errors
    /// [`Error`].
    pub async fn execute(
        &self,
        context: &Context,
        target: Target,
        options: ExecuteOptions,
    ) -> Result<Reply, Error> {
        match target {
            Target::Stored(task) => self.run(context, task, RunKind::Execute, options).await,
            Target::New(list) => {
                let key = Key::of(context, UseCase::ExecuteTasks, list.first_user());
                let key = key.as_ref();
                self.once(key, self.execute_tasks(context, key, list, options))
                    .await
            }
        }
    }

    async fn execute_tasks(
        &self,
        context: &Context,
        key: Option<&Key>,
        list: TaskList,
        options: ExecuteOptions,
    ) -> Result<Reply, Error> {
        let mut faults = list.passed_deadlines(self.clock.now());
        let expected = "a new id; use task_id to run a stored task";
        let taken = self.taken(&list, "Task is stored already", expected).await;
        faults.extend(taken?);
        let resolved = self.resolve(list, faults).await?;
        Self::refuse_stored_parent(&resolved)?;
        let task = resolved.tasks[0].id;
        let (flow, run) = (task.as_flow(), RunId(self.clock.uuid()));
        let words = maybe_block_in_place(resolved.tasks.len(), || resolved.words());
        let task_ids: TaskIds = Arc::from(resolved.aliases);
        let reply: ReplyOf = Arc::new(move |_| {
            Reply::Started(Started {
                root: task,
                task: None,
                run,
                task_ids: task_ids.clone(),
            })
        });
        let begins = if resolved.chosen_ids.contains(&task) {
            Begins::Chosen
        } else {
            Begins::Minted
        };
        let command = Command::Execute(Execute {
            create: resolved.tasks,
            task,
            kind: RunKind::Execute,
            run_id: run,
            allow_unknown_executors: options.allow_unknown_executors,
            executor_wait_ms: options.executor_wait_ms,
            callback: options.callback,
        });
        let sending = Sending {
            flow,
            command,
            begins,
            reply,
        };
        self.command(context, key, sending)
            .await
            .map_err(|error| error.retold(&words))
    }

    /// Runs a failed task, the pending tasks behind it and the failed groups around.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn retry(
        &self,
        context: &Context,
        task: TaskId,
        callback: Option<CallbackId>,
    ) -> Result<Reply, Error> {
        let options = ExecuteOptions {
            callback,
            ..ExecuteOptions::default()
        };
        self.run(context, task, RunKind::Retry, options).await
    }

    async fn run(
        &self,
        context: &Context,
        task: TaskId,
        kind: RunKind,
        options: ExecuteOptions,
    ) -> Result<Reply, Error> {
        let use_case = match kind {
            RunKind::Execute => UseCase::ExecuteTasks,
            RunKind::Retry => UseCase::RetryTask,
        };
        let flow = self.flow_of("task_id", task).await?;
        let run = RunId(self.clock.uuid());
        let root = flow.root();
        let reply: ReplyOf = Arc::new(move |_| {
            Reply::Started(Started {
                root,
                task: Some(task),
                run,
                task_ids: TaskIds::default(),
            })
        });
        let command = Command::Execute(Execute {
            create: Vec::new(),
            task,
            kind,
            run_id: run,
            allow_unknown_executors: options.allow_unknown_executors,
            executor_wait_ms: options.executor_wait_ms,
            callback: options.callback,
        });
        self.simple(context, use_case, flow, command, reply).await
    }

    /// Changes a task. spec: interface / tasks.update
    ///
    /// # Errors
    /// [`Error`].
    pub async fn update(
        &self,
        context: &Context,
        task: TaskId,
        updates: Updates,
    ) -> Result<Reply, Error> {
        let mut faults = Vec::new();
        let parent = match &updates.parent {
            None => None,
            Some(None) => Some(None),
            Some(Some(reference)) => stored_ref(reference)
                .map_err(|v| faults.push(v))
                .ok()
                .map(Some),
        };
        let dependencies = updates.dependencies.as_ref().and_then(|given| {
            resolve_dependencies(given, stored_ref)
                .map_err(|mut list| faults.append(&mut list))
                .ok()
        });
        if !faults.is_empty() {
            return Err(Error::invalid(faults));
        }
        let update = Update {
            task,
            updates,
            dependencies,
            parent,
            current: None,
        };
        let key = Key::of(context, UseCase::UpdateTask, None);
        let key = key.as_ref();
        self.once(key, self.update_task(context, key, update)).await
    }

    async fn update_task(
        &self,
        context: &Context,
        key: Option<&Key>,
        update: Update,
    ) -> Result<Reply, Error> {
        let Update { task, updates, .. } = &update;
        let task = *task;
        let flow = self.flow_of("task_id", task).await?;
        let respecifies =
            updates.inputs.is_some() || updates.schemas.is_some() || updates.params.is_some();
        let reply: ReplyOf = Arc::new(move |done| {
            let status = match done {
                Done::Status(status) => Some(status),
                Done::Ok => None,
            };
            Reply::Updated { task, status }
        });
        for _ in 0..UPDATE_ROUNDS_MAX {
            let current = if respecifies {
                Some(self.specification(flow, task).await?)
            } else {
                None
            };
            if let Some((_, specification)) = &current {
                let merged = specification.clone().updated(updates);
                let faults = self
                    .validation
                    .check(vec![(vec!["updates".into()], merged)])
                    .await;
                if !faults.is_empty() {
                    return Err(Error::invalid(faults));
                }
            }
            let command = Command::Update(Update {
                current,
                ..update.clone()
            });
            let sending = Sending {
                flow,
                command,
                begins: Begins::No,
                reply: reply.clone(),
            };
            match self.command(context, key, sending).await {
                Err(Error::Refused(rejection)) if rejection.kind == Kind::SpecificationMoved => {}
                other => return other,
            }
        }
        Err(Error::Busy {
            reason: "the task is being changed by others".to_owned(),
            retry_after_ms: 100,
        })
    }

    /// Deletes a pending task. spec: interface / tasks.delete
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete(
        &self,
        context: &Context,
        task: TaskId,
        cascade: bool,
    ) -> Result<Reply, Error> {
        let flow = self.flow_of("task_id", task).await?;
        let reply: ReplyOf = Arc::new(|_| Reply::Deleted);
        let command = Command::Delete { task, cascade };
        self.simple(context, UseCase::DeleteTasks, flow, command, reply)
            .await
    }

    /// Cancels a pending or running task. spec: interface / tasks.cancel
    ///
    /// # Errors
    /// [`Error`].
    pub async fn cancel(
        &self,
        context: &Context,
        task: TaskId,
        cascade: bool,
        reason: Option<String>,
    ) -> Result<Reply, Error> {
        let flow = self.flow_of("task_id", task).await?;
        let reply: ReplyOf = Arc::new(move |_| Reply::Cancelled { task });
        let command = Command::Cancel {
            task,
            cascade,
            reason,
        };
        self.simple(context, UseCase::CancelTasks, flow, command, reply)
            .await
    }

    /// Sends a command on stored tasks, once for each idempotency key.
    async fn simple(
        &self,
        context: &Context,
        use_case: UseCase,
        flow: FlowId,
        command: Command,
        reply: ReplyOf,
    ) -> Result<Reply, Error> {
        let key = Key::of(context, use_case, None);
        let key = key.as_ref();
        let sending = Sending {
            flow,
            command,
            begins: Begins::No,
            reply,
        };
        self.once(key, self.command(context, key, sending)).await
    }

    /// The tasks of a call with their references resolved and their inputs checked; what is invalid
    /// in either way, and the `faults` found before, are told in one answer, before what is wrong
    /// with the tree.
    async fn resolve(
        &self,
        list: TaskList,
        mut faults: Vec<Violation>,
    ) -> Result<ResolvedTasks, Error> {
        let specifications = list
            .specifications()
            .map(|(path, s)| (path.to_vec(), s.clone()))
            .collect();
        faults.extend(self.validation.check(specifications).await);
        let resolved = maybe_block_in_place(list.len(), || list.resolve(|root| self.fresh(root)));
        if faults.is_empty() {
            return Ok(resolved?);
        }
        if let Err(rejection) = resolved
            && rejection.kind == Kind::Invalid
        {
            faults.extend(rejection.violations);
        }
        faults.truncate(limits::VIOLATIONS_MAX);
        Err(Error::invalid(faults))
    }

    /// The current specification of a live task and the version of the event that holds it.
    async fn specification(
        &self,
        flow: FlowId,
        task: TaskId,
    ) -> Result<(Version, Specification), Error> {
        let at = self
            .flows
            .look(flow, engine_metadata(), move |state| {
                state.task(task).map(|t| t.spec_at)
            })
            .await?;
        let at = at.ok_or_else(|| Rejection::not_found("task_id", task))?;
        let events = self.store.read_versions(flow, &[at]).await?;
        let found = events.first().and_then(|e| facts::specification(&e.event));
        let broken =
            || Failure::Broken(format!("event {at} of flow {flow} holds no specification"));
        Ok((at, found.ok_or_else(broken)?.clone()))
    }
}

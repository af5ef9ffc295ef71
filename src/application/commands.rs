//! The state-changing calls: each becomes one command for one flow.

use super::App;
use super::caller::Caller;
use super::error::{Error, Failure};
use super::facts;
use super::idempotency::AnswerOf;
use super::mailbox::Begins;
use super::naming::CallNames;
use super::sending::engine_metadata;
use super::stretch::at_a_stretch;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use taskledger_domain::flow::{
    Argument, CallTask, Command, Done, Execute, Fault, Outdated, ReferenceAt, Refusal, RunKind,
    Specification, Update,
};
use taskledger_domain::limits;
use taskledger_domain::task::call::{ResolvedTasks, TaskList, resolve_dependencies};
use taskledger_domain::task::spec::{TaskRef, Updates};
use taskledger_domain::{CallbackId, FlowId, RunId, TaskId, Version};

/// Times that an update is built again because the specification changed under it.
const UPDATE_ROUNDS_MAX: usize = 8;

/// What `tasks.execute` runs.
#[derive(Debug, Clone)]
pub enum Target {
    /// New tasks.
    New(TaskList),
    /// A stored task.
    Stored(TaskId),
}

/// The options of `tasks.execute`.
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

/// The answer to a call: the JSON of its result.
pub type Answer = Result<Box<RawValue>, Error>;

pub(super) fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("answers can always be written as JSON")
}

impl App {
    /// `tasks.create`. spec: interface / tasks.create
    ///
    /// # Errors
    /// [`Error`].
    pub async fn create(&self, caller: Caller, list: TaskList) -> Answer {
        let caller = speaking_for(caller, &list);
        if list.is_faulty() {
            // Refused for certain: no key is looked at, as for other parameters that are wrong.
            return self.create_tasks(caller, list).await;
        }
        self.once(
            &caller,
            "tasks.create",
            self.create_tasks(caller.clone(), list),
        )
        .await
    }

    async fn create_tasks(&self, caller: Caller, list: TaskList) -> Answer {
        let single = list.len() == 1;
        let taken = self.taken(&list).await?.into_iter();
        let taken = taken.map(|(task, id)| Fault::IdTaken { task, id });
        let (resolved, names) = self.resolve(list, taken.collect()).await?;
        let flow = self.flow_for(&resolved).await?;
        let id = resolved.tasks[0].id;
        let names = Arc::new(names);
        let told = names.clone();
        let answer: AnswerOf = Arc::new(move |_| {
            let mut result = Map::new();
            result.insert("id".to_owned(), json!(id));
            result.insert("status".to_owned(), json!("pending"));
            if !single {
                result.insert("task_ids".to_owned(), Value::Object(told.task_ids()));
            }
            raw(&result)
        });
        let begins = match resolved.joins {
            Some(_) => Begins::No,
            None if resolved.chosen_ids.contains(&flow.root()) => Begins::Chosen,
            None => Begins::Minted,
        };
        let command = Command::Create(resolved.tasks);
        self.command(caller, "tasks.create", flow, command, begins, answer)
            .await
            .map_err(|error| error.with_names(&names))
    }

    /// `tasks.execute`. spec: interface / tasks.execute
    ///
    /// # Errors
    /// [`Error`].
    pub async fn execute(&self, caller: Caller, target: Target, options: ExecuteOptions) -> Answer {
        match target {
            Target::Stored(task) => {
                self.run(caller, "tasks.execute", task, RunKind::Execute, options)
                    .await
            }
            Target::New(list) => {
                let caller = speaking_for(caller, &list);
                // Whatever else is wrong, this is told with it.
                let unknown = if options.allow_unknown_executors {
                    Vec::new()
                } else {
                    self.validation.unknown_executors(&list)
                };
                let done = if list.is_faulty() {
                    self.execute_tasks(caller, list, options).await
                } else {
                    let executed = self.execute_tasks(caller.clone(), list, options);
                    self.once(&caller, "tasks.execute", executed).await
                };
                done.map_err(|error| error.beside(unknown))
            }
        }
    }

    async fn execute_tasks(
        &self,
        caller: Caller,
        list: TaskList,
        options: ExecuteOptions,
    ) -> Answer {
        let mut faults = list.passed_deadlines(self.clock.now());
        let taken = self.taken(&list).await?.into_iter();
        faults.extend(taken.map(|(task, id)| Fault::TaskStored { task, id }));
        let (resolved, names) = self.resolve(list, faults).await?;
        Self::refuse_stored_parent(&resolved).map_err(|error| error.with_names(&names))?;
        let task = resolved.tasks[0].id;
        let (flow, run_id) = (task.as_flow(), RunId(self.clock.uuid()));
        let names = Arc::new(names);
        let told = names.clone();
        let answer: AnswerOf = Arc::new(move |_| {
            raw(
                &json!({"root_task_id": task, "status": "started", "task_ids": told.task_ids(), "run_id": run_id}),
            )
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
            run_id,
            allow_unknown_executors: options.allow_unknown_executors,
            executor_wait_ms: options.executor_wait_ms,
            callback: options.callback,
        });
        self.command(caller, "tasks.execute", flow, command, begins, answer)
            .await
            .map_err(|error| error.with_names(&names))
    }

    /// `tasks.retry`: runs a failed task, the pending tasks behind it and the failed groups around.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn retry(
        &self,
        caller: Caller,
        task: TaskId,
        callback: Option<CallbackId>,
    ) -> Answer {
        let options = ExecuteOptions {
            callback,
            ..ExecuteOptions::default()
        };
        self.run(caller, "tasks.retry", task, RunKind::Retry, options)
            .await
    }

    async fn run(
        &self,
        caller: Caller,
        method: &'static str,
        task: TaskId,
        kind: RunKind,
        options: ExecuteOptions,
    ) -> Answer {
        let flow = self.flow_of(Argument::Task, task).await?;
        let run_id = RunId(self.clock.uuid());
        let root = flow.root();
        let answer: AnswerOf = Arc::new(move |_| {
            raw(
                &json!({"root_task_id": root, "task_id": task, "status": "started", "run_id": run_id}),
            )
        });
        let command = Command::Execute(Execute {
            create: Vec::new(),
            task,
            kind,
            run_id,
            allow_unknown_executors: options.allow_unknown_executors,
            executor_wait_ms: options.executor_wait_ms,
            callback: options.callback,
        });
        self.once(
            &caller,
            method,
            self.command(caller.clone(), method, flow, command, Begins::No, answer),
        )
        .await
    }

    /// `tasks.update`. spec: interface / tasks.update
    ///
    /// # Errors
    /// [`Error`].
    pub async fn update(&self, caller: Caller, task: TaskId, updates: Updates) -> Answer {
        let of = CallTask::Id(task);
        let stored = |reference: &TaskRef, at| {
            let text = || reference.text.clone();
            reference
                .id()
                .ok_or_else(|| Fault::MalformedId { at, text: text() })
        };
        let mut faults = Vec::new();
        let parent = match &updates.parent {
            None => None,
            Some(None) => Some(None),
            Some(Some(reference)) => stored(reference, ReferenceAt::Parent { of })
                .map_err(|fault| faults.push(fault))
                .ok()
                .map(Some),
        };
        let dependencies = updates.dependencies.as_ref().and_then(|given| {
            resolve_dependencies(of, given, stored)
                .map_err(|mut list| faults.append(&mut list))
                .ok()
        });
        let names = CallNames::of_update(task);
        if !faults.is_empty() {
            return Err(Error::invalid(faults).with_names(&names));
        }
        let update = Update {
            task,
            updates,
            dependencies,
            parent,
            current: None,
        };
        self.once(
            &caller,
            "tasks.update",
            self.update_task(caller.clone(), update),
        )
        .await
        .map_err(|error| error.with_names(&names))
    }

    async fn update_task(&self, caller: Caller, update: Update) -> Answer {
        let Update { task, updates, .. } = &update;
        let task = *task;
        let flow = self.flow_of(Argument::Task, task).await?;
        let respecifies =
            updates.inputs.is_some() || updates.schemas.is_some() || updates.params.is_some();
        let answer: AnswerOf =
            Arc::new(move |done| raw(&json!({"id": task, "status": status_of(done)})));
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
                    .check_call(vec![(vec!["updates".into()], merged)])
                    .await;
                if !faults.is_empty() {
                    return Err(Error::invalid(faults));
                }
            }
            let command = Command::Update(Update {
                current,
                ..update.clone()
            });
            match self
                .command(
                    caller.clone(),
                    "tasks.update",
                    flow,
                    command,
                    Begins::No,
                    answer.clone(),
                )
                .await
            {
                Err(Error::Outdated(Outdated::Specification)) => {}
                other => return other,
            }
        }
        Err(Error::Busy {
            reason: "the task is being changed by others".to_owned(),
            retry_after_ms: 100,
        })
    }

    /// `tasks.delete`. spec: interface / tasks.delete
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete(&self, caller: Caller, task: TaskId, cascade: bool) -> Answer {
        let flow = self.flow_of(Argument::Task, task).await?;
        let answer: AnswerOf = Arc::new(|_| raw(&json!({"success": true})));
        let command = Command::Delete { task, cascade };
        self.once(
            &caller,
            "tasks.delete",
            self.command(
                caller.clone(),
                "tasks.delete",
                flow,
                command,
                Begins::No,
                answer,
            ),
        )
        .await
    }

    /// `tasks.cancel`. spec: interface / tasks.cancel
    ///
    /// # Errors
    /// [`Error`].
    pub async fn cancel(
        &self,
        caller: Caller,
        task: TaskId,
        cascade: bool,
        reason: Option<String>,
    ) -> Answer {
        let flow = self.flow_of(Argument::Task, task).await?;
        let answer: AnswerOf =
            Arc::new(move |_| raw(&json!({"task_id": task, "status": "cancelled"})));
        let command = Command::Cancel {
            task,
            cascade,
            reason,
        };
        self.once(
            &caller,
            "tasks.cancel",
            self.command(
                caller.clone(),
                "tasks.cancel",
                flow,
                command,
                Begins::No,
                answer,
            ),
        )
        .await
    }

    /// The tasks of a call with their references resolved and their inputs checked; what is invalid
    /// in either way, what is wrong with the tasks by themselves, and the `faults` found before, are
    /// told in one answer, before what is wrong with the tree.
    async fn resolve(
        &self,
        mut list: TaskList,
        mut faults: Vec<Fault>,
    ) -> Result<(ResolvedTasks, CallNames), Error> {
        if list.faults().len() >= limits::VIOLATIONS_MAX {
            // There is no room for more, and not all tasks were read.
            return Err(Error::invalid(list.faults().to_vec()));
        }
        let own = list.faults().len();
        let specifications = list
            .specifications()
            .map(|(path, s)| (path.to_vec(), s.clone()))
            .collect();
        let violations = self.validation.check_call(specifications).await;
        faults.extend(violations.into_iter().map(Fault::Value));
        let (names, resolved) = at_a_stretch(list.len(), || {
            let names = CallNames::written_at(list.take_paths());
            (names, list.resolve(|root| self.fresh(root)))
        });
        let refusal = match resolved {
            Ok(mut resolved) if faults.is_empty() => {
                let names = names.resolved(&mut resolved);
                return Ok((resolved, names));
            }
            Err(Refusal::Invalid(mut all)) => {
                // Those of the tasks by themselves come first, those of references last.
                let references = all.split_off(own.min(all.len()));
                all.append(&mut faults);
                all.extend(references);
                all.truncate(limits::VIOLATIONS_MAX);
                Refusal::Invalid(all)
            }
            Err(refusal) if faults.is_empty() => refusal,
            Ok(_) | Err(_) => {
                faults.truncate(limits::VIOLATIONS_MAX);
                Refusal::Invalid(faults)
            }
        };
        Err(Error::from(refusal).with_names(&names))
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
        let at = at.ok_or_else(|| Refusal::not_found(Argument::Task, task))?;
        let events = self.store.read_versions(flow, &[at]).await?;
        let found = events.first().and_then(|e| facts::specification(&e.event));
        let broken =
            || Failure::Broken(format!("event {at} of flow {flow} holds no specification"));
        Ok((at, found.ok_or_else(broken)?.clone()))
    }
}

/// New tasks are created in the name of the user that the first of them names.
fn speaking_for(mut caller: Caller, list: &TaskList) -> Caller {
    if *caller.principal == *super::caller::ANONYMOUS
        && let Some(user) = list.first_user()
    {
        caller.principal = Arc::from(user);
    }
    caller
}

fn status_of(done: Done) -> &'static str {
    match done {
        Done::Status(status) => status.as_str(),
        Done::Ok => "ok",
    }
}

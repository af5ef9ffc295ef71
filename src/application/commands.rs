//! The calls that change state: each becomes one command for one flow.

mod together;
mod update;

use super::App;
use super::api::{Cancel, Created, IdCheck, Reply, Started, Target, TaskIds};
use super::authorize::UseCase;
use super::context::Context;
use super::defaults;
use super::error::{Error, Failure};
use super::facts;
use super::guard::sees;
use super::idempotency::{Key, ReplyOf};
use super::mailbox::Begins;
use super::naming::CallNames;
use super::sending::{Sending, engine_metadata};
use crate::runtime::maybe_block_in_place;
use std::sync::Arc;
use taskledger_domain::flow::{
    Argument, CallTask, Command, Done, Execute, Fault, Flow, Include, Kind, Outdated, ParentFault,
    ReferenceAt, Refusal, RunKind, RunOrigin, Specification, Update, WillRun,
};
use taskledger_domain::limits;
use taskledger_domain::task::call::{NewTask, ResolvedTasks, TaskList, resolve_dependencies};
use taskledger_domain::task::spec::{TaskRef, Updates};
use taskledger_domain::{CallbackId, FlowId, RunId, TaskId, Version};

/// Times that an update is built again because the specification changed under it.
const UPDATE_ROUNDS_MAX: usize = 8;

/// The options of an execution.
#[derive(Debug, Clone)]
pub struct ExecuteOptions {
    /// Whether tasks may wait for an executor that does not exist yet.
    pub allow_unknown_executors: bool,
    /// Milliseconds that they wait.
    pub executor_wait_ms: u64,
    /// Which failed tasks of a stored task run again.
    pub include: Include,
    /// Where the caller wants to be told of the run.
    pub callback: Option<CallbackId>,
    /// The message that it is begun by.
    pub origin: Option<Box<RunOrigin>>,
    /// When ids that the caller chose for new tasks are looked up.
    pub id_check: IdCheck,
}

impl Default for ExecuteOptions {
    fn default() -> Self {
        Self {
            allow_unknown_executors: false,
            executor_wait_ms: limits::EXECUTOR_WAIT_MS_DEFAULT,
            include: Include::Needed,
            callback: None,
            origin: None,
            id_check: IdCheck::First,
        }
    }
}

/// Where new tasks go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joining {
    /// Into the flow of a stored parent, if they name one.
    StoredParent,
    /// Always into a flow of their own.
    Nothing,
}

impl App {
    /// Creates tasks. spec: interface / tasks.create
    ///
    /// # Errors
    /// [`Error`].
    pub async fn create(&self, context: &Context, list: TaskList) -> Result<Reply, Error> {
        if list.is_faulty() {
            // Refused for certain: no key is looked at, as for other parameters that are wrong.
            return self.create_tasks(context, None, list).await;
        }
        let key = Key::of(context, UseCase::CreateTasks);
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
        let taken = self.taken(&list).await?.into_iter();
        let taken = taken.map(|(task, id)| Fault::IdTaken { task, id });
        let owner = self.owner_of_call(context, &list).await?;
        let taken = taken.collect();
        let joining = Joining::StoredParent;
        let resolved = self.resolve(context, owner.as_deref(), list, taken, joining);
        let (mut resolved, names) = resolved.await?;
        let flow = match self.flow_for(&resolved).await {
            Err(Error::Refused(_)) => {
                let refused =
                    self.refused_tasks(context, names, Vec::new(), Some(resolved), joining);
                return Err(refused.await);
            }
            found => found?,
        };
        let foreign = match resolved.joins {
            Some(parent) => Refusal::InvalidParent(vec![ParentFault::NotStored { parent }]),
            None => Refusal::FlowNotFound { flow },
        };
        if resolved.joins.is_some() {
            // Before anything else is refused, which would tell that there is such a flow.
            match self.is_owned_here(context, flow, || foreign.clone()).await {
                Err(Error::Refused(_)) => {
                    let refused =
                        self.refused_tasks(context, names, Vec::new(), Some(resolved), joining);
                    return Err(refused.await);
                }
                owned => owned.map_err(|error| error.with_names(&names))?,
            }
        }
        self.admit(context, &mut resolved.tasks)
            .map_err(|error| error.with_names(&names))?;
        let task = resolved.tasks[0].id;
        let task_ids = (!single).then(|| names.task_ids());
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
            foreign,
        };
        self.command(context, key, sending)
            .await
            .map_err(|error| error.with_names(&names))
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
                // Whatever else is wrong, this is told with it.
                let unknown = if options.allow_unknown_executors {
                    Vec::new()
                } else {
                    let owner = self.owner_of_call(context, &list).await?;
                    self.validation.unknown_executors(owner.as_deref(), &list)
                };
                let is_faulty = list.is_faulty();
                let key = Key::of(context, UseCase::ExecuteTasks);
                let key = key.filter(|_| !is_faulty);
                let key = key.as_ref();
                let executed = async {
                    let done = self.execute_tasks(context, key, list, options).await;
                    let named =
                        |error: Error| error.beside(unknown).naming(&*self.validation.executors());
                    done.map_err(named)
                };
                if is_faulty {
                    executed.await
                } else {
                    self.once(key, executed).await
                }
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
        if options.id_check == IdCheck::First {
            let taken = self.taken(&list).await?.into_iter();
            faults.extend(taken.map(|(task, id)| Fault::TaskStored { task, id }));
        }
        let owner = self.owner_of_call(context, &list).await?;
        let joining = Joining::Nothing;
        let resolved = self.resolve(context, owner.as_deref(), list, faults, joining);
        let (mut resolved, names) = resolved.await?;
        if resolved.joins.is_some() {
            let refused = self.refused_tasks(context, names, Vec::new(), Some(resolved), joining);
            return Err(refused.await);
        }
        self.admit(context, &mut resolved.tasks)
            .map_err(|error| error.with_names(&names))?;
        let task = resolved.tasks[0].id;
        let (flow, run) = (task.as_flow(), RunId(self.clock.uuid()));
        let task_ids = names.task_ids();
        let reply: ReplyOf = Arc::new(move |_| {
            Reply::Started(Started {
                will_run: WillRun::default(),
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
            include: Include::Needed,
            run_id: run,
            allow_unknown_executors: options.allow_unknown_executors,
            executor_wait_ms: options.executor_wait_ms,
            wait_bounds: self.wait_bounds,
            callback: options.callback,
            origin: options.origin,
        });
        let sending = Sending {
            flow,
            command,
            begins,
            reply,
            // Also one that is somebody else's: nobody has it twice.
            foreign: Refusal::invalid([Fault::IdTakenMeanwhile { id: task }]),
        };
        self.command(context, key, sending)
            .await
            .map_err(|error| error.with_names(&names))
    }

    /// Runs a failed task, the pending tasks behind it and the failed groups around.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn retry(
        &self,
        context: &Context,
        task: TaskId,
        include: Include,
        callback: Option<CallbackId>,
    ) -> Result<Reply, Error> {
        let options = ExecuteOptions {
            include,
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
        let flow = self.flow_of(Argument::Task, task).await?;
        let run = RunId(self.clock.uuid());
        let root = flow.root();
        let reply: ReplyOf = Arc::new(move |done| {
            Reply::Started(Started {
                will_run: begun(done),
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
            include: options.include,
            run_id: run,
            allow_unknown_executors: options.allow_unknown_executors,
            executor_wait_ms: options.executor_wait_ms,
            wait_bounds: self.wait_bounds,
            callback: options.callback,
            origin: options.origin,
        });
        let done = self
            .simple(context, use_case, (flow, task), command, reply)
            .await;
        done.map_err(|error| error.naming(&*self.validation.executors()))
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
        let flow = self.flow_of(Argument::Task, task).await?;
        let reply: ReplyOf = Arc::new(|_| Reply::Deleted);
        let command = Command::Delete { task, cascade };
        self.simple(context, UseCase::DeleteTasks, (flow, task), command, reply)
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
        let cancel = Cancel {
            task,
            cascade,
            reason,
            remarks: None,
        };
        self.cancel_remarked(context, cancel).await
    }

    /// The same, with what the worker of the task says beside it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn cancel_remarked(&self, context: &Context, cancel: Cancel) -> Result<Reply, Error> {
        let Cancel {
            task,
            cascade,
            reason,
            remarks,
        } = cancel;
        let flow = self.flow_of(Argument::Task, task).await?;
        let reply: ReplyOf = Arc::new(move |_| Reply::Cancelled { task });
        let command = Command::Cancel {
            task,
            cascade,
            reason,
        };
        let command = command.remarked(remarks);
        self.simple(context, UseCase::CancelTasks, (flow, task), command, reply)
            .await
    }

    /// Sends a command on stored tasks, once for each idempotency key.
    pub(super) async fn simple(
        &self,
        context: &Context,
        use_case: UseCase,
        (flow, task): (FlowId, TaskId),
        command: Command,
        reply: ReplyOf,
    ) -> Result<Reply, Error> {
        let key = Key::of(context, use_case);
        let key = key.as_ref();
        let sending = Sending {
            flow,
            command,
            begins: Begins::No,
            reply,
            foreign: Refusal::not_found(Argument::Task, task),
        };
        self.once(key, self.command(context, key, sending)).await
    }

    /// Refuses new tasks that `tasks.execute` would refuse, and stores nothing.
    ///
    /// # Errors
    /// [`Error`].
    pub(super) async fn check_new_tasks(
        &self,
        context: &Context,
        list: TaskList,
    ) -> Result<(), Error> {
        let faults = list.passed_deadlines(self.clock.now());
        let owner = self.owner_of_call(context, &list).await?;
        let joining = Joining::Nothing;
        let resolved = self.resolve(context, owner.as_deref(), list, faults, joining);
        let (mut resolved, names) = resolved.await?;
        let is_fit = Flow::default().refusals_of_new(&resolved.tasks).is_empty();
        if !is_fit {
            let refused = self.refused_tasks(context, names, Vec::new(), Some(resolved), joining);
            return Err(refused.await);
        }
        self.admit(context, &mut resolved.tasks)
            .map_err(|error| error.with_names(&names))
    }

    /// The tasks of a call with their references resolved and their inputs checked; what is invalid
    /// in either way, what is wrong with the tasks by themselves, the `faults` found before, and all that is wrong with
    /// the tree and with dependencies, are told in one answer.
    async fn resolve(
        &self,
        context: &Context,
        owner: Option<&str>,
        mut list: TaskList,
        mut faults: Vec<Fault>,
        joining: Joining,
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
        let violations = self.validation.check_call(owner, specifications).await;
        faults.extend(violations.into_iter().map(Fault::from));
        let (names, resolved) = maybe_block_in_place(list.len(), || {
            let names = CallNames::written_at(list.take_paths());
            (names, list.resolve(|root| self.fresh(root)))
        });
        let refused = match resolved {
            Ok(mut resolved) if faults.is_empty() => {
                let executors = self.validation.executors_for(owner);
                defaults::fill_in(&mut resolved.tasks, &*executors);
                let names = names.resolved(&mut resolved);
                return Ok((resolved, names));
            }
            Ok(mut resolved) => {
                let found = vec![Refusal::Invalid(faults)];
                let names = names.resolved(&mut resolved);
                self.refused_tasks(context, names, found, Some(resolved), joining)
                    .await
            }
            Err(unresolved) => {
                self.refused_unresolved(context, names, (unresolved, faults, own), joining)
                    .await
            }
        };
        Err(refused)
    }

    /// The current specification of a live task and the version of the event that holds it.
    async fn specification(
        &self,
        context: &Context,
        flow: FlowId,
        task: TaskId,
    ) -> Result<(Version, Specification, Option<Arc<str>>), Error> {
        let reach = context.caller.reach();
        let at = self
            .flows
            .look(flow, engine_metadata(), move |state| {
                let task = state.task(task).filter(|_| sees(&reach, state));
                task.map(|task| (task.spec_at, state.owner().map(Arc::<str>::from)))
            })
            .await?;
        let (at, owner) = at.ok_or_else(|| Refusal::not_found(Argument::Task, task))?;
        let events = self.store.read_versions(flow, &[at]).await?;
        let found = events.first().and_then(|e| facts::specification(&e.event));
        let broken =
            || Failure::Broken(format!("event {at} of flow {flow} holds no specification"));
        Ok((at, found.ok_or_else(broken)?.clone(), owner))
    }
}

/// The tasks that a run starts, from the effect of its command.
fn begun(done: Done) -> WillRun {
    match done {
        Done::Begun(will_run) => Arc::unwrap_or_clone(will_run),
        Done::Ok | Done::Status(_) | Done::ClaimRefused => WillRun::default(),
    }
}

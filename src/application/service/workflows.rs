//! Workflow documents: checks them, plays a run without running it, and creates the tasks of a run.

use super::Service;
use crate::application::api::workflows::{
    CreateWorkflow, CreatedWorkflow, Document, DryRun, Fault, PhaseTask, Played, Report,
    UnfitWorkflow, Workflow,
};
use crate::application::api::{
    COMMAND_EXECUTOR, Error, Execute, Failure, IdCheck, Reply, Request, Target,
};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use crate::application::sending::engine_metadata;
use serde_json::{Map, Value};
use std::collections::HashMap;
use taskledger_domain::flow::{Flow, Include};
use taskledger_domain::limits::{EXECUTOR_WAIT_MS_DEFAULT, VIOLATIONS_MAX};
use taskledger_domain::task::{Labels, Status, call};
use taskledger_domain::{TaskId, Violation};
use taskledger_workflows::{self as workflows, RunOf};

/// A document without errors.
pub(super) struct Read {
    pub(super) workflow: Workflow,
    /// What is probably a mistake.
    pub(super) warnings: Vec<Fault>,
}

/// How one run is to begin.
pub(super) struct Start {
    /// The method that was called: keys of its calls are its own, whether a run begins at once or not.
    pub(super) method: &'static str,
    /// Which version of a document that is kept.
    pub(super) saved_version: Option<u32>,
    pub(super) trigger: Map<String, Value>,
    pub(super) user_id: Option<String>,
    pub(super) execute: bool,
    /// Of the root.
    pub(super) labels: Labels,
}

impl Service {
    /// Every fault of a document. Cost: O(bytes).
    ///
    /// # Errors
    /// [`Error`]: the caller may not, or not now.
    pub async fn validate_workflow(
        &self,
        context: &Context,
        document: Document,
        strict: bool,
    ) -> Result<Report, Error> {
        self.admit(context, UseCase::ValidateWorkflow)?;
        reported(document, strict).await
    }

    /// Plays a run of a document with outputs that were made up, and stores nothing. Cost: O(size of the document, the
    /// trigger and all steps).
    ///
    /// # Errors
    /// [`Error`]; inside, why nothing can be played.
    pub async fn dry_run_workflow(
        &self,
        context: &Context,
        dry_run: DryRun,
    ) -> Result<Result<Played, UnfitWorkflow>, Error> {
        self.admit(context, UseCase::DryRunWorkflow)?;
        let read = match read(dry_run.document, dry_run.strict).await? {
            Ok(read) => read,
            Err(faults) => return Ok(Err(UnfitWorkflow::Document(faults))),
        };
        let playing = tokio::task::spawn_blocking(move || {
            let (trigger, outputs) = (dry_run.trigger.to_map(), dry_run.outputs.to_map());
            read.workflow.play(&trigger, &outputs)
        });
        let played = playing.await.map_err(|_| Failure::ShuttingDown)?;
        Ok(played.map_err(UnfitWorkflow::Unplayable))
    }

    /// Creates the tasks of one run, and begins it if that is asked for. One command, like `tasks.create` or
    /// `tasks.execute` with these tasks, whose scope is needed.
    ///
    /// # Errors
    /// [`Error`]; inside, why the document gives no tasks.
    pub async fn create_workflow(
        &self,
        context: &Context,
        create: CreateWorkflow,
    ) -> Result<Result<CreatedWorkflow, UnfitWorkflow>, Error> {
        // Before anything is read.
        self.access
            .authorize(context, use_case(create.execute), None)?;
        // Reading costs something even when it ends in faults.
        self.limits.rate(context, UseCase::ValidateWorkflow, 1)?;
        let start = Start {
            method: "workflows.create",
            saved_version: None,
            trigger: create.trigger.to_map(),
            user_id: create.user_id,
            execute: create.execute,
            labels: create.labels,
        };
        match read(create.document, create.strict).await? {
            Ok(read) => self.create_run(context, read, start).await,
            Err(faults) => Ok(Err(UnfitWorkflow::Document(faults))),
        }
    }

    /// The tasks of one run of a document.
    pub(super) async fn create_run(
        &self,
        context: &Context,
        Read {
            workflow,
            mut warnings,
        }: Read,
        start: Start,
    ) -> Result<Result<CreatedWorkflow, UnfitWorkflow>, Error> {
        let context = &context.keyed_as(start.method);
        warnings.extend(workflow.trigger_warnings(&start.trigger, &[]));
        let execute = start.execute;
        let (workflow, tasks) = match self.tasks_of(workflow, start).await? {
            Ok(made) => made,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let request = match execute {
            false => Request::Create(tasks),
            true => Request::Execute(Execute {
                target: Target::New(tasks),
                allow_unknown_executors: true,
                executor_wait_ms: EXECUTOR_WAIT_MS_DEFAULT,
                include: Include::Needed,
                id_check: IdCheck::First,
                callback: None,
            }),
        };
        let (reply, run_warnings) = Box::pin(self.call_with_warnings(context, request)).await?;
        let (root, run, ids) = match reply {
            Reply::Created(created) => (created.task, None, created.task_ids.unwrap_or_default()),
            Reply::Started(started) => (started.root, Some(started.run), started.task_ids),
            Reply::OfRun(_)
            | Reply::Updated { .. }
            | Reply::Deleted
            | Reply::Cancelled { .. }
            | Reply::Copied(_)
            | Reply::Explained(_)
            | Reply::Progress(_)
            | Reply::History(_)
            | Reply::Claimed(_)
            | Reply::Hinted
            | Reply::HeldHere(_)
            | Reply::TasksHeld(_)
            | Reply::MethodFigures(_)
            | Reply::Renewed(_)
            | Reply::Ended(_)
            | Reply::Suspended(_)
            | Reply::Responded(_)
            | Reply::Sibling(_)
            | Reply::Lease(_) => {
                return Err(Failure::Broken("no reply to new tasks".to_owned()).into());
            }
        };
        let statuses = self.statuses_of(root, ids.iter().map(|(_, id)| *id)).await;
        let ids: HashMap<&str, TaskId> = ids.iter().map(|(alias, id)| (&**alias, *id)).collect();
        let phases = workflow.phases.into_iter().enumerate();
        let phases = phases.map(|(i, phase)| {
            let id = ids.get(workflows::alias(i).as_str()).copied();
            let task = id.map(|id| PhaseTask {
                id,
                // As it was created, where nobody can say more.
                status: match &statuses {
                    Some(statuses) => statuses.get(&id).copied(),
                    None => Some(Status::Pending),
                },
            });
            (phase.name, task)
        });
        Ok(Ok(CreatedWorkflow {
            root,
            phases: phases.collect(),
            run,
            warnings,
            run_warnings,
            not_acted_on: workflow.not_acted_on,
        }))
    }
}

impl Service {
    /// The tasks of one run of a document, which nothing has created yet. Cost: O(size of document and trigger).
    pub(super) async fn tasks_of(
        &self,
        workflow: Workflow,
        start: Start,
    ) -> Result<Result<(Workflow, call::TaskList), UnfitWorkflow>, Error> {
        if let Err(unfit) = self.executors_on(&workflow) {
            return Ok(Err(unfit));
        }
        let making = tokio::task::spawn_blocking(move || {
            let tasks = made(&workflow, &start);
            (workflow, tasks)
        });
        let (workflow, made) = making.await.map_err(|_| Failure::ShuttingDown)?;
        Ok(made.map(|tasks| (workflow, tasks)))
    }

    /// The same as `tasks.execute` takes them.
    pub(super) async fn written_tasks_of(
        &self,
        workflow: Workflow,
        start: Start,
    ) -> Result<Result<Vec<Value>, UnfitWorkflow>, Error> {
        if let Err(unfit) = self.executors_on(&workflow) {
            return Ok(Err(unfit));
        }
        let making = tokio::task::spawn_blocking(move || written(&workflow, &start));
        making.await.map_err(|_| Failure::ShuttingDown.into())
    }

    /// Refuses phases of executors that are off.
    fn executors_on(&self, workflow: &Workflow) -> Result<(), UnfitWorkflow> {
        let executors = self.app.validation.executors();
        let off = switched_off(workflow, |method| executors.knows(method));
        match off.is_empty() {
            true => Ok(()),
            false => Err(UnfitWorkflow::Tasks(off)),
        }
    }
}

/// Phases of an executor that every server could have and this one was started without: no worker will ever ask for
/// its method. Cost: O(phases).
fn switched_off(workflow: &Workflow, knows: impl Fn(&str) -> bool) -> Vec<Violation> {
    let off = workflow
        .phases
        .iter()
        .filter(|phase| phase.assign == COMMAND_EXECUTOR && !knows(COMMAND_EXECUTOR));
    let faults = off.map(|phase| {
        let path = ["document", "workflow", &phase.name, "assign"].map(Into::into);
        let reason = "The executor is off on this server";
        let expected =
            "a server that was started with `--allow-command PROGRAM`, or the method of a worker";
        Violation::new(&path, reason, expected, &phase.assign.as_str().into())
    });
    faults.take(VIOLATIONS_MAX).collect()
}

impl Service {
    /// How tasks of a flow stand; `None` if that cannot be said now. Cost: O(tasks), and of a flow of another node that
    /// of loading it.
    async fn statuses_of(
        &self,
        root: TaskId,
        tasks: impl Iterator<Item = TaskId>,
    ) -> Option<HashMap<TaskId, Status>> {
        let tasks: Vec<TaskId> = tasks.collect();
        let look = move |flow: &Flow| -> HashMap<TaskId, Status> {
            let status = |id: &TaskId| Some((*id, flow.task(*id)?.status));
            tasks.iter().filter_map(status).collect()
        };
        let flows = &self.app.flows;
        let looked = flows.look_anywhere(root.as_flow(), engine_metadata(), look);
        let statuses = looked.await;
        statuses
            .inspect_err(
                |error| tracing::debug!(task.id = %root, %error, "a run is told without statuses"),
            )
            .ok()
    }
}

/// What creating the tasks of a run needs.
pub(super) const fn use_case(execute: bool) -> UseCase {
    match execute {
        true => UseCase::ExecuteTasks,
        false => UseCase::CreateTasks,
    }
}

async fn reported(document: Document, strict: bool) -> Result<Report, Error> {
    let reading = tokio::task::spawn_blocking(move || match &document {
        Document::Text(text) => workflows::read(text, strict),
        Document::Json(object) => workflows::read_json(&Value::Object(object.to_map()), strict),
    });
    reading.await.map_err(|_| Failure::ShuttingDown.into())
}

/// A document, or its errors. Cost: O(bytes).
pub(super) async fn read(
    document: Document,
    strict: bool,
) -> Result<Result<Read, Vec<Fault>>, Error> {
    let Report {
        errors,
        warnings,
        workflow,
    } = reported(document, strict).await?;
    Ok(match workflow {
        Some(workflow) => Ok(Read { workflow, warnings }),
        None => Err(errors),
    })
}

fn made(workflow: &Workflow, start: &Start) -> Result<call::TaskList, UnfitWorkflow> {
    let tasks = written(workflow, start)?;
    call::read_tasks(&Value::Array(tasks)).map_err(UnfitWorkflow::Tasks)
}

fn written(workflow: &Workflow, start: &Start) -> Result<Vec<Value>, UnfitWorkflow> {
    let mut tasks = workflow
        .tasks(&start.trigger, start.user_id.as_deref())
        .map_err(UnfitWorkflow::Trigger)?;
    if let (Some(root), Some(version)) = (tasks.first_mut(), start.saved_version) {
        RunOf::say_version(root, version);
    }
    if let Some(root) = tasks.first_mut().filter(|_| !start.labels.is_empty()) {
        let labels = serde_json::to_value(&start.labels);
        root["labels"] = labels.expect("texts can always be written as JSON");
    }
    Ok(tasks)
}

//! Workflow documents: what is wrong with one, and the tasks of a run.

use super::Service;
use crate::application::api::workflows::{
    CreateWorkflow, CreatedWorkflow, Document, Report, UnfitWorkflow, Workflow,
};
use crate::application::api::{Error, Execute, Failure, Reply, Request, Target};
use crate::application::authorize::{UseCase, authorize};
use crate::application::context::Context;
use serde_json::Value;
use std::collections::HashMap;
use taskledger_domain::TaskId;
use taskledger_domain::limits::EXECUTOR_WAIT_MS_DEFAULT;
use taskledger_domain::task::call;
use taskledger_workflows as workflows;

/// Tasks, or why there are none.
type Made = Result<(Workflow, Vec<workflows::Fault>, call::TaskList), UnfitWorkflow>;

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
        let reading = tokio::task::spawn_blocking(move || read(&document, strict));
        reading.await.map_err(|_| Failure::ShuttingDown.into())
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
        let use_case = match create.execute {
            true => UseCase::ExecuteTasks,
            false => UseCase::CreateTasks,
        };
        authorize(context, use_case)?;
        // Reading costs something even when it ends in faults.
        self.limits.rate(context, UseCase::ValidateWorkflow, 1)?;
        let execute = create.execute;
        let making = tokio::task::spawn_blocking(move || made(&create));
        let made = making.await.map_err(|_| Failure::ShuttingDown)?;
        let (workflow, warnings, tasks) = match made {
            Ok(made) => made,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let request = match execute {
            false => Request::Create(tasks),
            true => Request::Execute(Execute {
                target: Target::New(tasks),
                allow_unknown_executors: true,
                executor_wait_ms: EXECUTOR_WAIT_MS_DEFAULT,
                callback: None,
            }),
        };
        let (root, run, ids) = match self.call(context, request).await? {
            Reply::Created(created) => (created.task, None, created.task_ids.unwrap_or_default()),
            Reply::Started(started) => (started.root, Some(started.run), started.task_ids),
            Reply::Updated { .. }
            | Reply::Deleted
            | Reply::Cancelled { .. }
            | Reply::Copied(_)
            | Reply::Explained(_)
            | Reply::History(_)
            | Reply::Claimed(_)
            | Reply::Hinted
            | Reply::HeldHere(_)
            | Reply::MethodFigures(_)
            | Reply::Renewed(_)
            | Reply::Ended(_)
            | Reply::Suspended(_)
            | Reply::Responded(_)
            | Reply::Sibling(_) => {
                return Err(Failure::Broken("no reply to new tasks".to_owned()).into());
            }
        };
        let ids: HashMap<&str, TaskId> = ids.iter().map(|(alias, id)| (&**alias, *id)).collect();
        let phases = workflow.phases.into_iter().enumerate();
        let phases = phases.filter_map(|(i, phase)| {
            let id = ids.get(workflows::alias(i).as_str())?;
            Some((phase.name, *id))
        });
        Ok(Ok(CreatedWorkflow {
            root,
            phases: phases.collect(),
            run,
            warnings,
            not_acted_on: workflow.not_acted_on,
        }))
    }
}

fn read(document: &Document, strict: bool) -> Report {
    match document {
        Document::Text(text) => workflows::read(text, strict),
        Document::Json(value) => workflows::read_json(value, strict),
    }
}

fn made(create: &CreateWorkflow) -> Made {
    let Report {
        errors,
        warnings,
        workflow,
    } = read(&create.document, create.strict);
    let Some(workflow) = workflow else {
        return Err(UnfitWorkflow::Document(errors));
    };
    let tasks = workflow
        .tasks(&create.trigger, create.user_id.as_deref())
        .map_err(|error| UnfitWorkflow::Trigger(error.to_string()))?;
    let tasks = call::read_tasks(&Value::Array(tasks)).map_err(UnfitWorkflow::Tasks)?;
    Ok((workflow, warnings, tasks))
}

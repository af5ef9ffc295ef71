//! The methods `workflows.*`.

use super::super::dispatch::{Call, Changes, Method};
use super::super::error::RpcError;
use super::super::params::workflows::{
    create, delete, diff, dry_run, get, list, progress, run, save, schemas, validate, versions,
};
use super::super::reader::Parameters;
use super::super::{refusals, replies};
use super::{answer, boxed, called};
use crate::application::Service;
use crate::application::api::workflows::UnfitWorkflow;
use crate::application::api::{Error, Request};
use crate::transport::openrpc::about::workflows as about;
use serde_json::value::RawValue;

/// A result, or its refusal.
type Answer = Result<Box<RawValue>, RpcError>;

macro_rules! method {
    ($name:literal, $title:literal, $summary:literal, $params:ident, $changes:ident, $about:ident, $handler:ident) => {
        Method {
            name: $name,
            title: $title,
            summary: $summary,
            tags: &["workflow"],
            params: $params::Params::declared(),
            changes: Changes::$changes,
            about: about::$about(),
            handler: |service, call| boxed(async move { $handler(&service, &call).await }),
        }
    };
}

pub(super) fn methods() -> Vec<Method<Service>> {
    vec![
        method!(
            "workflows.validate",
            "Validate Workflow",
            "Say everything that is wrong with a workflow document",
            validate,
            Nothing,
            validate,
            validated
        ),
        method!(
            "workflows.dry_run",
            "Dry Run Workflow",
            "Play a run of a workflow document with made-up outputs",
            dry_run,
            Nothing,
            dry_run,
            played
        ),
        method!(
            "workflows.create",
            "Create Workflow",
            "Create the tasks of one run of a workflow document",
            create,
            Flows,
            create,
            created
        ),
        method!(
            "workflows.save",
            "Save Workflow",
            "Keep a workflow document by its name",
            save,
            Workflows,
            save,
            saved
        ),
        method!(
            "workflows.get",
            "Get Workflow",
            "Read a workflow document that is kept",
            get,
            Nothing,
            get,
            kept
        ),
        method!(
            "workflows.list",
            "List Workflows",
            "List the workflow documents that are kept",
            list,
            Nothing,
            list,
            names
        ),
        method!(
            "workflows.versions",
            "List Workflow Versions",
            "List what happened to a workflow document",
            versions,
            Nothing,
            versions,
            events
        ),
        method!(
            "workflows.diff",
            "Compare Workflows",
            "Say what is different between two versions of a workflow document",
            diff,
            Nothing,
            diff,
            compared
        ),
        method!(
            "workflows.delete",
            "Delete Workflow",
            "Delete all versions of a workflow document",
            delete,
            Workflows,
            delete,
            deleted
        ),
        method!(
            "workflows.run",
            "Run Workflow",
            "Create the tasks of a saved workflow document, and run them",
            run,
            Flows,
            run,
            run_of_kept
        ),
        method!(
            "workflows.schemas",
            "Workflow Schemas",
            "Say as JSON Schemas what phases of a workflow document take and give",
            schemas,
            Nothing,
            schemas,
            schemas_of
        ),
        method!(
            "workflows.progress",
            "Workflow Progress",
            "Show the progress of a run",
            progress,
            Nothing,
            progress,
            progress_of
        ),
    ]
}

/// What was found, or why it was not.
fn fit<T>(
    service: &Service,
    asked: Result<Result<T, UnfitWorkflow>, Error>,
) -> Result<T, RpcError> {
    answer(service, asked)?.map_err(|unfit| refusals::unfit_workflow(&unfit))
}

async fn validated(service: &Service, call: &Call) -> Answer {
    let p = validate::Params::read(&call.params)?;
    let report = service.validate_workflow(&call.context, p.document, p.strict);
    let report = answer(service, report.await)?;
    Ok(replies::workflow_report(&report))
}

async fn played(service: &Service, call: &Call) -> Answer {
    let p = dry_run::Params::read(&call.params)?;
    let played = service.dry_run_workflow(&call.context, p.0).await;
    Ok(replies::played(&fit(service, played)?))
}

async fn created(service: &Service, call: &Call) -> Answer {
    let p = create::Params::read(&call.params)?;
    let created = service.create_workflow(&call.context, p.0).await;
    Ok(replies::workflow(&fit(service, created)?, None))
}

async fn saved(service: &Service, call: &Call) -> Answer {
    let p = save::Params::read(&call.params)?;
    let saved = service.save_workflow(&call.context, p.0);
    Ok(replies::saved_workflow(&fit(service, saved.await)?))
}

async fn kept(service: &Service, call: &Call) -> Answer {
    let p = get::Params::read(&call.params)?;
    let found = service.kept_document(&call.context, p.kept, p.version);
    Ok(replies::kept_workflow(&fit(service, found.await)?))
}

async fn names(service: &Service, call: &Call) -> Answer {
    let p = list::Params::read(&call.params)?;
    let found = service.kept_workflows(&call.context, p.owner, p.after, p.limit);
    let found = answer(service, found.await)?;
    Ok(replies::kept_workflows(&found, p.limit))
}

async fn events(service: &Service, call: &Call) -> Answer {
    let p = versions::Params::read(&call.params)?;
    let found = service.workflow_versions(&call.context, p.kept, p.before, p.limit);
    let found = answer(service, found.await)?;
    Ok(replies::workflow_events(&found, p.limit))
}

async fn compared(service: &Service, call: &Call) -> Answer {
    let p = diff::Params::read(&call.params)?;
    let compared = service.compare_workflows(&call.context, p.kept, p.from, p.newer);
    Ok(replies::compared_workflows(&fit(service, compared.await)?))
}

async fn deleted(service: &Service, call: &Call) -> Answer {
    let p = delete::Params::read(&call.params)?;
    let deleted = service.delete_workflow(&call.context, p.kept, p.expected_version);
    Ok(replies::workflow_deleted(fit(service, deleted.await)?))
}

async fn run_of_kept(service: &Service, call: &Call) -> Answer {
    let p = run::Params::read(&call.params)?;
    let created = service.run_workflow(&call.context, p.0).await;
    let (version, created) = fit(service, created)?;
    Ok(replies::workflow(&created, Some(version)))
}

async fn schemas_of(service: &Service, call: &Call) -> Answer {
    let p = schemas::Params::read(&call.params)?;
    let schemas = service.workflow_schemas(&call.context, p.which, p.phase);
    Ok(replies::workflow_schemas(&fit(service, schemas.await)?))
}

async fn progress_of(service: &Service, call: &Call) -> Answer {
    let p = progress::Params::read(&call.params)?;
    called(service, &call.context, Request::Overview(p.root_task_id)).await
}

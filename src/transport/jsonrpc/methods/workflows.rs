//! The methods `workflows.*`.

use super::super::dispatch::{Call, Changes, Method};
use super::super::error::RpcError;
use super::super::params::workflows::{create, validate};
use super::super::reader::Parameters;
use super::super::{refusals, replies};
use super::{answer, boxed};
use crate::application::Service;
use crate::application::api::workflows::CreateWorkflow;
use crate::transport::openrpc::about;
use serde_json::value::RawValue;

pub(super) fn methods() -> Vec<Method<Service>> {
    vec![
        Method {
            name: "workflows.validate",
            title: "Validate Workflow",
            summary: "Say everything that is wrong with a workflow document",
            tags: &["workflow"],
            params: validate::Params::questions(),
            changes: Changes::Nothing,
            about: about::workflows::validate(),
            handler: |service, call| {
                boxed(async move {
                    let p = validate::Params::read(&call.params)?;
                    let report = service.validate_workflow(&call.context, p.document, p.strict);
                    let report = answer(&service, report.await)?;
                    Ok::<_, RpcError>(replies::workflow_report(&report))
                })
            },
        },
        Method {
            name: "workflows.create",
            title: "Create Workflow",
            summary: "Create the tasks of one run of a workflow document",
            tags: &["workflow", "create"],
            params: create::Params::questions(),
            changes: Changes::Flows,
            about: about::workflows::create(),
            handler: |service, call| boxed(async move { created(&service, &call).await }),
        },
    ]
}

async fn created(service: &Service, call: &Call) -> Result<Box<RawValue>, RpcError> {
    let p = create::Params::read(&call.params)?;
    let create = CreateWorkflow {
        document: p.document,
        strict: p.strict,
        trigger: p.trigger,
        user_id: p.user_id,
        execute: p.execute,
    };
    let created = answer(
        service,
        service.create_workflow(&call.context, create).await,
    )?;
    match created {
        Ok(created) => Ok(replies::workflow(&created)),
        Err(unfit) => Err(refusals::unfit_workflow(&unfit)),
    }
}

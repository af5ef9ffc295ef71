//! `workflows.delete`.

use super::answers::{Answer, fit};
use super::kinds::{expected_version, name, owner};
use crate::application::Service;
use crate::application::api::workflows::Kept;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::jsonrpc::{ErrorKind, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::workflows::described;
use crate::transport::openrpc::schema_parts::object;
use serde_json::json;
use taskledger_domain::Violation;

/// Names a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Name and owner.
    pub kept: Kept,
    /// The newest version, if it may be no other.
    pub expected_version: Option<u32>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let owner = owner(&mut reader);
        let about = "The newest version that the caller expects: if another version is the newest, nothing is deleted.";
        let expected_version = expected_version(&mut reader, about);
        reader.finish(|| {
            Some(Self {
                kept: Kept { owner, name: name? },
                expected_version,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "workflows.delete",
        title: "Delete Workflow",
        summary: "Delete all versions of a workflow document",
        tags: &["workflow"],
        params: Params::declared(),
        changes: Changes::Workflows,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let deleted = service.delete_workflow(&call.context, p.kept, p.expected_version);
    Ok(replies::workflow_deleted(fit(service, deleted.await)?))
}

fn about() -> About {
    described(
        "Deletes all versions of a workflow document. Runs continue: their tasks contain all that they need. `workflows.versions` still lists the changes of the name.",
        (
            "deleted",
            object(json!({
                "deleted": {"type": "boolean", "description": "Whether there were any."},
            })),
        ),
        &[ErrorKind::WorkflowChanged],
        ("one", json!({"name": "Draft"}), json!({"deleted": false})),
    )
}

//! `workflows.get`.

use super::answers::{Answer, fit};
use super::kinds::{name, owner, version};
use crate::application::Service;
use crate::application::api::workflows::Kept;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::replies;
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::workflows::kept::{saved_version, shown_version};
use crate::transport::openrpc::about::workflows::{ABSENT, DOCUMENT, NAME, described};
use crate::transport::openrpc::schema_parts::merged;
use serde_json::json;
use taskledger_domain::Violation;

/// Names a document and a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Its name and owner.
    pub kept: Kept,
    /// Which version; absent for the newest.
    pub version: Option<u32>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let version = reader.optional("version", version(), "The version; without it the newest.");
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                kept: Kept { owner, name: name? },
                version: version.and_then(|version| u32::try_from(version).ok()),
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "workflows.get",
        title: "Get Workflow",
        summary: "Read a workflow document that is kept",
        tags: &["workflow"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let found = service.kept_document(&call.context, p.kept, p.version);
    Ok(replies::kept_workflow(&fit(service, found.await)?))
}

fn about() -> About {
    let document =
        json!({"document": {"type": ["string", "object"], "description": "As it was given."}});
    described(
        "Reads a version of a workflow document that is kept.",
        ("workflow", saved_version(document)),
        ABSENT,
        (
            "the newest",
            json!({"name": NAME}),
            merged(shown_version(), json!({"document": DOCUMENT})),
        ),
    )
}

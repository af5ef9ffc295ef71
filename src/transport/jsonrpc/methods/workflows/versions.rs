//! `workflows.versions`.

use super::answers::Answer;
use super::kinds::{limit, name, owner, version};
use crate::application::Service;
use crate::application::api::workflows::Kept;
use crate::transport::jsonrpc::methods::{answer, boxed};
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::replies;
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::TIME;
use crate::transport::openrpc::about::workflows::{DOCUMENT, HASH, NAME, described};
use crate::transport::openrpc::schema_parts::{count, number, object, text, time, with_optional};
use serde_json::json;
use taskledger_domain::Violation;

/// Which events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Name and owner of the document.
    pub kept: Kept,
    /// Events in the page, at most.
    pub limit: u32,
    /// The last version of the page before.
    pub before: Option<u32>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let limit = limit(&mut reader);
        let about = "`next_before` of the page before: versions before this one.";
        let before = reader.optional("before", version(), about);
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                kept: Kept { owner, name: name? },
                limit,
                before: before.and_then(|before| u32::try_from(before).ok()),
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "workflows.versions",
        title: "List Workflow Versions",
        summary: "List what happened to a workflow document",
        tags: &["workflow"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let found = service.workflow_versions(&call.context, p.kept, p.before, p.limit);
    let found = answer(service, found.await)?;
    Ok(replies::workflow_events(&found, p.limit))
}

fn about() -> About {
    let event = with_optional(
        object(json!({
            "version": number("Its number."),
            "event": {"type": "string", "enum": ["saved", "deleted"]},
            "at": time("When."),
            "by": text("The principal."),
            "kept": {"type": "boolean", "description": "Whether the document is still there."},
        })),
        json!({
            "info_version": text("`info.version` of the document."),
            "hash": text("SHA-256 of the document as JSON with sorted keys."),
            "bytes": count("Bytes of its text."),
        }),
    );
    described(
        "Lists what happened to a workflow document, newest first. Deletions stay listed, without the documents that they removed.",
        (
            "versions",
            object(json!({
                "versions": {"type": "array", "items": event},
                "next_before": {"type": ["integer", "null"], "description": "`before` of the next page; null on the last."},
            })),
        ),
        &[],
        (
            "of one workflow",
            json!({"name": NAME}),
            json!({
                "versions": [{
                    "version": 1, "event": "saved", "at": TIME, "by": "anonymous", "kept": true,
                    "info_version": "1.0.0", "hash": HASH, "bytes": DOCUMENT.len(),
                }],
                "next_before": null,
            }),
        ),
    )
}

//! `workflows.list`.

use super::answers::Answer;
use super::kinds::{limit, owner};
use crate::application::Service;
use crate::transport::jsonrpc::methods::{answer, boxed};
use crate::transport::jsonrpc::params::work::kinds::NameText;
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::replies;
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::workflows::described;
use crate::transport::openrpc::about::workflows::kept::{saved_version, shown_version};
use crate::transport::openrpc::schema_parts::object;
use serde_json::json;
use std::sync::Arc;
use taskledger_domain::Violation;

/// The owner of the documents, and a page of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Names in the page, at most.
    pub limit: u32,
    /// The last name of the page before.
    pub after: Option<Arc<str>>,
    /// The owner, if it was given.
    pub owner: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let limit = limit(&mut reader);
        let after = reader.optional(
            "after",
            NameText,
            "`next_after` of the previous page: only names after this one.",
        );
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                limit,
                after,
                owner,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "workflows.list",
        title: "List Workflows",
        summary: "List the workflow documents that are kept",
        tags: &["workflow"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let found = service.kept_workflows(&call.context, p.owner, p.after, p.limit);
    let found = answer(service, found.await)?;
    Ok(replies::kept_workflows(&found, p.limit))
}

fn about() -> About {
    described(
        "Lists the newest versions of the workflow documents of one user, by name.",
        (
            "workflows",
            object(json!({
                "workflows": {"type": "array", "items": saved_version(json!({}))},
                "next_after": {"type": ["string", "null"], "description": "`after` of the next page; null on the last."},
            })),
        ),
        &[],
        (
            "all",
            json!({}),
            json!({"workflows": [shown_version()], "next_after": null}),
        ),
    )
}

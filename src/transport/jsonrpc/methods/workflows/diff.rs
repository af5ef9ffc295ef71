//! `workflows.diff`.

use super::answers::{Answer, fit};
use super::kinds::{DocumentKind, name, owner, version};
use crate::application::Service;
use crate::application::api::workflows::{Kept, Newer};
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Fault, Parameters, Reader};
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::jsonrpc::{ErrorKind, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::workflows::kept::differences;
use crate::transport::openrpc::about::workflows::{DOCUMENT, NAME, described};
use crate::transport::openrpc::schema_parts::{merged, number, object};
use serde_json::{Value, json};
use taskledger_domain::Violation;

/// What to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Name and owner of the document.
    pub kept: Kept,
    /// The older version, if that was said.
    pub from: Option<u32>,
    /// What it is compared with.
    pub newer: Newer,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let about =
            "The older version; without it the one before `to`, or the newest with `document`.";
        let from = reader.optional("from", version(), about);
        let about = "The newer version; without it the newest.";
        let to = reader.optional("to", version(), about);
        let document = reader.optional(
            "document",
            DocumentKind,
            "A document to compare with, instead of `to`: its text in YAML 1.2 or JSON, or the document itself as an object.",
        );
        if let (Some(to), Some(_)) = (to, &document) {
            let fault = Fault::new("given beside `document`", "only one of them");
            reader.report("to", fault, &Value::from(to));
        }
        let owner = owner(&mut reader);
        let number = |version: u64| u32::try_from(version).ok();
        reader.finish(|| {
            Some(Self {
                kept: Kept { owner, name: name? },
                from: from.and_then(number),
                newer: match document {
                    Some(document) => Newer::Document(document),
                    None => Newer::Version(to.and_then(number)),
                },
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "workflows.diff",
        title: "Compare Workflows",
        summary: "Say what is different between two versions of a workflow document",
        tags: &["workflow"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let compared = service.compare_workflows(&call.context, p.kept, p.from, p.newer);
    Ok(replies::compared_workflows(&fit(service, compared.await)?))
}

fn about() -> About {
    let compared = merged(
        json!({
            "from": number("The version before."),
            "to": {"type": ["integer", "null"], "description": "The version after; null for a document of the call."},
        }),
        differences(),
    );
    described(
        "Says what is different between two versions of a workflow document, or between a version and a document that is not kept, and what of it breaks callers, workers or readers of results.",
        ("difference", object(compared)),
        &[ErrorKind::WorkflowNotFound, ErrorKind::InputWiring],
        (
            "a document that is not kept",
            json!({"name": NAME, "document": DOCUMENT}),
            json!({"from": 1, "to": null, "changes": [], "count": 0, "breaking": 0}),
        ),
    )
}

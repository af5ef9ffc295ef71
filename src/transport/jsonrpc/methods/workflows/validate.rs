//! `workflows.validate`.

use super::answers::Answer;
use super::kinds::{document, strict};
use crate::application::Service;
use crate::application::api::workflows::Document;
use crate::transport::jsonrpc::methods::{answer, boxed};
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::replies;
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::openrpc::about::workflows::{DOCUMENT, HASH, faults};
use crate::transport::openrpc::about::{About, Example};
use crate::transport::openrpc::schema_parts::{names, object, with_optional};
use serde_json::json;
use taskledger_domain::Violation;

/// What to check.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// The workflow document to check.
    pub document: Document,
    /// Most warnings are errors.
    pub strict: bool,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let document = document(&mut reader);
        let strict = strict(&mut reader);
        reader.finish(|| {
            Some(Self {
                document: document?,
                strict,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "workflows.validate",
        title: "Validate Workflow",
        summary: "Say everything that is wrong with a workflow document",
        tags: &["workflow"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let report = service.validate_workflow(&call.context, p.document, p.strict);
    let report = answer(service, report.await)?;
    Ok(replies::workflow_report(&report))
}

fn about() -> About {
    let report = object(json!({
        "valid": {"type": "boolean", "description": "Whether there are no errors."},
        "errors": faults("Why the document cannot be used, in its order; at most 1000."),
        "warnings": faults("What is probably a mistake."),
    }));
    let workflow = object(json!({
        "name": {"type": "string"},
        "version": {"type": "string"},
        "hash": {"type": "string", "description": "SHA-256 of the document as JSON with sorted keys."},
        "phases": names("The phases, in the order of the document."),
        "not_acted_on": names("Paths of keys that have no effect here."),
    }));
    About {
        description: "Reads a workflow document of RFC-0024 and reports all faults with their positions. Stores nothing.",
        result: "report",
        schema: with_optional(report, json!({"workflow": workflow})),
        errors: &[],
        examples: vec![Example {
            name: "two phases",
            description: "The document has no faults.",
            params: json!({"document": DOCUMENT}),
            result: json!({
                "valid": true, "errors": [], "warnings": [],
                "workflow": {
                    "name": "Quarterly report", "version": "1.0.0",
                    "hash": HASH,
                    "phases": ["fetch", "report"], "not_acted_on": [],
                },
            }),
        }],
    }
}

//! `workflows.schemas`.

use super::answers::{Answer, fit};
use super::kinds::{DocumentKind, owner, version};
use crate::application::Service;
use crate::application::api::workflows::{Kept, Which};
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::params::work::kinds::NameText;
use crate::transport::jsonrpc::reader::{Fault, Parameters, Reader, text};
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::jsonrpc::{ErrorKind, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::workflows::{DOCUMENT, described};
use crate::transport::openrpc::schema_parts::{object, text as told};
use serde_json::{Value, json};
use taskledger_domain::Violation;
use taskledger_domain::limits::NAME_CHARS_MAX;

/// The document whose schemas are wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// The document.
    pub which: Which,
    /// The phase; default: all.
    pub phase: Option<String>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let document = reader.optional(
            "document",
            DocumentKind,
            "The workflow document: its text in YAML 1.2 or JSON, or the document itself as an object.",
        );
        let about = "A saved workflow, instead of `document`: `info.name` of its document.";
        let name = reader.optional("name", NameText, about);
        let about = "The version of `name`; without it the newest.";
        let version = reader.optional("version", version(), about);
        let owner = owner(&mut reader);
        let about = "The phase; without it all of them.";
        let phase = reader.optional("phase", text(NAME_CHARS_MAX), about);
        let version = version.and_then(|version| u32::try_from(version).ok());
        let which = match (document, name) {
            (Some(_), Some(name)) => {
                let fault = Fault::new("given beside `document`", "only one of them");
                reader.report("name", fault, &Value::from(&*name));
                None
            }
            (Some(document), None) => Some(Which::Given(document)),
            (None, Some(name)) => Some(Which::Kept(Kept { owner, name }, version)),
            (None, None) => {
                let fault = Fault::new("missing", "a document, or `name` of one that is kept");
                reader.report("document", fault, &Value::Null);
                None
            }
        };
        reader.finish(|| {
            Some(Self {
                which: which?,
                phase,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "workflows.schemas",
        title: "Workflow Schemas",
        summary: "Say as JSON Schemas what phases of a workflow document take and give",
        tags: &["workflow"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let schemas = service.workflow_schemas(&call.context, p.which, p.phase);
    Ok(replies::workflow_schemas(&fit(service, schemas.await)?))
}

fn about() -> About {
    let schema = |description: &str| json!({"type": "object", "description": description});
    let phase = object(json!({
        "phase_name": told("Its name in the document."),
        "input_schema": schema("What a worker gets: exactly the declared keys. Inputs without a type have that of the output that they name."),
        "output_schema": schema("What it has to give; other keys are accepted."),
    }));
    described(
        "Says what phases of a workflow document take and give, as JSON Schemas (draft-07), for those who write their workers. Named types are under `definitions`.",
        (
            "schemas",
            object(
                json!({"phases": {"type": "array", "items": phase, "description": "In the order of the document; at most 8 MiB of schemas."}}),
            ),
        ),
        &[ErrorKind::WorkflowNotFound, ErrorKind::InputWiring],
        (
            "one phase",
            json!({"document": DOCUMENT, "phase": "fetch"}),
            json!({"phases": [{
                "phase_name": "fetch",
                "input_schema": {"type": "object", "properties": {"quarter": {}}, "required": ["quarter"], "additionalProperties": false},
                "output_schema": {"type": "object", "properties": {"revenue": {"type": "number"}}, "required": ["revenue"]},
            }]}),
        ),
    )
}

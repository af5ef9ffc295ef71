//! `workflows.save`.

use super::answers::{Answer, fit};
use super::kinds::{document, expected_version, owner, strict};
use crate::application::Service;
use crate::application::api::workflows::SaveWorkflow;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::jsonrpc::{ErrorKind, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::workflows::kept::{
    differences, saved_version, shown_version,
};
use crate::transport::openrpc::about::workflows::{DOCUMENT, described, faults};
use crate::transport::openrpc::schema_parts::{merged, names};
use serde_json::{Value, json};
use taskledger_domain::Violation;

/// What to keep.
#[derive(Debug, Clone, PartialEq)]
pub struct Params(pub SaveWorkflow);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let document = document(&mut reader);
        let strict = strict(&mut reader);
        let owner = owner(&mut reader);
        let about = "The newest version that the caller expects, 0 for none: if another version is the newest, nothing is saved, unless it is equal to the document.";
        let expected_version = expected_version(&mut reader, about);
        reader.finish(|| {
            Some(Self(SaveWorkflow {
                document: document?,
                strict,
                owner,
                expected_version,
            }))
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "workflows.save",
        title: "Save Workflow",
        summary: "Keep a workflow document by its name",
        tags: &["workflow"],
        params: Params::declared(),
        changes: Changes::Workflows,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let saved = service.save_workflow(&call.context, p.0);
    Ok(replies::saved_workflow(&fit(service, saved.await)?))
}

/// The same members, each null where nothing was compared.
fn or_null(members: Value) -> Value {
    let members = members.as_object().into_iter().flatten();
    let nullable = members.map(|(name, schema)| {
        let schema = json!({"anyOf": [schema, {"type": "null"}], "description": "Null if there is no earlier version to compare with."});
        (name.clone(), schema)
    });
    Value::Object(nullable.collect())
}

fn about() -> About {
    let more = merged(
        json!({
            "created": {"type": "boolean", "description": "Whether it is a new version; a document that is equal to the newest is kept already."},
            "warnings": faults("What is probably a mistake."),
            "not_acted_on": names("Paths of keys that have no effect here."),
        }),
        or_null(differences()),
    );
    let shown = json!({
        "created": false, "changes": null, "count": null, "breaking": null,
        "warnings": [], "not_acted_on": [],
    });
    described(
        "Keeps a workflow document as the newest version of its name, and says what is different from the version before, if there is one. At most 1,000 names, 10,000 versions of a name and 64 MiB for each owner.",
        ("saved", saved_version(more)),
        &[ErrorKind::InputWiring, ErrorKind::WorkflowChanged],
        (
            "the same again",
            json!({"document": DOCUMENT}),
            merged(shown_version(), shown),
        ),
    )
}

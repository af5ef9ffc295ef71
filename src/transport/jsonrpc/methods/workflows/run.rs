//! `workflows.run`.

use super::answers::{Answer, fit};
use super::create;
use super::kinds::{labels, name, owner, trigger, user_id, version};
use crate::application::Service;
use crate::application::api::workflows::{Kept, RunWorkflow};
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{BOOLEAN, Parameters, Reader};
use crate::transport::jsonrpc::replies;
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::workflows::{ABSENT, NAME};
use crate::transport::openrpc::schema_parts::{number, with_optional};
use serde_json::json;
use taskledger_domain::Violation;

/// What to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Params(pub RunWorkflow);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let about = "The version; without it the newest. A call that is repeated under an idempotency key runs that of the first call.";
        let version = reader.optional("version", version(), about);
        let trigger = trigger(&mut reader);
        let user_id = user_id(&mut reader);
        let execute = reader.with_default(
            "execute",
            BOOLEAN,
            true,
            "Whether the run starts at once; otherwise start it with `tasks.execute` and `root_task_id`.",
        );
        let owner = owner(&mut reader);
        let labels = labels(&mut reader);
        reader.finish(|| {
            Some(Self(RunWorkflow {
                kept: Kept { owner, name: name? },
                version: version.and_then(|version| u32::try_from(version).ok()),
                trigger,
                user_id,
                execute,
                labels,
            }))
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "workflows.run",
        title: "Run Workflow",
        summary: "Create the tasks of a saved workflow document, and run them",
        tags: &["workflow"],
        params: Params::declared(),
        changes: Changes::Flows,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let created = service.run_workflow(&call.context, p.0).await;
    let (version, created) = fit(service, created)?;
    Ok(replies::workflow(&created, Some(version)))
}

fn about() -> About {
    let mut about = create::about();
    about.description = "Creates the tasks of one run of a saved workflow document, and starts it, as `workflows.create` does with a document. A call that is repeated under its idempotency key gets the first answer, for the version that the first call ran.";
    about.errors = ABSENT;
    about.schema = with_optional(
        about.schema,
        json!({"version": number("The version that was run.")}),
    );
    for example in &mut about.examples {
        example.description = "The newest version.";
        example.params = json!({"name": NAME, "trigger": {"quarter": "2026-Q1"}});
        example.result["version"] = json!(1);
    }
    about
}

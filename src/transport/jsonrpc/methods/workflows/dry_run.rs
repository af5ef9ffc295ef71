//! `workflows.dry_run`.

use super::answers::{Answer, fit};
use super::kinds::{ObjectKind, document, strict, trigger};
use crate::application::Service;
use crate::application::api::workflows::DryRun;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::jsonrpc::{ErrorKind, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::workflows::{DOCUMENT, described};
use crate::transport::openrpc::schema_parts::{object, text, with_optional};
use serde_json::json;
use taskledger_domain::{Payload, Violation};

/// What to play.
#[derive(Debug, Clone, PartialEq)]
pub struct Params(pub DryRun);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let document = document(&mut reader);
        let trigger = trigger(&mut reader);
        let outputs = reader.optional(
            "outputs",
            ObjectKind,
            "What the phases give: the output of one completion by name of the phase, or a list of them; `{\"$fail\": reason}` fails an attempt.",
        );
        let strict = strict(&mut reader);
        reader.finish(|| {
            Some(Self(DryRun {
                document: document?,
                strict,
                trigger,
                outputs: outputs.unwrap_or_else(Payload::empty),
            }))
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "workflows.dry_run",
        title: "Dry Run Workflow",
        summary: "Play a run of a workflow document with made-up outputs",
        tags: &["workflow"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let played = service.dry_run_workflow(&call.context, p.0).await;
    Ok(replies::played(&fit(service, played)?))
}

fn about() -> About {
    let step = with_optional(
        object(json!({
            "phase": text("Name of the phase."),
            "step": {"type": "string", "enum": ["claim", "complete", "reject", "fail"]},
        })),
        json!({
            "input": {"type": "object", "description": "What the worker gets."},
            "output": {"type": "object", "description": "What it gives."},
            "error": {"description": "Why it is refused, or fails."},
        }),
    );
    let phase = with_optional(
        object(json!({
            "phase": text("Name of the phase."),
            "status": {"type": "string", "enum": ["pending", "in_progress", "completed", "failed", "skipped"]},
        })),
        json!({"reason": text("What it waits for.")}),
    );
    described(
        "Simulates a run of a workflow document with given outputs, by the rules of tasks: in each step the first ready phase is claimed and completed with its output. Stores nothing.",
        (
            "played",
            object(json!({
                "steps": {"type": "array", "items": step, "description": "What happened, in order."},
                "phases": {"type": "array", "items": phase, "description": "How each phase ended, in the order of the document."},
            })),
        ),
        &[ErrorKind::InputWiring],
        (
            "one phase of two",
            json!({"document": DOCUMENT, "trigger": {"quarter": "2026-Q1"}, "outputs": {"fetch": {"revenue": 7}}}),
            json!({
                "steps": [
                    {"phase": "fetch", "step": "claim", "input": {"quarter": "2026-Q1"}},
                    {"phase": "fetch", "step": "complete", "output": {"revenue": 7}},
                    {"phase": "report", "step": "claim", "input": {"revenue": 7}},
                ],
                "phases": [
                    {"phase": "fetch", "status": "completed"},
                    {"phase": "report", "status": "in_progress", "reason": "no further output is given"},
                ],
            }),
        ),
    )
}

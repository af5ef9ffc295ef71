//! `schedules.pause`.

use super::answers::{Answer, told};
use super::kinds::{name, note, owner};
use crate::application::Service;
use crate::application::api::schedules::Named;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{BOOLEAN, Parameters, Reader};
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::schedules::{ABSENT, NAME, shown_with_times, with_times};
use crate::transport::openrpc::schema_parts::merged;
use serde_json::json;
use std::sync::Arc;
use taskledger_domain::Violation;

/// Names a schedule, and says whether it is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Name and owner.
    pub named: Named,
    /// Whether it is to be paused.
    pub paused: bool,
    /// The reason, in words for people.
    pub note: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let about = "Whether its times pass without runs from now on; false resumes it.";
        let paused = reader.with_default("paused", BOOLEAN, true, about);
        let note = note(&mut reader);
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                named: Named { owner, name: name? },
                paused,
                note,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "schedules.pause",
        title: "Pause Schedule",
        summary: "Pause a schedule, or resume it",
        tags: &["schedule"],
        params: Params::declared(),
        changes: Changes::Schedules,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let done = service.pause_schedule(&call.context, p.named, (p.paused, p.note));
    told(service, done.await)
}

fn about() -> About {
    About::with_example(
        ("schedule", with_times()),
        "Has the times of a schedule pass without runs, or with `paused: false` not any more. Times that pass meanwhile are not made up. A time that waited is skipped.",
        ABSENT,
        (
            "resumed",
            json!({"name": NAME, "paused": false}),
            merged(
                shown_with_times(),
                json!({"version": 3, "overlap": "queue"}),
            ),
        ),
    )
}

//! `schedules.create`.

use super::answers::{Answer, told};
use super::kinds::{name, note, owner};
use super::what::{changes, definition};
use crate::application::Service;
use crate::application::api::schedules::{CreateSchedule, Named};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{BOOLEAN, Parameters, Reader};
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::schedules::{shown_with_times, with_times};
use crate::transport::openrpc::schema_parts::merged;
use serde_json::json;
use taskledger_domain::Violation;

/// What to make.
#[derive(Debug, Clone, PartialEq)]
pub struct Params(pub CreateSchedule);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let said = changes(&mut reader, true);
        let about = "Whether its times pass without runs at first.";
        let is_paused = reader.with_default("paused", BOOLEAN, false, about);
        let note = note(&mut reader);
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self(CreateSchedule {
                named: Named { owner, name: name? },
                definition: definition(said)?,
                is_paused,
                note,
            }))
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "schedules.create",
        title: "Create Schedule",
        summary: "Start a saved workflow or tasks at given times",
        tags: &["schedule"],
        params: Params::declared(),
        changes: Changes::Schedules,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    told(service, service.create_schedule(&call.context, p.0).await)
}

fn about() -> About {
    let shown = json!({
        "name": "hourly", "cron": "@hourly", "time_zone": "UTC", "paused": true, "note": "until Monday",
        "next_at": null, "next": [], "tasks": [{"name": "poll", "schemas": {"method": "echo_executor"}}],
    });
    let mut shown = merged(shown_with_times(), shown);
    if let Some(members) = shown.as_object_mut() {
        members.remove("workflow");
    }
    About::with_example(
        ("schedule", with_times()),
        "Makes a schedule, which starts a saved workflow or tasks at given times, each time once, on any of several servers and after a restart too. It acts in the name of the caller. At most 1,000 schedules for each owner.",
        &[ErrorKind::ScheduleChanged, ErrorKind::WorkflowNotFound],
        (
            "each hour, paused at first",
            json!({
                "name": "hourly", "cron": "@hourly", "paused": true, "note": "until Monday",
                "tasks": [{"name": "poll", "schemas": {"method": "echo_executor"}}],
            }),
            shown,
        ),
    )
}

//! `schedules.update`.

use super::answers::{Answer, told};
use super::kinds::{expected_version, name, owner};
use super::what::changes;
use crate::application::Service;
use crate::application::api::schedules::{Named, ScheduleChanges};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::schedules::{NAME, shown_with_times, with_times};
use crate::transport::openrpc::schema_parts::merged;
use serde_json::json;
use taskledger_domain::Violation;

/// What to change.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Name and owner.
    pub named: Named,
    /// What becomes different.
    pub changes: ScheduleChanges,
    /// Its version, if it may be no other.
    pub expected_version: Option<u32>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let changes = changes(&mut reader, false);
        let about = "The version that the caller expects: if the schedule has another version, nothing is changed.";
        let expected_version = expected_version(&mut reader, about);
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                named: Named { owner, name: name? },
                changes,
                expected_version,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "schedules.update",
        title: "Update Schedule",
        summary: "Change a schedule",
        tags: &["schedule"],
        params: Params::declared(),
        changes: Changes::Schedules,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let done = service.update_schedule(&call.context, p.named, p.changes, p.expected_version);
    told(service, done.await)
}

fn about() -> About {
    About::with_example(
        ("schedule", with_times()),
        "Changes a schedule; what is not named stays. With another `cron`, `rrule`, `every_seconds`, `time_zone` or `start_at`, its times count from now on, and those that are due are missed; with anything else, a time that is due stays due. From now on it acts in the name of the caller.",
        &[
            ErrorKind::ScheduleNotFound,
            ErrorKind::ScheduleChanged,
            ErrorKind::WorkflowNotFound,
        ],
        (
            "another policy",
            json!({"name": NAME, "overlap": "queue"}),
            merged(
                shown_with_times(),
                json!({"version": 2, "overlap": "queue"}),
            ),
        ),
    )
}

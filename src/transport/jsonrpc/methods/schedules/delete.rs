//! `schedules.delete`.

use super::answers::{Answer, fit};
use super::kinds::{expected_version, named};
use crate::application::Service;
use crate::application::api::schedules::Named;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::jsonrpc::{ErrorKind, replies};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::schema_parts::object;
use serde_json::json;
use taskledger_domain::Violation;

/// Names a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Name and owner.
    pub named: Named,
    /// Its version, if it may be no other.
    pub expected_version: Option<u32>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let named = named(&mut reader);
        let about = "The version that the caller expects: if the schedule has another version, nothing is deleted.";
        let expected_version = expected_version(&mut reader, about);
        reader.finish(|| {
            Some(Self {
                named: named?,
                expected_version,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "schedules.delete",
        title: "Delete Schedule",
        summary: "Delete a schedule",
        tags: &["schedule"],
        params: Params::declared(),
        changes: Changes::Schedules,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let done = service.delete_schedule(&call.context, p.named, p.expected_version);
    Ok(replies::schedule_deleted(fit(service, done.await)?))
}

fn about() -> About {
    About::with_example(
        (
            "deleted",
            object(json!({
                "deleted": {"type": "boolean", "description": "Whether there was one."},
            })),
        ),
        "Deletes a schedule. Runs that it has started continue.",
        &[ErrorKind::ScheduleChanged],
        ("one", json!({"name": "draft"}), json!({"deleted": false})),
    )
}

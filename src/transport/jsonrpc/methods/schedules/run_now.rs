//! `schedules.run_now`.

use super::answers::{Answer, fit};
use super::kinds::{OVERLAP, name, owner};
use crate::application::Service;
use crate::application::api::schedules::{Named, Overlap};
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::replies;
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::openrpc::about::TIME;
use crate::transport::openrpc::about::schedules::{ABSENT, NAME, run};
use crate::transport::openrpc::about::{About, MINTED_TOO, RUN};
use crate::transport::openrpc::schema_parts::{warnings, with_optional};
use serde_json::json;
use taskledger_domain::Violation;

/// Names a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Name and owner.
    pub named: Named,
    /// What to do while a run is in progress; default: as the schedule says.
    pub overlap: Option<Overlap>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = name(&mut reader);
        let about =
            "What to do while a run of the schedule is in progress; default: as the schedule says.";
        let overlap = reader.optional("overlap", OVERLAP, about);
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                named: Named { owner, name: name? },
                overlap,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "schedules.run_now",
        title: "Run Schedule Now",
        summary: "Start a run of a schedule now",
        tags: &["schedule"],
        params: Params::declared(),
        changes: Changes::Flows,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let done = service
        .run_schedule(&call.context, p.named, p.overlap)
        .await;
    Ok(replies::run_by_hand(&fit(service, done)?))
}

fn about() -> About {
    About::with_example(
        ("run", with_optional(run(), warnings())),
        "Starts a run of a schedule now, whether it is paused or not. A run in progress is handled as the schedule says, or as `overlap` says. Repeated under an idempotency key it gets the answer of the first call.",
        ABSENT,
        (
            "in addition to others",
            json!({"name": NAME, "overlap": "allow"}),
            json!({
                "scheduled_at": TIME, "by_hand": true, "outcome": "started", "status": null,
                "decided_at": TIME, "error": null, "root_task_id": MINTED_TOO, "run_id": RUN,
            }),
        ),
    )
}

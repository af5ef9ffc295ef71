//! `schedules.get`.

use super::answers::{Answer, told};
use super::kinds::named;
use crate::application::Service;
use crate::application::api::schedules::Named;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Parameters, Reader};
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::schedules::{ABSENT, NAME, shown_with_times, with_times};
use serde_json::json;
use taskledger_domain::Violation;

/// Names a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params(pub Named);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let named = named(&mut reader);
        reader.finish(|| named.map(Self))
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "schedules.get",
        title: "Get Schedule",
        summary: "Show a schedule, its next times and its last runs",
        tags: &["schedule"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    told(service, service.get_schedule(&call.context, p.0).await)
}

fn about() -> About {
    About::with_example(
        ("schedule", with_times()),
        "Shows a schedule, its next times and what became of its last ones.",
        ABSENT,
        ("one", json!({"name": NAME}), shown_with_times()),
    )
}

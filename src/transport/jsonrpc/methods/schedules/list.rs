//! `schedules.list`.

use super::answers::Answer;
use super::kinds::owner;
use crate::application::Service;
use crate::transport::jsonrpc::methods::{answer, boxed};
use crate::transport::jsonrpc::params::work::kinds::NameText;
use crate::transport::jsonrpc::reader::{Parameters, Reader, integer};
use crate::transport::jsonrpc::replies;
use crate::transport::jsonrpc::table::{Call, Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::schedules::{schedule, shown_schedule};
use crate::transport::openrpc::schema_parts::object;
use serde_json::json;
use std::sync::Arc;
use taskledger_domain::Violation;

/// Schedules in a page unless the caller says otherwise.
const LIMIT_DEFAULT: u32 = 100;

/// Schedules in a page at most.
const LIMIT_MAX: u64 = 1000;

/// The owner of the schedules, and a page of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Schedules in the page, at most.
    pub limit: u32,
    /// The last name of the page before.
    pub after: Option<Arc<str>>,
    /// The owner, if it was given.
    pub owner: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let about = "Schedules in the page, at most.";
        let range = integer(1..=LIMIT_MAX);
        let limit = reader.with_default("limit", range, u64::from(LIMIT_DEFAULT), about);
        let about = "`next_after` of the previous page: only names after this one.";
        let after = reader.optional("after", NameText, about);
        let owner = owner(&mut reader);
        reader.finish(|| {
            Some(Self {
                limit: u32::try_from(limit).unwrap_or(LIMIT_DEFAULT),
                after,
                owner,
            })
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "schedules.list",
        title: "List Schedules",
        summary: "List schedules",
        tags: &["schedule"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| boxed(async move { carry_out(&service, &call).await }),
    }
}

async fn carry_out(service: &Service, call: &Call) -> Answer {
    let p = Params::read(&call.params)?;
    let found = service.list_schedules(&call.context, p.owner, p.after, p.limit);
    let found = answer(service, found.await)?;
    Ok(replies::schedules(&found, p.limit))
}

fn about() -> About {
    About::with_example(
        (
            "schedules",
            object(json!({
                "schedules": {"type": "array", "items": schedule(json!({}))},
                "next_after": {"type": ["string", "null"], "description": "`after` of the next page; null on the last."},
            })),
        ),
        "Lists the schedules of one user, by name.",
        &[],
        (
            "one",
            json!({"after": "monthly", "limit": 1000}),
            json!({"schedules": [shown_schedule()], "next_after": null}),
        ),
    )
}

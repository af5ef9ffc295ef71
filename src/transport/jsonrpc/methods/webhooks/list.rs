//! `webhooks.list`.

use super::answers::told;
use crate::application::Service;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Fault, Kind, Parameters, Reader, Refusal, integer};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::webhooks::{described, hook, webhook};
use crate::transport::openrpc::schema_parts::page;
use serde_json::{Value, json};
use taskledger_domain::Violation;

/// Webhooks in a page.
pub const LIMIT_MAX: u32 = 100;

/// Digits of a cursor: any number of them fits.
const DIGITS_MAX: usize = 18;

/// The page of webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// Webhooks in it, at most.
    pub limit: usize,
    /// `next_cursor` of the previous page.
    pub after: i64,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let limit = limit(&mut reader, "Webhooks in the page, at most.");
        let after = cursor(&mut reader);
        reader.finish(|| {
            Some(Self {
                limit,
                after: after.unwrap_or(0),
            })
        })
    }
}

/// Asks for `limit`.
pub(in crate::transport::jsonrpc) fn limit(
    reader: &mut Reader<'_>,
    description: &'static str,
) -> usize {
    let limits = integer(1..=u64::from(LIMIT_MAX));
    let limit = reader.with_default("limit", limits, u64::from(LIMIT_MAX), description);
    usize::try_from(limit).expect("the range of a limit fits")
}

/// Asks for `cursor`.
pub(in crate::transport::jsonrpc) fn cursor(reader: &mut Reader<'_>) -> Option<i64> {
    let description = "The `next_cursor` of an earlier page of the same list.";
    reader.optional("cursor", Place, description)
}

/// Where a page begins: the number that the one before ended with.
struct Place;

impl Kind for Place {
    type Out = i64;

    fn schema(&self) -> Value {
        json!({"type": "string", "pattern": "^[1-9][0-9]{0,17}$"})
    }

    fn parse(&self, value: &Value) -> Result<i64, Refusal> {
        let digits = value.as_str().filter(|text| {
            text.len() <= DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit())
        });
        digits
            .filter(|text| !text.starts_with('0'))
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| Fault::new("not a cursor", "a `next_cursor` of the same list").into())
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "webhooks.list",
        title: "List Webhooks",
        summary: "List webhooks, oldest first",
        tags: &["webhook"],
        params: Params::declared(),
        changes: Changes::Nothing,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                told(
                    &service,
                    &call.params,
                    service.webhooks(&call.context, p.after, p.limit).await,
                )
            })
        },
    }
}

fn about() -> About {
    described(
        "Lists webhooks, oldest first; callbacks of single executions are not among them.",
        "page",
        page("webhooks", webhook()),
        &[],
        ("all", json!({"limit": 10}), json!({"webhooks": [hook()]})),
    )
}

//! `webhooks.deliveries`.

use super::answers::told;
use super::kinds::Id;
use super::list::{cursor, limit};
use super::recover::before;
use crate::application::Service;
use crate::application::api::webhooks::{DeliveryFilter, DeliveryState};
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Choice, Parameters, Reader, TASK_ID, TIMESTAMP, choice};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::TIME;
use crate::transport::openrpc::about::webhooks::{
    HOOK, STATES, UNKNOWN, attempt, described, waits_for,
};
use crate::transport::openrpc::schema_parts::date_time;
use crate::transport::openrpc::schema_parts::{object, page, text_or_null, time_or_null};
use serde_json::{Value, json};
use taskledger_domain::Violation;

/// The filter and page of deliveries.
#[derive(Debug, Clone)]
pub struct Params {
    /// Which deliveries are shown.
    pub filter: DeliveryFilter,
    /// Deliveries in the page, at most.
    pub limit: usize,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let endpoint = reader.optional("id", Id, "Only of this webhook.");
        let state = reader.optional("state", STATE, "Only in this state.");
        let task = reader.optional("task_id", TASK_ID, "Only about this task.");
        let since = reader.optional("since", TIMESTAMP, "Only created at this time or later.");
        let until = reader.optional("until", TIMESTAMP, "Only created before this time.");
        if let (Some(since), Some(until)) = (since, until)
            && until <= since
        {
            reader.report("until", before(since), &until.to_string().into());
        }
        let limit = limit(&mut reader, "Deliveries in the page, at most.");
        let below = cursor(&mut reader);
        reader.finish(|| {
            Some(Self {
                filter: DeliveryFilter {
                    owner: None,
                    endpoint,
                    state,
                    task,
                    since,
                    until,
                    below,
                },
                limit,
            })
        })
    }
}

const STATE: Choice<DeliveryState> = choice(
    "not a state of deliveries",
    &[
        ("waiting", DeliveryState::Waiting),
        ("delivered", DeliveryState::Delivered),
        ("dead", DeliveryState::Dead),
        ("cancelled", DeliveryState::Cancelled),
        ("superseded", DeliveryState::Superseded),
    ],
);

pub(super) fn method() -> Method<Service> {
    Method {
        name: "webhooks.deliveries",
        title: "List Deliveries",
        summary: "Show what was sent, every attempt, and what waits",
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
                    service.deliveries(&call.context, p.filter, p.limit).await,
                )
            })
        },
    }
}

fn delivery() -> Value {
    object(json!({
        "id": {"type": "integer", "minimum": 1},
        "endpoint_id": text_or_null("The webhook, also when it was deleted."),
        "webhook_id": {"type": "string", "description": "What receivers know repetitions by."},
        "type": {"type": "string"},
        "task_id": text_or_null("The task that it is about."),
        "state": {"type": "string", "enum": STATES},
        "attempts": {"type": "integer", "minimum": 0, "description": "Of the schedule."},
        "next_at": time_or_null("Not before this time is the next attempt; null when none follows, or `waits_for` says more."),
        "waits_for": waits_for(),
        "created_at": date_time(),
        "ended_at": time_or_null("When it ended."),
        "log": {"type": "array", "items": attempt()},
    }))
}

fn about() -> About {
    described(
        "Shows what was sent and what waits, newest first, with every attempt. Kept for 30 days, and at \
         most 10,000 of each webhook.",
        "page",
        page("deliveries", delivery()),
        UNKNOWN,
        (
            "of one webhook",
            json!({"id": HOOK, "limit": 10}),
            json!({"deliveries": [{
                "id": 1, "endpoint_id": HOOK, "webhook_id": "bb0e8400-e29b-41d4-a716-446655440000",
                "type": "webhook.test", "task_id": null, "state": "waiting", "attempts": 0,
                "next_at": TIME, "waits_for": null, "created_at": TIME, "ended_at": null, "log": [],
            }]}),
        ),
    )
}

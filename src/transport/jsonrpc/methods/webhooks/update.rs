//! `webhooks.update`.

use super::answers::told;
use super::kinds::{DESCRIPTION_CHARS_MAX, Events, Headers, Id, ORDERING, Schedule};
use crate::application::Service;
use crate::application::api::webhooks::{EndpointId, URL_CHARS_MAX, WebhookChange};
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{
    Fault, Kind, Labels, Parameters, Reader, Refusal, TASK_ID, text,
};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::webhooks::{HOOK, UNKNOWN, changed, described, webhook};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_domain::Violation;
use taskledger_domain::limits::KEY_CHARS_MAX;
use taskledger_domain::task::Selector;

/// What is changed of an endpoint.
#[derive(Debug, Clone)]
pub struct Params {
    /// Identifies the endpoint.
    pub id: EndpointId,
    /// What is given.
    pub change: WebhookChange,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        // A name that is written wrong may have a header or a secret for its value.
        reader.hide_unknown();
        let id = reader.required("id", Id, "The webhook.");
        let url = reader.optional("url", text(URL_CHARS_MAX), "Where to send from now on.");
        let events = reader.optional("events", Events, "Only these from now on.");
        let flow = reader.optional("flow_id", TASK_ID, "Only this flow from now on; it exists.");
        let user = reader.optional(
            "user_id",
            text(KEY_CHARS_MAX),
            "Only flows of this user from now on.",
        );
        let description =
            reader.optional("description", text(DESCRIPTION_CHARS_MAX), "For people.");
        let headers = reader.optional(
            "headers",
            Headers,
            "All headers to send along from now on; without it they stay as they are.",
        );
        let ordering = reader.optional(
            "ordering",
            ORDERING,
            "Which messages wait for earlier ones.",
        );
        let schedule = reader.optional("schedule", Schedule, "Seconds before each attempt.");
        let clear = reader.optional("clear", Clear, "What is taken back to its default.");
        let labels = reader.optional(
            "labels",
            Labels,
            "Only tasks with these labels from now on; an empty object is as if it were cleared.",
        );
        let clear = clear.unwrap_or_default();
        for name in &clear {
            if reader.given(name) {
                let fault = Fault::new("cleared and given", "either one");
                reader.report(name, fault, &Value::Null);
            }
        }
        let cleared = |name| clear.contains(&name);
        reader.finish(|| {
            let change = WebhookChange {
                url,
                description: description.or(cleared("description").then(String::new)),
                events: events.map(Some).or(cleared("events").then_some(None)),
                flow: flow
                    .map(|id| Some(id.as_flow()))
                    .or(cleared("flow_id").then_some(None)),
                user: user
                    .map(|user| Some(Arc::from(user)))
                    .or(cleared("user_id").then_some(None)),
                labels: labels.or(cleared("labels").then(Selector::default)),
                ordering,
                schedule: schedule.map(Some).or(cleared("schedule").then_some(None)),
                headers: headers.or(cleared("headers").then(Vec::new)),
            };
            Some(Self { id: id?, change })
        })
    }
}

/// Members that have a default.
const CLEARABLE: [&str; 7] = [
    "events",
    "flow_id",
    "user_id",
    "description",
    "headers",
    "schedule",
    "labels",
];

#[derive(Debug, Clone, Copy)]
struct Clear;

impl Kind for Clear {
    type Out = Vec<&'static str>;

    fn schema(&self) -> Value {
        json!({"type": "array", "minItems": 1, "maxItems": CLEARABLE.len(),
            "items": {"type": "string", "enum": CLEARABLE}})
    }

    fn parse(&self, value: &Value) -> Result<Self::Out, Refusal> {
        let expected = || format!("1 to {} of {}", CLEARABLE.len(), CLEARABLE.join(", "));
        let names = value.as_array().and_then(|list| {
            let known = |item: &Value| CLEARABLE.into_iter().find(|name| item == name);
            let fits = (1..=CLEARABLE.len()).contains(&list.len());
            list.iter()
                .map(known)
                .collect::<Option<_>>()
                .filter(|_| fits)
        });
        names.ok_or_else(|| Fault::new("not a list of such members", expected()).into())
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "webhooks.update",
        title: "Update Webhook",
        summary: "Change what is given of a webhook",
        tags: &["webhook"],
        params: Params::declared(),
        changes: Changes::Webhooks,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                told(
                    &service,
                    &call.params,
                    service.update_webhook(&call.context, p.id, p.change).await,
                )
            })
        },
    }
}

fn about() -> About {
    described(
        "Changes only the given members. Events before the change are sent with the old settings.",
        "webhook",
        webhook(),
        UNKNOWN,
        (
            "only failures",
            json!({"id": HOOK, "events": ["task_failed"]}),
            changed(json!({"events": ["task_failed"]})),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{ID, faults, map};

    #[test]
    fn only_what_is_given_is_changed() {
        let given =
            map(json!({"id": ID, "description": "d", "clear": ["events", "schedule", "labels"]}));
        let change = Params::read(&given).unwrap().change;
        assert_eq!(change.description.as_deref(), Some("d"));
        assert_eq!((change.events, change.schedule), (Some(None), Some(None)));
        assert_eq!(change.labels, Some(Selector::default()));
        assert!(change.url.is_none() && change.headers.is_none() && change.flow.is_none());
    }

    #[test]
    fn nothing_is_both_cleared_and_given() {
        let given = map(json!({"id": ID, "user_id": "u", "clear": ["user_id"]}));
        let found = faults(Params::read(&given));
        assert_eq!(
            found,
            [("user_id".to_owned(), "cleared and given".to_owned())]
        );
    }
}

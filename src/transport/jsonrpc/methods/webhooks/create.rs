//! `webhooks.create`.

use super::answers::told;
use super::kinds::{
    DESCRIPTION_CHARS_MAX, Events, Headers, Id, ORDERING, OwnSecret, SIGNATURE, Schedule,
};
use crate::application::Service;
use crate::application::api::webhooks::{Filter, NewWebhook, Ordering, Signature, URL_CHARS_MAX};
use crate::transport::jsonrpc::ErrorKind;
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Fault, Labels, Parameters, Reader, TASK_ID, text};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::webhooks::{SECRET, URL, changed, described, with_secret};
use serde_json::json;
use std::sync::Arc;
use taskledger_domain::Violation;
use taskledger_domain::limits::KEY_CHARS_MAX;

/// The endpoint to be made.
#[derive(Debug, Clone)]
pub struct Params(pub NewWebhook);

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        // A name that is written wrong may have a header or a secret for its value.
        reader.hide_unknown();
        let url = reader.required(
            "url",
            text(URL_CHARS_MAX),
            "Where to send: `https`, or `http` where the operator allows it. Whether a name leads to an address that is allowed is looked at with each attempt.",
        );
        let events = reader.optional(
            "events",
            Events,
            "Only these; default: all events of tasks. Events about other webhooks are sent only if they are named.",
        );
        let flow = reader.optional(
            "flow_id",
            TASK_ID,
            "Only this flow, which exists: the id of its root.",
        );
        let user = reader.optional(
            "user_id",
            text(KEY_CHARS_MAX),
            "Only flows whose root is of this user.",
        );
        let description =
            reader.optional("description", text(DESCRIPTION_CHARS_MAX), "For people.");
        let headers = reader.optional(
            "headers",
            Headers,
            "Headers to send along. Their values are never shown again.",
        );
        let ordering = reader.with_default(
            "ordering",
            ORDERING,
            Ordering::default(),
            "Which messages wait for earlier ones: `task` one notice of a task at a time, in order; `endpoint` one notice at a time; `none` nothing.",
        );
        let schedule = reader.optional(
            "schedule",
            Schedule,
            "Seconds before each attempt, instead of the server's schedule.",
        );
        let secret = reader.optional(
            "secret",
            OwnSecret,
            "A secret of your own, `whsec_` with 24 to 64 bytes in base64, that no other webhook of yours signs with; without it one is made.",
        );
        let signature = reader.with_default(
            "signature",
            SIGNATURE,
            Signature::default(),
            "How a secret that is made signs: `v1` HMAC-SHA256, `v1a` ed25519.",
        );
        let id = reader.optional(
            "id",
            Id,
            "An id of your own, that no webhook has. Needs the scope `users:any`.",
        );
        let labels = reader.optional(
            "labels",
            Labels,
            "Only tasks with these labels: each key with the value that it must have, or null for any.",
        );
        if let Some(secret) = &secret
            && reader.given("signature")
            && Signature::of(secret) != signature
        {
            let fault = Fault::new(
                "not that of the secret",
                "`v1` for `whsec_`, `v1a` for `whsk_`, or none",
            );
            reader.report("signature", fault, &signature.as_str().into());
        }
        reader.finish(|| {
            Some(Self(NewWebhook {
                owner: None,
                id,
                url: url?,
                description,
                filter: Filter {
                    events,
                    flow: flow.map(|id| id.as_flow()),
                    user: user.map(Arc::from),
                    labels: labels.unwrap_or_default(),
                },
                ordering,
                schedule,
                headers: headers.unwrap_or_default(),
                secret,
                signature,
            }))
        })
    }
}

pub(super) fn method() -> Method<Service> {
    Method {
        name: "webhooks.create",
        title: "Create Webhook",
        summary: "Send what happens to an address",
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
                    service.create_webhook(&call.context, p.0).await,
                )
            })
        },
    }
}

fn about() -> About {
    described(
        "Sends everything that happens from now on, as far as the filters want it, by signed POST \
         requests (Standard Webhooks) until each has arrived or its schedule is over. The secret is \
         in the answer. `http` is for receivers that the operator allows: an address is looked at now, a \
         name with each attempt, since its addresses may change.",
        "webhook",
        with_secret(),
        &[ErrorKind::QuotaExceeded],
        (
            "what fails",
            json!({"url": URL, "events": ["task_failed"], "user_id": "user-123", "headers": {"authorization": "Bearer token"}}),
            changed(json!({
                "id": "aa0e8400-e29b-41d4-a716-446655440000", "description": "", "events": ["task_failed"],
                "user_id": "user-123", "headers": {"authorization": "***"}, "secret": SECRET,
            })),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{ID, faults, map};
    use serde_json::json;

    #[test]
    fn everything_is_read() {
        let secret = format!("whsec_{}", "A".repeat(32));
        let given = map(
            json!({"url": "https://a.example/", "events": ["task_failed", "webhook.endpoint.failing"],
            "flow_id": ID, "user_id": "u", "description": "d", "headers": {"Authorization": "Bearer x"},
            "ordering": "endpoint", "schedule": [0, 60], "secret": secret, "signature": "v1", "id": ID,
            "labels": {"team": null}}),
        );
        let Params(new) = Params::read(&given).unwrap();
        assert_eq!(new.filter.events.unwrap().len(), 2);
        assert_eq!(&*new.headers[0].0, "authorization");
        assert_eq!(new.schedule.as_deref(), Some(&[0, 60][..]));
        assert_eq!(new.ordering, Ordering::Endpoint);
        assert_eq!(new.filter.labels.terms(), ["team"]);
    }

    #[test]
    fn every_fault_is_named_and_no_secret_repeated() {
        let given = map(
            json!({"events": ["task_done"], "headers": {"Host": "hunter2", "x-a": "hunter2\r\nb: c", "n": 1},
            "schedule": [-1], "ordering": "all", "secret": "whsec_hunter2", "signature": "v2", "description": ""}),
        );
        let violations = Params::read(&given).unwrap_err();
        assert!(!format!("{violations:?}").contains("hunter2"));
        let fields: Vec<_> = faults(Err::<(), _>(violations))
            .into_iter()
            .map(|(field, _)| field)
            .collect();
        let expected = [
            "url",
            "events",
            "description",
            "Host",
            "n",
            "x-a",
            "ordering",
            "schedule",
            "secret",
            "signature",
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn a_secret_of_ones_own_says_how_it_signs() {
        let pair = format!("whsk_{}=", "A".repeat(43));
        let both = json!({"url": "https://a.example/", "secret": pair, "signature": "v1"});
        let found = faults(Params::read(&map(both)));
        assert_eq!(
            found,
            [("signature".to_owned(), "not that of the secret".to_owned())]
        );
    }
}

//! `webhooks.recover`.

use super::answers::told;
use super::kinds::Id;
use crate::application::Service;
use crate::application::api::webhooks::{EndpointId, Recover};
use crate::transport::jsonrpc::methods::boxed;
use crate::transport::jsonrpc::reader::{Choice, Fault, Parameters, Reader, TIMESTAMP, choice};
use crate::transport::jsonrpc::table::{Changes, Method};
use crate::transport::openrpc::about::About;
use crate::transport::openrpc::about::webhooks::{HOOK, UNKNOWN, described};
use crate::transport::openrpc::schema_parts::object;
use serde_json::json;
use taskledger_domain::{Timestamp, Violation};

/// Which deliveries begin anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The endpoint whose deliveries are sent again.
    pub id: EndpointId,
    /// Which of them.
    pub which: Recover,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let id = reader.required("id", Id, "The webhook.");
        let since = reader.required(
            "since",
            TIMESTAMP,
            "Messages created at this time or later.",
        );
        let until = reader.optional("until", TIMESTAMP, "Messages created before this time.");
        let all = reader.with_default(
            "which",
            WHICH,
            false,
            "`dead`: those that were given up; `all`: those that have arrived too.",
        );
        if let (Some(since), Some(until)) = (since, until)
            && until <= since
        {
            reader.report("until", before(since), &until.to_string().into());
        }
        reader.finish(|| {
            Some(Self {
                id: id?,
                which: Recover {
                    since: since?,
                    until,
                    all,
                },
            })
        })
    }
}

/// What is wrong with a time that must be after `since`.
pub(super) fn before(since: Timestamp) -> Fault {
    Fault::new(
        "not after `since`",
        format!("a time after {since}, or none"),
    )
}

const WHICH: Choice<bool> = choice(
    "neither `dead` nor `all`",
    &[("dead", false), ("all", true)],
);

pub(super) fn method() -> Method<Service> {
    Method {
        name: "webhooks.recover",
        title: "Recover",
        summary: "Deliver again messages that were given up",
        tags: &["webhook"],
        params: Params::declared(),
        changes: Changes::Webhooks,
        about: about(),
        handler: |service, call| {
            boxed(async move {
                let p = Params::read(&call.params)?;
                let done = service
                    .recover_deliveries(&call.context, p.id, p.which)
                    .await;
                told(
                    &service,
                    &call.params,
                    done.map(|count| json!({"recovered": count})),
                )
            })
        },
    }
}

fn about() -> About {
    described(
        "Restarts the schedule of deliveries of a webhook, in their order: of those that were given up, or of all in a period. Tests are not among them.",
        "recovered",
        object(json!({"recovered": {"type": "integer", "minimum": 0}})),
        UNKNOWN,
        (
            "none was given up",
            json!({"id": HOOK, "since": "2026-01-15T10:00:00Z"}),
            json!({"recovered": 0}),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::params::testing::{ID, faults, map};
    use serde_json::json;

    #[test]
    fn a_time_that_ends_before_it_begins_is_refused() {
        let given =
            |until: &str| map(json!({"id": ID, "since": "2026-01-15T10:00:00Z", "until": until}));
        assert!(Params::read(&given("2026-01-15T10:00:01Z")).is_ok());
        for until in ["2026-01-15T10:00:00Z", "2026-01-15T09:59:59Z"] {
            let found = faults(Params::read(&given(until)));
            let expected = [("until".to_owned(), "not after `since`".to_owned())];
            assert_eq!(found, expected, "{until}");
        }
    }
}

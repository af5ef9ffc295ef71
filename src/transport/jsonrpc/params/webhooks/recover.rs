//! `webhooks.recover`.

use super::super::super::reader::{Choice, Fault, Parameters, Reader, TIMESTAMP, choice};
use super::kinds::Id;
use crate::application::api::webhooks::{EndpointId, Recover};
use taskledger_domain::{Timestamp, Violation};

/// Which deliveries begin anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// Of which endpoint.
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

#[cfg(test)]
mod tests {
    use super::super::super::testing::{ID, faults, map};
    use super::*;
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

//! `webhooks.recover`.

use super::super::super::reader::{Choice, Parameters, Reader, TIMESTAMP, choice};
use super::kinds::Id;
use crate::webhooks::endpoint::EndpointId;
use crate::webhooks::store::Recover;
use taskledger_domain::Violation;

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
        let since = reader.required("since", TIMESTAMP, "Those made at this time or after it.");
        let until = reader.optional("until", TIMESTAMP, "Those made before this time.");
        let all = reader.with_default(
            "which",
            WHICH,
            false,
            "`dead`: those that were given up; `all`: those that have arrived too.",
        );
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

const WHICH: Choice<bool> = choice(
    "neither `dead` nor `all`",
    &[("dead", false), ("all", true)],
);

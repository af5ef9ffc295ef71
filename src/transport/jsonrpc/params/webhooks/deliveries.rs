//! `webhooks.deliveries`.

use super::super::super::reader::{Choice, Parameters, Reader, TASK_ID, TIMESTAMP, choice};
use super::kinds::Id;
use super::list::{cursor, limit};
use super::recover::before;
use crate::application::api::webhooks::{DeliveryFilter, DeliveryState};
use taskledger_domain::Violation;

/// Which deliveries.
#[derive(Debug, Clone)]
pub struct Params {
    /// Which.
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

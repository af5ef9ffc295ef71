//! Writes where the values in an attempt's inputs came from.

use crate::application::api::Origin;
use serde::{Serialize, Serializer};
use taskledger_domain::{EventId, TaskId, Version};

/// The origins of an attempt.
#[derive(Debug)]
pub(in crate::transport::jsonrpc) struct LineageJson<'a>(
    pub(in crate::transport::jsonrpc) &'a [Origin],
);

#[derive(Serialize)]
struct OriginJson<'a> {
    input: &'a str,
    reference: &'a str,
    task_id: TaskId,
    attempt: u32,
    event_id: EventId,
    sequence: Version,
}

impl Serialize for LineageJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|origin| OriginJson {
            input: &origin.input,
            reference: &origin.reference,
            task_id: origin.task,
            attempt: origin.attempt,
            event_id: origin.event,
            sequence: origin.sequence,
        }))
    }
}

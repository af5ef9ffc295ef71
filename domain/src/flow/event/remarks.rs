//! Remarks of a worker beside its progress and outcome. Kept with the event and told to whoever waits for it; no rule
//! looks at it.

use crate::Payload;
use serde::{Deserialize, Serialize};

/// What a worker says beside an outcome. At least one member is there. A result, whole or not, has at most
/// `limits::PAYLOAD_BYTES_MAX` bytes, the others `limits::REMARK_BYTES_MAX`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remarks {
    /// Of progress: how far it is, in detail. Of a failure or a cancellation: what there was of a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Payload>,
    /// Of an end: how the attempt was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Payload>,
    /// Of an end: when the worker says that it was, RFC 3339, up to the nanosecond. When it was recorded is the event's
    /// own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Box<str>>,
}

impl Remarks {
    /// `None` if there is nothing to remark.
    #[must_use]
    pub fn of(data: Option<Payload>, execution: Option<Payload>) -> Option<Self> {
        (data.is_some() || execution.is_some()).then_some(Self {
            data,
            execution,
            completed_at: None,
        })
    }

    /// The same of an end, with when it was by the clock of the worker.
    #[must_use]
    pub fn of_end(remarks: Option<Self>, completed_at: &str) -> Self {
        Self {
            completed_at: Some(completed_at.into()),
            ..remarks.unwrap_or_default()
        }
    }

    /// Bytes of JSON text.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let both = [&self.data, &self.execution];
        let payloads: usize = both.into_iter().flatten().map(|it| it.as_str().len()).sum();
        payloads + self.completed_at.as_ref().map_or(0, |it| it.len())
    }
}

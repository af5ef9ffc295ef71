//! The event of a part of an attempt's output, recorded before the attempt ends.

use crate::task::Progress;
use crate::{Payload, TaskId};
use serde::{Deserialize, Serialize, Serializer};

/// See [`Event::TaskOutputAppended`](super::Event::TaskOutputAppended). The parts of an attempt follow each other
/// without a gap; a new attempt begins anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOutputAppended {
    /// In progress.
    pub task_id: TaskId,
    /// The attempt that has made it.
    pub attempt: u32,
    /// Its place among the parts of the attempt, from 1.
    pub number: u32,
    /// The part; at most `limits::OUTPUT_PART_BYTES_MAX` bytes.
    pub part: OutputPart,
    /// How far the attempt was then.
    #[serde(default, skip_serializing_if = "Progress::is_zero")]
    pub progress: Progress,
}

/// A part of the output of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputPart {
    /// Text that continues the text before it.
    Text(String),
    /// An object.
    Data(Payload),
}

impl OutputPart {
    /// Bytes of its JSON text, roughly: escapes are not counted. Cost: O(1).
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Data(data) => data.as_str().len(),
        }
    }

    /// The part as callers write and read it: a text or an object.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize_plain<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Data(data) => data.serialize(serializer),
        }
    }
}

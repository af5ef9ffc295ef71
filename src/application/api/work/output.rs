//! What workers produce: parts of an output, and results.

use serde::{Deserialize, Serialize};
use taskledger_domain::Payload;
use taskledger_domain::contract::TooLarge;
use taskledger_domain::flow::OutputPart;

/// A part of the output of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Appends {
    /// The part; at most `limits::OUTPUT_PART_BYTES_MAX` bytes.
    pub part: OutputPart,
    /// Its place among the parts of the attempt, from 1: one that is there already changes nothing.
    pub number: u32,
}

/// The result of a task as a worker gives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// A result as tasks can have it.
    Whole(Payload),
    /// One with more bytes than a result may have, of which the door has kept its size: it is refused, and the history
    /// tells that.
    TooLarge(TooLarge),
}

impl From<Result<Payload, TooLarge>> for Output {
    fn from(output: Result<Payload, TooLarge>) -> Self {
        match output {
            Ok(whole) => Self::Whole(whole),
            Err(large) => Self::TooLarge(large),
        }
    }
}

impl Output {
    /// The result, if it can be one.
    #[must_use]
    pub const fn whole(&self) -> Option<&Payload> {
        match self {
            Self::Whole(whole) => Some(whole),
            Self::TooLarge(_) => None,
        }
    }
}

//! What workers make: parts on the way, and results.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use taskledger_domain::Payload;
use taskledger_domain::contract::TooLarge;
use taskledger_domain::flow::OutputPart;
use taskledger_domain::payload::Unfit;

/// A part of the output of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Appends {
    /// The part; at most `limits::OUTPUT_PART_BYTES_MAX` bytes.
    pub part: OutputPart,
    /// Its place among the parts of the attempt, from 1: one that is there already changes nothing.
    pub number: u32,
}

/// What a worker says that came of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// A result as tasks can have it.
    Whole(Payload),
    /// One with more bytes than a result may have, of which the door has kept its size: it is refused, and the history
    /// tells that.
    TooLarge(TooLarge),
}

impl Output {
    /// Of an object, which may be too large. Cost: O(bytes).
    ///
    /// # Errors
    /// It has too many levels.
    pub fn of(members: &Map<String, Value>) -> Result<Self, Unfit> {
        match Payload::checked(members) {
            Ok(whole) => Ok(Self::Whole(whole)),
            Err(Unfit::TooLarge(bytes)) => Ok(Self::TooLarge(TooLarge::of(members, bytes))),
            Err(unfit @ Unfit::TooDeep(_)) => Err(unfit),
        }
    }

    /// The result, if it can be one.
    #[must_use]
    pub const fn whole(&self) -> Option<&Payload> {
        match self {
            Self::Whole(whole) => Some(whole),
            Self::TooLarge(_) => None,
        }
    }
}

//! The JSON of a result, whole or in pieces.

use crate::application::api::{Cut, Encoded, Pieces};
use futures_util::TryStreamExt;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// The JSON of a result.
#[derive(Debug)]
pub enum Text {
    /// All of it.
    Whole(Box<RawValue>),
    /// Piece by piece.
    Pieces(Pieces),
}

/// Why pieces did not become one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotWhole {
    /// They are longer than the receiver takes.
    TooLong,
    /// They stopped before the end.
    Cut,
}

impl From<Box<RawValue>> for Text {
    fn from(text: Box<RawValue>) -> Self {
        Self::Whole(text)
    }
}

impl From<Encoded> for Text {
    fn from(answer: Encoded) -> Self {
        match answer {
            Encoded::Whole(bytes) => {
                let text = json(bytes).expect("the encoders of this door write JSON");
                Self::Whole(text)
            }
            Encoded::Pieces(pieces) => Self::Pieces(pieces),
        }
    }
}

impl Text {
    /// All of it in memory.
    ///
    /// # Errors
    /// [`NotWhole`].
    pub async fn whole(self, bytes_max: usize) -> Result<Box<RawValue>, NotWhole> {
        let mut pieces = match self {
            Self::Whole(text) => return Ok(text),
            Self::Pieces(pieces) => pieces,
        };
        let mut all = Vec::new();
        while let Some(piece) = pieces.try_next().await.map_err(|Cut| NotWhole::Cut)? {
            if all.len() + piece.len() > bytes_max {
                return Err(NotWhole::TooLong);
            }
            all.extend(piece);
        }
        json(all).ok_or(NotWhole::Cut)
    }
}

/// A value as JSON. Cost: O(size), one pass.
#[must_use]
pub fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("answers can always be written as JSON")
}

fn json(bytes: Vec<u8>) -> Option<Box<RawValue>> {
    let text = String::from_utf8(bytes).ok()?;
    RawValue::from_string(text).ok()
}

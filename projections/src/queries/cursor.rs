//! The cursor of a list: an opaque short text.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use taskledger_domain::Position;

/// The order of a list, by creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Order {
    /// Oldest first.
    Ascending,
    /// Newest first.
    #[default]
    Descending,
}

/// The last task of a page and the direction in which the list goes on. Stays valid for ever, also
/// when that task is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) order: Order,
    pub(crate) position: Position,
}

impl Cursor {
    /// Reads a cursor that was given for a list in `order`.
    ///
    /// # Errors
    /// [`Error::BadCursor`] for every other text.
    pub fn parse(text: &str, order: Order) -> Result<Self, Error> {
        let (letter, digits) = text.split_at_checked(1).ok_or(Error::BadCursor)?;
        let position = Position::from_str_radix(digits, 16).map_err(|_| Error::BadCursor)?;
        let cursor = Self { order, position };
        let in_range = i64::try_from(position).is_ok();
        // Only the text that this program writes is taken: no sign, no leading zero, no capitals.
        if in_range && letter == order.letter() && cursor.to_string() == text {
            Ok(cursor)
        } else {
            Err(Error::BadCursor)
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:x}", self.order.letter(), self.position)
    }
}

impl Order {
    const fn letter(self) -> &'static str {
        match self {
            Self::Ascending => "u",
            Self::Descending => "d",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, Order};

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        for order in [Order::Ascending, Order::Descending] {
            for position in [0, 1, 255, u64::from(u32::MAX), i64::MAX as u64] {
                let cursor = Cursor { order, position };
                assert_eq!(Cursor::parse(&cursor.to_string(), order).unwrap(), cursor);
            }
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "d",
            "u1f",
            "d+1",
            "d01",
            "dA",
            "d-1",
            "x1",
            "é1",
            "d 1",
            "d8000000000000000",
            "dfffffffffffffffff",
        ] {
            assert!(Cursor::parse(text, Order::Descending).is_err(), "{text}");
        }
    }
}

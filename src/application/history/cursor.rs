//! Where a page of a history ended.

use std::fmt;
use taskledger_domain::Version;
use taskledger_projections::Order;

/// See the module. Written as `a120` (oldest first), `d120` (newest first), and with `-77` behind
/// when the page ended while it looked back for the start of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub(super) order: Order,
    /// The last version that is done with; for the newest first, those below follow.
    pub(super) at: Version,
    /// The next event is the end of a run whose start has not been found from this version on.
    pub(super) search: Option<Version>,
}

impl Cursor {
    /// Reads the text of a cursor for pages in this order; `None` when it is none.
    #[must_use]
    pub fn parse(text: &str, order: Order) -> Option<Self> {
        let rest = text.strip_prefix(letter(order))?;
        let number = |digits: &str| -> Option<Version> {
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            // Versions are stored as signed numbers.
            plain
                .then(|| digits.parse().ok())
                .flatten()
                .filter(|version| *version < i64::MAX as Version)
        };
        let (at, search) = match rest.split_once('-') {
            Some((at, search)) => (at, Some(number(search)?)),
            None => (rest, None),
        };
        Some(Self {
            order,
            at: number(at)?,
            search,
        })
    }
}

const fn letter(order: Order) -> char {
    match order {
        Order::Ascending => 'a',
        Order::Descending => 'd',
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", letter(self.order), self.at)?;
        match self.search {
            Some(search) => write!(f, "-{search}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, Order};

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_only_in_its_order() {
        for (text, order) in [
            ("a0", Order::Ascending),
            ("a120-77", Order::Ascending),
            ("d5", Order::Descending),
        ] {
            let cursor = Cursor::parse(text, order).unwrap();
            assert_eq!(cursor.to_string(), text);
        }
        assert_eq!(Cursor::parse("a5", Order::Descending), None);
        for text in [
            "",
            "a",
            "5",
            "a+5",
            "a-5",
            "a5-",
            "a5-x",
            "a99999999999999999999",
            "a9223372036854775807",
        ] {
            assert_eq!(Cursor::parse(text, Order::Ascending), None, "{text}");
        }
    }
}

//! The cursor of `events.query`: the place where a page ended.

use std::fmt;
use taskledger_projections::Order;

/// Where the next page begins. Written as `pa120` (by position, oldest first), `pd120` (newest first), or
/// with `v` in place of `p` by version within one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub(super) order: Order,
    pub(super) is_of_flow: bool,
    /// The last place that is done with.
    pub(super) at: u64,
}

impl Cursor {
    /// Reads the text of a cursor for pages in this order; `None` when it is none.
    #[must_use]
    pub fn parse(text: &str, order: Order, is_of_flow: bool) -> Option<Self> {
        let digits = text.strip_prefix(prefix(order, is_of_flow))?;
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        // Positions and versions are stored as signed numbers.
        let at = plain.then(|| digits.parse().ok()).flatten();
        let at = at.filter(|at| *at < i64::MAX.cast_unsigned())?;
        Some(Self {
            order,
            is_of_flow,
            at,
        })
    }
}

const fn prefix(order: Order, is_of_flow: bool) -> &'static str {
    match (order, is_of_flow) {
        (Order::Ascending, false) => "pa",
        (Order::Descending, false) => "pd",
        (Order::Ascending, true) => "va",
        (Order::Descending, true) => "vd",
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", prefix(self.order, self.is_of_flow), self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, Order};

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_only_in_its_list() {
        for (text, order, is_of_flow) in [
            ("pa0", Order::Ascending, false),
            ("pd77", Order::Descending, false),
            ("va1", Order::Ascending, true),
            ("vd5", Order::Descending, true),
        ] {
            let cursor = Cursor::parse(text, order, is_of_flow).unwrap();
            assert_eq!(cursor.to_string(), text);
            assert_eq!(Cursor::parse(text, order, !is_of_flow), None);
        }
        assert_eq!(Cursor::parse("pa5", Order::Descending, false), None);
        for text in ["", "pa", "5", "pa-5", "pa+5", "pa9223372036854775807"] {
            assert_eq!(Cursor::parse(text, Order::Ascending, false), None, "{text}");
        }
    }
}

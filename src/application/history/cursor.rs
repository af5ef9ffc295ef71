//! The cursor of `tasks.history`: the place where a page ended.

use serde::{Deserialize, Serialize};
use std::fmt;
use taskledger_domain::Version;
use taskledger_projections::Order;

/// Where the next page begins. Written as `a120` (oldest first), `d120` (newest first), with `-77` behind when
/// the page ended while it looked back for the start of a run, and with `+5` behind all that when
/// the creation of the task was found (`+5`) or looked for (`~5`) at that version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    pub(super) order: Order,
    /// The last version that is done with; for the newest first, those below follow.
    pub(super) at: Version,
    /// The next event is the end of a run whose start has not been found from this version on.
    pub(super) search: Option<Version>,
    /// What is known of the task's creation, so that later pages need not look for it again.
    pub(super) creation: Option<Creation>,
}

/// Where a task was created. Comes back from the caller, so it is believed only when the event
/// there says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Creation {
    /// At this version.
    At(Version),
    /// Below this version.
    Below(Version),
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
        let (rest, creation) = if let Some((rest, at)) = rest.split_once('+') {
            (rest, Some(Creation::At(number(at)?)))
        } else if let Some((rest, below)) = rest.split_once('~') {
            (rest, Some(Creation::Below(number(below)?)))
        } else {
            (rest, None)
        };
        let (at, search) = match rest.split_once('-') {
            Some((at, search)) => (at, Some(number(search)?)),
            None => (rest, None),
        };
        Some(Self {
            order,
            at: number(at)?,
            search,
            creation,
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
        if let Some(search) = self.search {
            write!(f, "-{search}")?;
        }
        match self.creation {
            Some(Creation::At(version)) => write!(f, "+{version}"),
            Some(Creation::Below(version)) => write!(f, "~{version}"),
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
            ("d5+3", Order::Descending),
            ("a120-77+3", Order::Ascending),
            ("a0~900", Order::Ascending),
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
            "a5+",
            "a5~x",
            "a5~1+2",
            "a99999999999999999999",
            "a9223372036854775807",
        ] {
            assert_eq!(Cursor::parse(text, Order::Ascending), None, "{text}");
        }
    }
}

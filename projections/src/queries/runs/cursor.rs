//! The cursor of a list of runs.

use super::RunFilter;
use crate::Error;
use std::fmt;
use taskledger_domain::flow::RunStage;
use taskledger_domain::{Position, Timestamp};

/// The end of a page of runs: a run, as the log was at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCursor {
    pub(super) upto: Position,
    pub(super) at: Timestamp,
    pub(super) no: i64,
    /// Fingerprint of the list's filter.
    pub(super) filter: u32,
    /// Runs in the list.
    pub(super) total: u64,
}

impl RunCursor {
    /// Reads what [`fmt::Display`] writes.
    ///
    /// # Errors
    /// [`Error::BadCursor`] for every other text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let read = |part: &str| i64::from_str_radix(part, 16).ok().filter(|n| *n >= 0);
        let parts: Option<Vec<i64>> = text.split('-').map(read).collect();
        let Some([upto, at, no, filter, total]) = parts.as_deref() else {
            return Err(Error::BadCursor);
        };
        let cursor = Self {
            upto: upto.unsigned_abs(),
            at: Timestamp(*at),
            no: *no,
            filter: u32::try_from(*filter).map_err(|_| Error::BadCursor)?,
            total: total.unsigned_abs(),
        };
        match cursor.to_string() == text {
            true => Ok(cursor),
            false => Err(Error::BadCursor),
        }
    }

    /// Whether it was made by a list with this filter.
    #[must_use]
    pub fn is_of(&self, filter: &RunFilter) -> bool {
        self.filter == filter.fingerprint()
    }
}

impl RunFilter {
    /// Tells filters apart: FNV-1a of its members. Of its owner too: a cursor has how many runs the list holds.
    pub(super) fn fingerprint(&self) -> u32 {
        let since = self.since.map(|since| since.0.to_string());
        let stage = self.stage.map(RunStage::as_str);
        let members = [
            self.owner.as_deref(),
            self.context.as_deref(),
            stage,
            since.as_deref(),
        ];
        let mut hash = 0x811c_9dc5_u32;
        for member in members {
            let mark = [u8::from(member.is_some())];
            for byte in member.unwrap_or_default().bytes().chain(mark) {
                hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
            }
        }
        hash
    }
}

impl fmt::Display for RunCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            upto,
            at,
            no,
            filter,
            total,
        } = self;
        write!(f, "{upto:x}-{:x}-{no:x}-{filter:x}-{total:x}", at.0)
    }
}

#[cfg(test)]
mod tests {
    use super::RunCursor;
    use taskledger_domain::Timestamp;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_nothing_else_is() {
        let cursor = RunCursor {
            upto: 300,
            at: Timestamp(1_736_937_000_123_456),
            no: 17,
            filter: 7,
            total: 20,
        };
        assert_eq!(RunCursor::parse(&cursor.to_string()).ok(), Some(cursor));
        for text in [
            "",
            "1",
            "1-2-3-4",
            "1-2-3-4-5-6",
            "01-2-3-4-5",
            "1-2--3-4-5",
            "1-2-g-4-5",
            "1-2-+3-4-5",
            "1-2-3-100000000-5",
        ] {
            assert!(RunCursor::parse(text).is_err(), "{text}");
        }
    }
}

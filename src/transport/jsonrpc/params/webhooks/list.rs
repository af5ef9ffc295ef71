//! `webhooks.list`.

use super::super::super::reader::{Fault, Parameters, Reader, integer, text};
use taskledger_domain::Violation;

/// Webhooks in a page.
pub const LIMIT_MAX: u32 = 100;
/// Characters of a cursor: a number of 19 digits.
const CURSOR_CHARS_MAX: usize = 19;

/// Which page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// Webhooks in it, at most.
    pub limit: usize,
    /// Where the page before ended.
    pub after: i64,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let limit = limit(&mut reader, "Webhooks in the page, at most.");
        let after = cursor(&mut reader);
        reader.finish(|| {
            Some(Self {
                limit,
                after: after.unwrap_or(0),
            })
        })
    }
}

/// Asks for `limit`.
pub(super) fn limit(reader: &mut Reader<'_>, description: &'static str) -> usize {
    let limits = integer(1..=u64::from(LIMIT_MAX));
    let limit = reader.with_default("limit", limits, u64::from(LIMIT_MAX), description);
    usize::try_from(limit).expect("the range of a limit fits")
}

/// Asks for `cursor`.
pub(super) fn cursor(reader: &mut Reader<'_>) -> Option<i64> {
    let given = reader.optional(
        "cursor",
        text(CURSOR_CHARS_MAX),
        "The `next_cursor` of an earlier page of the same list.",
    )?;
    let parsed = given.parse().ok().filter(|number| *number > 0);
    if parsed.is_none() {
        let fault = Fault::new("not a cursor", "a `next_cursor` of the same list");
        // What the schema takes is not wrong for what it is, so nothing is shown as such.
        reader.report("cursor", fault, &serde_json::Value::Null);
    }
    parsed
}

//! What must hold of a log, whichever backend holds it: for `events verify`.
//!
//! Owns: the faults, and the rules along positions and versions. Backends read the rows.

use super::row::{Damage, Row};
use serde::Serialize;
use std::fmt;
use taskledger_domain::{FlowId, Position, Timestamp, Version};

/// Faults that are listed; the rest is counted. A person reads them.
pub const FAULTS_LISTED_MAX: usize = 100;
/// Rows between two reports of progress, and in one read.
pub(super) const PAGE_ROWS_MAX: u64 = 1_000;
/// Streams in one read.
pub(super) const PAGE_STREAMS_MAX: i64 = 500;

/// Something in the log that cannot be believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The row, when the fault is about one.
    pub position: Option<Position>,
    /// The stream, when it is known.
    pub stream: Option<FlowId>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = self.position {
            write!(f, "position {position}, ")?;
        }
        if let Some(stream) = self.stream {
            write!(f, "flow `{stream}`, ")?;
        }
        f.write_str(&self.reason)
    }
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Position of the last event when the walk began.
    pub head: Position,
    /// Events that were read and believed.
    pub events: u64,
    /// Streams that were looked at.
    pub streams: u64,
    /// The first [`FAULTS_LISTED_MAX`] faults.
    pub faults: Vec<Fault>,
    /// Faults beyond those.
    pub more_faults: u64,
}

impl Report {
    /// Whether every rule holds.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty() && self.more_faults == 0
    }

    pub(super) fn add(
        &mut self,
        position: Option<Position>,
        stream: Option<FlowId>,
        reason: String,
    ) {
        if self.faults.len() < FAULTS_LISTED_MAX {
            self.faults.push(Fault {
                position,
                stream,
                reason,
            });
        } else {
            self.more_faults += 1;
        }
    }
}

/// How far the walk along the positions is.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) after: Position,
    recorded_at: Timestamp,
}

impl Walk {
    /// The next row that was read, with what was found of it.
    pub(super) fn row(&mut self, read: Result<Row<'_>, Damage>, report: &mut Report) {
        let read = read.and_then(|row| {
            row.decode()?;
            Ok(row)
        });
        let position = match &read {
            Ok(row) => row.position,
            Err(damage) => damage.position,
        };
        self.skip_to(position, report);
        self.after = position;
        match read {
            Ok(row) => {
                report.events += 1;
                if row.recorded_at < self.recorded_at {
                    let reason = "it was recorded before its predecessor".to_owned();
                    report.add(Some(position), Some(row.flow), reason);
                }
                self.recorded_at = row.recorded_at;
            }
            Err(damage) => report.add(Some(damage.position), damage.flow, damage.reason),
        }
    }

    /// The next row is `position`: whatever lies between is missing.
    pub(super) fn skip_to(&mut self, position: Position, report: &mut Report) {
        let first = self.after + 1;
        if position > first {
            let reason = if position == first + 1 {
                "the row is missing".to_owned()
            } else {
                format!("the rows up to position {} are missing", position - 1)
            };
            report.add(Some(first), None, reason);
            self.after = position - 1;
        }
    }
}

/// A stream as the table of streams has it, and as its events have it.
#[derive(Debug)]
pub(super) struct StreamRow {
    pub(super) flow: Option<FlowId>,
    pub(super) version: i64,
    pub(super) last_position: i64,
    /// How many events, their first and last version, and their last position.
    pub(super) events: (i64, i64, i64, i64),
}

impl StreamRow {
    /// Compares both; true when a version is missing or out of order.
    pub(super) fn check(&self, report: &mut Report) -> bool {
        let (count, min, max, max_position) = self.events;
        report.streams += 1;
        if self.version != max || self.last_position != max_position {
            let reason = format!(
                "the table of streams says version {} at position {}, the events end with version \
                 {max} at position {max_position}",
                self.version, self.last_position
            );
            report.add(Some(max_position.cast_unsigned()), self.flow, reason);
        }
        min != 1 || count != max
    }
}

/// Names the gaps among the versions of a stream, each with the position of its event, in order.
pub(super) fn name_missing_versions(
    versions: impl Iterator<Item = (Version, Position)>,
    flow: Option<FlowId>,
    report: &mut Report,
) {
    let mut expected = 1;
    for (version, position) in versions {
        if version != expected {
            let reason = format!("version {version} follows version {}", expected - 1);
            report.add(Some(position), flow, reason);
        }
        expected = version.saturating_add(1);
    }
    if expected == 1 {
        report.add(None, flow, "the stream has no events".to_owned());
    }
}

//! The checks of `events verify`, for every backend.
//!
//! Owns: the faults, and the rules along positions and versions. Backends read the rows.

pub(super) mod snapshots;

use super::chain::{Chain, Followed, Mark, Remains, Step};
use super::retention::{ARCHIVED_KIND, Dropped};
use super::row::{Damage, Row};
use super::witness::LostEvents;
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

/// The findings of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Position of the last event when the walk began.
    pub head: Position,
    /// Events that were read and believed.
    pub events: u64,
    /// Streams that were looked at.
    pub streams: u64,
    /// Events that were dropped because their flows were archived.
    pub dropped: u64,
    /// The hash chain from its beginning to the head, as it was computed; absent when no event has a
    /// hash yet.
    pub chain: Option<Followed>,
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

    /// Adds what other stores have read and the log does not have.
    pub fn compared(&mut self, lost: &LostEvents) {
        for conflict in &lost.conflicts {
            let reason = format!("{conflict}: the log has lost events");
            self.add(Some(conflict.witness().position), None, reason);
        }
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

/// The state of the walk along the positions.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) after: Position,
    recorded_at: Timestamp,
    /// Missing positions of the present page, first and last of each run.
    holes: Vec<(Position, Position)>,
    /// Missing positions that dropped events may have had.
    missing: u64,
    /// Events and damaged rows of the present page.
    steps: Vec<Step>,
    chain: Chain,
}

impl Walk {
    /// Of a log whose hash chain must go through `kept`.
    pub(super) fn with(kept: Option<Mark>) -> Self {
        Self {
            chain: Chain::with(kept),
            ..Self::default()
        }
    }

    /// A row that nothing is known of.
    pub(super) fn unreadable(&mut self, reason: String, report: &mut Report) {
        self.after += 1;
        self.steps.push(Step::Damaged(self.after));
        report.add(Some(self.after), None, reason);
    }

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
        self.skip_to(position);
        self.after = position;
        match read {
            Ok(row) => {
                report.events += 1;
                if row.recorded_at < self.recorded_at {
                    let reason = "it was recorded before its predecessor".to_owned();
                    report.add(Some(position), Some(row.flow), reason);
                }
                self.recorded_at = row.recorded_at;
                self.steps.push(row.step());
            }
            Err(damage) => {
                self.steps.push(Step::Damaged(damage.position));
                report.add(Some(damage.position), damage.flow, damage.reason);
            }
        }
    }

    /// The next row is `position`: whatever lies between is missing.
    pub(super) fn skip_to(&mut self, position: Position) {
        let first = self.after + 1;
        if position > first {
            self.holes.push((first, position - 1));
            self.after = position - 1;
        }
    }

    /// Ends a page. `dropped` and `remains` (of the positions of the page) are what the log said after
    /// the page was read; of an event that was dropped meanwhile both may be there.
    pub(super) fn page_ends(
        &mut self,
        dropped: Dropped,
        remains: Vec<Remains>,
        report: &mut Report,
    ) {
        let mut remains = remains.into_iter().peekable();
        for step in std::mem::take(&mut self.steps) {
            while let Some(r) = remains.next_if(|r| r.position < step.position()) {
                self.follow(&Step::Dropped(r), report);
            }
            remains.next_if(|r| r.position == step.position());
            self.follow(&step, report);
        }
        for r in remains {
            self.follow(&Step::Dropped(r), report);
        }
        for (first, last) in self.holes.drain(..) {
            let may_be_dropped = last.min(dropped.horizon).saturating_sub(first - 1);
            self.missing += may_be_dropped;
            let first = first + may_be_dropped;
            if first > last {
                continue;
            }
            let reason = if first == last {
                "the row is missing".to_owned()
            } else {
                format!("the rows up to position {last} are missing")
            };
            report.add(Some(first), None, reason);
        }
    }

    fn follow(&mut self, step: &Step, report: &mut Report) {
        if let Err(reason) = self.chain.step(step) {
            report.add(Some(step.position()), None, reason);
        }
    }

    /// Ends the walk. `dropped` is what the log said after it.
    pub(super) fn ends(&self, dropped: Dropped, report: &mut Report) {
        report.dropped = dropped.events;
        report.chain = self.chain.followed();
        if let Err(reason) = self.chain.finish() {
            report.add(None, None, reason);
        }
        if self.missing > dropped.events {
            let more = self.missing - dropped.events;
            let reason = format!(
                "{} rows up to position {} are missing, but only {} were dropped with archived \
                 flows: {more} are lost",
                self.missing, dropped.horizon, dropped.events
            );
            report.add(None, None, reason);
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

/// What is left of a flow of which events were dropped, and its stream.
#[derive(Debug)]
pub(super) struct DroppedFlow {
    pub(super) flow: Option<FlowId>,
    /// How many dropped events, their last version and last position.
    pub(super) dropped: (i64, i64, i64),
    /// Version and last position of the stream; `None`: the log has no such flow.
    pub(super) stream: Option<(i64, i64)>,
    /// Whether the last event of the stream archives the flow.
    pub(super) is_archived: bool,
    /// Events of the stream that are there.
    pub(super) events: i64,
}

impl DroppedFlow {
    /// Only the events of an archived flow may be dropped, and each of them leaves one row.
    pub(super) fn check(&self, report: &mut Report) {
        let (count, version, position) = self.dropped;
        let mut add = |reason| report.add(Some(position.cast_unsigned()), self.flow, reason);
        let Some((last_version, last_position)) = self.stream else {
            add(format!(
                "{count} of its events were dropped, but the log has no such flow, so it was not archived"
            ));
            return;
        };
        if !self.is_archived {
            add(format!(
                "{count} of its events were dropped, but it was not archived: it does not end with `{ARCHIVED_KIND}`"
            ));
        }
        if version >= last_version || position >= last_position {
            add("a dropped event follows the last event of its flow".to_owned());
        }
        // Events without a hash leave no row when they are dropped.
        let is_chained = report.chain.is_some_and(|chain| chain.from == 1);
        let known = count + self.events;
        if known > last_version || (is_chained && known < last_version) {
            let reason = format!(
                "it has {last_version} versions, but {} events and {count} dropped ones",
                self.events
            );
            report.add(Some(position.cast_unsigned()), self.flow, reason);
        }
    }
}

/// Compares the number of events that were dropped with the number of rows that they left.
pub(super) fn count_dropped(events: i64, rows: i64, report: &mut Report) {
    let is_chained = report.chain.is_some_and(|chain| chain.from == 1);
    if rows > events || (is_chained && rows < events) {
        let reason = format!("{events} events were counted as dropped, but {rows} have left a row");
        report.add(None, None, reason);
    }
}

/// An event of a stream whose versions are looked at.
pub(super) struct StreamEntry {
    pub(super) version: Version,
    pub(super) position: Position,
    /// It says that the flow was archived, so what stood before it may be gone.
    pub(super) is_end: bool,
}

/// Names the gaps among the versions of a stream, each with the position of its event, in order.
pub(super) fn name_missing_versions(
    events: impl Iterator<Item = StreamEntry>,
    flow: Option<FlowId>,
    report: &mut Report,
) {
    let mut expected = 1;
    let mut ended = false;
    for event in events {
        if ended {
            let reason = "it follows the end of an archived flow".to_owned();
            report.add(Some(event.position), flow, reason);
        } else if event.version != expected && !event.is_end {
            let reason = format!("version {} follows version {}", event.version, expected - 1);
            report.add(Some(event.position), flow, reason);
        }
        ended = event.is_end;
        expected = event.version.saturating_add(1);
    }
    if expected == 1 {
        report.add(None, flow, "the stream has no events".to_owned());
    }
}

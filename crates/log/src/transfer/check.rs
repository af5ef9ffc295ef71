//! The rules that an export must keep to be imported.

use super::ExportedEvent;
use crate::retention::{ARCHIVED_KIND, Dropped};
use std::collections::HashMap;
use taskledger_domain::flow::Event;
use taskledger_domain::{FlowId, Position, TaskId, Timestamp, Version, codec};

/// An event that may be written.
#[derive(Debug, Clone)]
pub struct Checked {
    /// As it was read.
    pub line: ExportedEvent,
    /// Number of its stream, from 1 in order of first appearance.
    pub stream: u64,
    /// The task whose id it takes, unless that is the flow's.
    pub claims: Option<TaskId>,
}

/// The end of a stream, as far as it was imported.
#[derive(Debug, Clone, Copy)]
pub struct StreamEnd {
    /// The number by which the log identifies the stream.
    pub number: u64,
    /// Version of its last event.
    pub version: Version,
    /// Position of its last event.
    pub position: Position,
    /// Whether that says that the flow was archived.
    pub is_archived: bool,
}

/// The rules of a log, checked line by line. Memory: O(flows).
#[derive(Debug, Default)]
pub struct Checker {
    position: Position,
    recorded_at: Option<Timestamp>,
    streams: HashMap<FlowId, StreamEnd>,
    /// Positions that no line had.
    missing: u64,
    /// The first of them, for the person who gave the lines.
    first_missing: Option<Position>,
    /// Versions that stand before the end of archived flows, and that no line had.
    archived: u64,
    /// The lines are whole flows of a log.
    is_archive: bool,
}

impl Checker {
    /// For the lines of an archive, which is a part of a log.
    #[must_use]
    pub fn of_archive() -> Self {
        Self {
            is_archive: true,
            ..Self::default()
        }
    }

    /// Whether nothing is missing but what was archived, once all events were checked.
    ///
    /// # Errors
    /// What is missing.
    pub fn finish(&self) -> Result<(), String> {
        match self.first_missing {
            Some(first) if !self.is_archive && self.missing != self.archived => Err(format!(
                "no line has `position` {first}: {} positions are missing, {} of them were archived; \
                 a log is imported whole and in order",
                self.missing, self.archived
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks the next event of the log. Cost: O(size).
    ///
    /// # Errors
    /// What is wrong with it, naming the member.
    pub fn check(&mut self, line: ExportedEvent) -> Result<Checked, String> {
        let expected = self.position + 1;
        if line.position < expected {
            return Err(format!(
                "`position` is {}, expected {expected} or more: a log is imported in order",
                line.position
            ));
        }
        let ends = line.kind == ARCHIVED_KIND;
        if self.recorded_at.is_some_and(|last| line.recorded_at < last) {
            return Err("`recorded_at` is before that of the event before it".to_owned());
        }
        let number = self.streams.len() as u64 + 1;
        let stream = self.streams.entry(line.flow_id).or_insert(StreamEnd {
            number,
            version: 0,
            position: 0,
            is_archived: false,
        });
        if stream.is_archived {
            return Err(format!(
                "flow `{}` was archived: nothing follows its last event",
                line.flow_id
            ));
        }
        if line.version <= stream.version || (line.version != stream.version + 1 && !ends) {
            if line.position > expected {
                return Err(format!(
                    "`position` is {}, expected {expected}: a log is imported whole and in order",
                    line.position
                ));
            }
            return Err(format!(
                "`version` is {}, expected {} in flow `{}`",
                line.version,
                stream.version + 1,
                line.flow_id
            ));
        }
        let event = codec::decode(&line.kind, line.schema_version, line.data.get())
            .map_err(|e| format!("`data`: {e}"))?;
        if line.position > expected {
            self.missing += line.position - expected;
            self.first_missing.get_or_insert(expected);
        }
        self.archived += line.version - stream.version - 1;
        self.position = line.position;
        self.recorded_at = Some(line.recorded_at);
        *stream = StreamEnd {
            version: line.version,
            position: line.position,
            is_archived: ends,
            ..*stream
        };
        Ok(Checked {
            stream: stream.number,
            claims: claims(&event, line.flow_id),
            line,
        })
    }
}

/// What is missing among positions that are written in order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gaps {
    last: Position,
    dropped: Dropped,
}

impl Gaps {
    /// The next position.
    pub(crate) const fn next(&mut self, position: Position) {
        let missing = position - self.last - 1;
        if missing > 0 {
            self.dropped.horizon = position - 1;
            self.dropped.events += missing;
        }
        self.last = position;
    }

    /// For the log's own count.
    pub(crate) const fn dropped(&self) -> Dropped {
        self.dropped
    }
}

/// Task ids are unique in a log; the id of a root is that of its flow and needs no claim.
fn claims(event: &Event, flow: FlowId) -> Option<TaskId> {
    let Event::TaskCreated(created) = event else {
        return None;
    };
    (created.task_id != flow.root()).then_some(created.task_id)
}

#[cfg(test)]
mod tests {
    use super::super::tests::line;
    use super::*;
    use serde_json::value::RawValue;

    #[test]
    fn a_log_with_a_gap_or_an_unknown_event_is_refused_with_the_member_at_fault() {
        let refused = |lines: Vec<ExportedEvent>| {
            let mut checker = Checker::default();
            let checked: Result<Vec<_>, _> = lines.into_iter().map(|l| checker.check(l)).collect();
            checked.unwrap_err()
        };
        assert!(refused(vec![line(1, 1), line(1, 2)]).starts_with("`position` is 1, expected 2"));
        assert!(refused(vec![line(1, 1), line(2, 3)]).starts_with("`version` is 3, expected 2"));
        let mut unknown = line(1, 1);
        unknown.kind = "TaskVanished".to_owned();
        assert!(refused(vec![unknown]).starts_with("`data`: unknown event kind"));
        let mut early = line(2, 2);
        early.recorded_at = Timestamp(0);
        assert!(refused(vec![line(1, 1), early]).starts_with("`recorded_at`"));
    }

    fn end(position: Position, version: Version) -> ExportedEvent {
        let mut end = line(position, version);
        end.kind = ARCHIVED_KIND.to_owned();
        let data = r#"{"file":"f","sha256":"s","events":1}"#.to_owned();
        end.data = RawValue::from_string(data).unwrap();
        end
    }

    #[test]
    fn only_what_was_archived_may_be_missing() {
        let finished = |lines: Vec<ExportedEvent>, mut checker: Checker| {
            for line in lines {
                checker.check(line).unwrap();
            }
            checker.finish()
        };
        let log = Checker::default;
        assert!(finished(vec![line(1, 1), line(2, 2)], log()).is_ok());
        assert!(finished(vec![end(3, 3)], log()).is_ok());
        assert!(finished(vec![line(1, 1), end(3, 3)], log()).is_ok());
        let lost = finished(vec![line(2, 1)], log()).unwrap_err();
        assert!(
            lost.contains("`position` 1: 1 positions are missing, 0 of"),
            "{lost}"
        );
        assert!(finished(vec![end(4, 3)], log()).is_err());
        assert!(finished(vec![line(2, 1)], Checker::of_archive()).is_ok());
    }

    #[test]
    fn nothing_follows_the_end_of_an_archived_flow() {
        let mut checker = Checker::default();
        checker.check(end(3, 3)).unwrap();
        let refused = checker.check(line(4, 4)).unwrap_err();
        assert!(refused.contains("was archived"), "{refused}");
    }
}

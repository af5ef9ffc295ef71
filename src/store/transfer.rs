//! A log as lines of JSON: how it leaves one backend and enters another.
//!
//! Owns: the form of a line, the digest over lines, and the rules that a log must keep to be taken
//! in. Backends read and write ([`Source`], [`Target`]); nothing here touches a database.

use super::Error;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use taskledger_domain::flow::Event;
use taskledger_domain::{EventId, FlowId, Position, TaskId, Timestamp, Version, codec};

/// Events or keys that are read, or written, at a time.
pub const PAGE_EVENTS_MAX: usize = 1_000;
/// Payload bytes after which a page ends.
pub const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of one line that is taken in: an event of the largest size, with room for its other members.
pub const LINE_BYTES_MAX: usize = 80 * 1024 * 1024;

/// One event as a line. Times are RFC 3339, ids are text, `data` is the event as it was written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportedEvent {
    /// Place in the log.
    pub position: Position,
    /// The flow.
    pub flow_id: FlowId,
    /// Place in the flow's stream.
    pub version: Version,
    /// Identity of the event.
    pub event_id: EventId,
    /// When the command was decided.
    pub time: Timestamp,
    /// When the log took it.
    pub recorded_at: Timestamp,
    /// Name of the fact.
    pub kind: String,
    /// Version of the form of `data`.
    pub schema_version: u16,
    /// The principal.
    pub actor: String,
    /// The request.
    pub correlation: String,
    /// The event that led here.
    pub causation: Option<EventId>,
    /// W3C `traceparent`.
    pub trace: Option<String>,
    /// JSON object.
    pub data: Box<RawValue>,
}

/// An idempotency key that is still remembered, with the answer of its call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportedKey {
    /// Principal, method and key.
    pub request_key: String,
    /// Fingerprint and answer.
    pub value: String,
    /// Until when.
    pub expires_at: Timestamp,
}

/// A line of an export: the events in order, then the keys, then perhaps the end.
#[derive(Debug, Clone)]
pub enum Line {
    /// An event.
    Event(ExportedEvent),
    /// A key.
    Key(ExportedKey),
    /// What came before it, so that a file that was cut off is noticed.
    End(End),
}

/// The last line of an export that is meant to be moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Of all lines before it.
    pub end: Receipt,
}

impl Line {
    /// Reads a line.
    ///
    /// # Errors
    /// Why it is none, for the person who gave it.
    pub fn parse(text: &str) -> Result<Self, String> {
        /// What tells the two kinds apart.
        #[derive(Deserialize)]
        struct Probe {
            request_key: Option<serde::de::IgnoredAny>,
            end: Option<serde::de::IgnoredAny>,
        }
        let probe: Probe = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let line = match (probe.request_key, probe.end) {
            (Some(_), _) => serde_json::from_str(text).map(Self::Key),
            (None, Some(_)) => serde_json::from_str(text).map(Self::End),
            (None, None) => serde_json::from_str(text).map(Self::Event),
        };
        line.map_err(|e| e.to_string())
    }

    /// The line, without its end. Cost: O(size).
    #[must_use]
    pub fn text(&self) -> String {
        let text = match self {
            Self::Event(event) => serde_json::to_string(event),
            Self::Key(key) => serde_json::to_string(key),
            Self::End(end) => serde_json::to_string(end),
        };
        text.expect("a line can always be written as JSON")
    }
}

/// How many events and keys there were, and the SHA-256 of their lines, line ends included.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    events: u64,
    keys: u64,
    digest: Sha256,
}

/// The end of a [`Tally`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// Events.
    pub events: u64,
    /// Idempotency keys.
    pub keys: u64,
    /// In hexadecimal.
    pub sha256: String,
}

impl Tally {
    /// Counts a line. `text` is what [`Line::text`] gave.
    pub fn add(&mut self, line: &Line, text: &str) {
        match line {
            Line::Event(_) => self.events += 1,
            Line::Key(_) => self.keys += 1,
            Line::End(_) => return,
        }
        self.digest.update(text.as_bytes());
        self.digest.update(b"\n");
    }

    /// Events so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// The receipt.
    #[must_use]
    pub fn receipt(self) -> Receipt {
        let digest = self.digest.finalize();
        Receipt {
            events: self.events,
            keys: self.keys,
            sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events", self.events)?;
        if self.keys > 0 {
            write!(f, " and {} idempotency keys", self.keys)?;
        }
        write!(f, ", sha256 {}", self.sha256)
    }
}

/// A log to export. A server may be writing to it.
#[async_trait]
pub trait Source: Send {
    /// Position of the last event that will be given.
    fn head(&self) -> Position;

    /// The next events in order; empty behind the last one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] names the first row that cannot be believed; those before it were given.
    async fn events(&mut self) -> Result<Vec<ExportedEvent>, Error>;

    /// The next idempotency keys that are not expired at `now`, in order of the keys; empty behind the
    /// last one. `now` is the same for all of them.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn keys(&mut self, now: Timestamp) -> Result<Vec<ExportedKey>, Error>;
}

/// An empty log to import into. Nothing is there for others before [`Target::finish`].
#[async_trait]
pub trait Target: Send {
    /// Writes the next events.
    ///
    /// # Errors
    /// [`Error`]: the import cannot go on.
    async fn write(&mut self, events: &[Checked]) -> Result<(), Error>;

    /// Writes idempotency keys.
    ///
    /// # Errors
    /// [`Error`]: the import cannot go on.
    async fn write_keys(&mut self, keys: &[ExportedKey]) -> Result<(), Error>;

    /// Reads back what was written, for comparison.
    ///
    /// # Errors
    /// [`Error`].
    async fn read_back(&mut self) -> Result<Box<dyn Source + '_>, Error>;

    /// Makes it durable and visible, all at once.
    ///
    /// # Errors
    /// [`Error`]: nothing was imported; only if the connection to a database broke at this moment it may
    /// have been, and the next import says so.
    async fn finish(self: Box<Self>) -> Result<(), Error>;
}

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

/// Where a stream of the import stands.
#[derive(Debug, Clone, Copy)]
pub struct StreamEnd {
    /// Its number.
    pub number: u64,
    /// Version of its last event.
    pub version: Version,
    /// Position of its last event.
    pub position: Position,
}

/// The rules of a log, checked line by line. Memory: O(flows).
#[derive(Debug, Default)]
pub struct Checker {
    position: Position,
    recorded_at: Option<Timestamp>,
    streams: HashMap<FlowId, StreamEnd>,
}

impl Checker {
    /// Checks the next event of the log. Cost: O(size).
    ///
    /// # Errors
    /// What is wrong with it, naming the member.
    pub fn check(&mut self, line: ExportedEvent) -> Result<Checked, String> {
        let expected = self.position + 1;
        if line.position != expected {
            return Err(format!(
                "`position` is {}, expected {expected}: a log is imported whole and in order",
                line.position
            ));
        }
        if self.recorded_at.is_some_and(|last| line.recorded_at < last) {
            return Err("`recorded_at` is before that of the event before it".to_owned());
        }
        let number = self.streams.len() as u64 + 1;
        let stream = self.streams.entry(line.flow_id).or_insert(StreamEnd {
            number,
            version: 0,
            position: 0,
        });
        if line.version != stream.version + 1 {
            return Err(format!(
                "`version` is {}, expected {} in flow `{}`",
                line.version,
                stream.version + 1,
                line.flow_id
            ));
        }
        let event = codec::decode(&line.kind, line.schema_version, line.data.get())
            .map_err(|e| format!("`data`: {e}"))?;
        self.position = line.position;
        self.recorded_at = Some(line.recorded_at);
        (stream.version, stream.position) = (line.version, line.position);
        Ok(Checked {
            stream: stream.number,
            claims: claims(&event, line.flow_id),
            line,
        })
    }
}

/// Task ids are unique for ever; the id of a root is that of its flow and needs no claim.
fn claims(event: &Event, flow: FlowId) -> Option<TaskId> {
    let Event::TaskCreated(created) = event else {
        return None;
    };
    (created.task_id != flow.root()).then_some(created.task_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(position: Position, version: Version) -> ExportedEvent {
        let text = format!(
            r#"{{"position":{position},"flow_id":"0f8fad5b-d9cb-469f-a165-70867728950e","version":{version},
            "event_id":"0f8fad5b-d9cb-469f-a165-708677289501","time":"2026-01-01T00:00:00Z",
            "recorded_at":"2026-01-01T00:00:00Z","kind":"TaskRenamed","schema_version":1,"actor":"a",
            "correlation":"c","causation":null,"trace":null,
            "data":{{"task_id":"0f8fad5b-d9cb-469f-a165-70867728950e","name":"n"}}}}"#
        );
        match Line::parse(&text) {
            Ok(Line::Event(event)) => event,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_line_is_written_as_it_was_read() {
        let event = Line::Event(line(1, 1));
        let text = event.text();
        assert_eq!(Line::parse(&text).unwrap().text(), text);
        let key = Line::Key(ExportedKey {
            request_key: "9:anonymous\u{1f}tasks.create\u{1f}k".to_owned(),
            value: "{}".to_owned(),
            expires_at: Timestamp(1),
        });
        assert_eq!(Line::parse(&key.text()).unwrap().text(), key.text());
    }

    #[test]
    fn a_log_with_a_gap_or_an_unknown_event_is_refused_with_the_member_at_fault() {
        let refused = |lines: Vec<ExportedEvent>| {
            let mut checker = Checker::default();
            let checked: Result<Vec<_>, _> = lines.into_iter().map(|l| checker.check(l)).collect();
            checked.unwrap_err()
        };
        assert!(refused(vec![line(2, 1)]).starts_with("`position` is 2, expected 1"));
        assert!(refused(vec![line(1, 1), line(2, 3)]).starts_with("`version` is 3, expected 2"));
        let mut unknown = line(1, 1);
        unknown.kind = "TaskVanished".to_owned();
        assert!(refused(vec![unknown]).starts_with("`data`: unknown event kind"));
        let mut early = line(2, 2);
        early.recorded_at = Timestamp(0);
        assert!(refused(vec![line(1, 1), early]).starts_with("`recorded_at`"));
    }

    #[test]
    fn the_digest_is_that_of_the_lines() {
        let mut tally = Tally::default();
        let key = Line::Key(ExportedKey {
            request_key: "k".to_owned(),
            value: "v".to_owned(),
            expires_at: Timestamp(0),
        });
        tally.add(&key, "abc");
        // printf 'abc\n' | sha256sum
        assert_eq!(
            tally.receipt().to_string(),
            "0 events and 1 idempotency keys, sha256 \
             edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb"
        );
    }
}

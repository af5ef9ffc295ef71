//! The export format: a log as lines of JSON, which leave one backend and enter another.
//!
//! Owns: the form of a line, the digest over lines, and (`check`) the rules that a log must keep to
//! be taken in. Backends read and write ([`Source`], [`Target`]); nothing here touches a database.

mod check;

pub(super) use check::Gaps;
pub use check::{Checked, Checker, StreamEnd};

use super::Error;
use super::chain::{Hash, Mark, Remains, Step};
use super::row::Row;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::fmt;
use taskledger_domain::{EventId, FlowId, Position, Recorded, Timestamp, Version, codec};

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
    /// The flow that the event belongs to.
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
    /// The id of the request that caused it.
    pub correlation: String,
    /// The event that led here.
    pub causation: Option<EventId>,
    /// W3C `traceparent`.
    pub trace: Option<String>,
    /// JSON object.
    pub data: Box<RawValue>,
    /// Its place in the hash chain; absent in events that were imported without hashes, and in archives, where
    /// events have their present form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hash>,
}

impl ExportedEvent {
    /// The line as a link of the hash chain. Cost: O(size).
    #[must_use]
    pub fn step(&self) -> Step {
        Row::of(self).step()
    }
}

/// A dropped event as a line: what the hash chain needs to go over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DroppedLine {
    /// What stayed of it.
    pub dropped: Remains,
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

/// A line of an export: the events and what stayed of dropped ones in order, then the keys, then the end.
#[derive(Debug, Clone)]
pub enum Line {
    /// An event with its metadata and place in the log.
    Event(ExportedEvent),
    /// An event that was dropped with its archived flow.
    Dropped(DroppedLine),
    /// An idempotency key and what is remembered for it.
    Key(ExportedKey),
    /// What came before it, so that a file that was cut off is noticed.
    End(End),
    /// Stands first in an archive: the file holds whole flows, not a whole log.
    Archive(Archive),
}

/// The first line of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// What the file is.
    pub archive: ArchiveHead,
}

/// See [`Archive`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchiveHead {
    /// Flows in it.
    pub flows: u64,
    /// When it was begun.
    pub at: Timestamp,
}

/// The last line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Counts and digest of all lines before it.
    pub end: Receipt,
    /// Where the hash chain of the events ends; absent in archives, and when no event has a hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Mark>,
}

/// What is said of a text that was never a line of ours.
const FOREIGN: &str = "this is not an export or archive of taskledger; expected a file that `taskledger events export` or \
                       `taskledger retention --archive` wrote, with one JSON object a line";

/// Whether a text that is no JSON was a line of ours before it was cut off or changed.
fn begins_as_a_line(text: &str) -> bool {
    let first = text.trim_start().strip_prefix('{').map(str::trim_start);
    let members = ["position", "request_key", "end", "archive", "dropped"];
    first
        .and_then(|first| first.strip_prefix('"'))
        .and_then(|first| first.split_once('"'))
        .is_some_and(|(member, _)| members.contains(&member))
}

/// Why a line of ours cannot be read, without the number of its line, which would always be 1.
fn damaged(error: &serde_json::Error) -> String {
    error
        .to_string()
        .replace(" at line 1 column ", " at column ")
}

impl Line {
    /// Reads a line.
    ///
    /// # Errors
    /// Why it is none, for the person who gave it.
    pub fn parse(text: &str) -> Result<Self, String> {
        /// What tells the kinds apart.
        #[derive(Deserialize)]
        struct Probe {
            position: Option<serde::de::IgnoredAny>,
            request_key: Option<serde::de::IgnoredAny>,
            end: Option<serde::de::IgnoredAny>,
            archive: Option<serde::de::IgnoredAny>,
            dropped: Option<serde::de::IgnoredAny>,
        }
        let probe: Probe = match serde_json::from_str(text) {
            Ok(probe) => probe,
            Err(error) if begins_as_a_line(text) => return Err(damaged(&error)),
            Err(_) => return Err(FOREIGN.to_owned()),
        };
        let line = if probe.request_key.is_some() {
            serde_json::from_str(text).map(Self::Key)
        } else if probe.end.is_some() {
            serde_json::from_str(text).map(Self::End)
        } else if probe.archive.is_some() {
            serde_json::from_str(text).map(Self::Archive)
        } else if probe.dropped.is_some() {
            serde_json::from_str(text).map(Self::Dropped)
        } else if probe.position.is_some() {
            serde_json::from_str(text).map(Self::Event)
        } else {
            return Err(FOREIGN.to_owned());
        };
        line.map_err(|error| damaged(&error))
    }

    /// The line, without its end. Cost: O(size).
    #[must_use]
    pub fn text(&self) -> String {
        let text = match self {
            Self::Event(event) => serde_json::to_string(event),
            Self::Dropped(dropped) => serde_json::to_string(dropped),
            Self::Key(key) => serde_json::to_string(key),
            Self::End(end) => serde_json::to_string(end),
            Self::Archive(head) => serde_json::to_string(head),
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
    /// Number of events; dropped ones are not counted.
    pub events: u64,
    /// Idempotency keys.
    pub keys: u64,
    /// In hexadecimal.
    pub sha256: String,
}

impl Tally {
    /// Counts a line of the log. `text` is what [`Line::text`] gave.
    pub fn add(&mut self, line: &Line, text: &str) {
        match line {
            Line::Event(_) => self.events += 1,
            Line::Key(_) => self.keys += 1,
            Line::Dropped(_) => {}
            // An import keeps neither of them, and is compared by the rest.
            Line::End(_) | Line::Archive(_) => return,
        }
        self.digest.update(text.as_bytes());
        self.digest.update(b"\n");
    }

    /// Events so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Ends the tally and computes the digest.
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

    /// The next events in order, and what stayed of dropped ones; empty behind the last one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] names the first row that cannot be believed; those before it were given.
    async fn events(&mut self) -> Result<Vec<Line>, Error>;

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

    /// Writes what stayed of events that were dropped.
    ///
    /// # Errors
    /// [`Error`]: the import cannot go on.
    async fn write_remains(&mut self, remains: &[Remains]) -> Result<(), Error>;

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

/// An event as a line of an export, in the present form of its kind.
#[must_use]
pub fn exported(recorded: &Recorded) -> ExportedEvent {
    let encoded = codec::encode(&recorded.event);
    let metadata = &recorded.metadata;
    ExportedEvent {
        position: recorded.position,
        flow_id: recorded.flow,
        version: recorded.version,
        event_id: recorded.id,
        time: recorded.time,
        recorded_at: recorded.recorded_at,
        kind: encoded.kind.to_owned(),
        schema_version: encoded.schema_version,
        actor: metadata.actor.to_string(),
        correlation: metadata.correlation.to_string(),
        causation: metadata.causation,
        trace: metadata.trace.as_deref().map(str::to_owned),
        data: RawValue::from_string(encoded.data).expect("events are stored as JSON"),
        hash: None,
    }
}

/// Events and what stayed of dropped ones as lines, in order of position. Of an event that was dropped
/// between the two readings both may be there; then the event counts.
pub(super) fn merged(events: Vec<ExportedEvent>, remains: Vec<Remains>) -> Vec<Line> {
    let mut lines = Vec::with_capacity(events.len() + remains.len());
    let mut remains = remains.into_iter().peekable();
    for event in events {
        while let Some(dropped) = remains.next_if(|r| r.position < event.position) {
            lines.push(Line::Dropped(DroppedLine { dropped }));
        }
        remains.next_if(|r| r.position == event.position);
        lines.push(Line::Event(event));
    }
    lines.extend(remains.map(|dropped| Line::Dropped(DroppedLine { dropped })));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line that is right by itself.
    pub(super) fn line(position: Position, version: Version) -> ExportedEvent {
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
    fn what_was_never_a_line_is_told_from_one_that_is_damaged() {
        for foreign in [
            "[",
            "{",
            "",
            "null",
            "hello",
            r#"{"name": "hello", "schemas": {"method": "echo_executor"}}"#,
            r#"[{"position": 1}]"#,
        ] {
            let told = Line::parse(foreign).unwrap_err();
            assert!(
                told.contains("not an export or archive of taskledger"),
                "{foreign}: {told}"
            );
            assert!(told.contains("`taskledger events export`"), "{told}");
        }
        let whole = Line::Event(line(1, 1)).text();
        let cut = Line::parse(&whole[..40]).unwrap_err();
        assert!(
            cut.starts_with("EOF while parsing") && cut.ends_with("at column 40"),
            "{cut}"
        );
        let changed = whole.replace("\"kind\"", "\"sort\"");
        let changed = Line::parse(&changed).unwrap_err();
        assert!(changed.starts_with("unknown field `sort`"), "{changed}");
        assert!(!changed.contains("line 1"), "{changed}");
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

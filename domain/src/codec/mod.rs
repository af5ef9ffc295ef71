//! The stored form of events: `(kind, schema version, JSON)`.
//!
//! Owns: the names and versions under which events are stored, and the upcasters that bring an
//! old version to the current one. Released versions never change: `tests/golden/events` holds one
//! file for each. An event of an unknown kind or version is an error, never skipped.

pub mod snapshot;
mod upcast;

use crate::flow::Event;
use serde::de::DeserializeOwned;

/// An event as it is written to the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// Name of the fact.
    pub kind: &'static str,
    /// Version of the form of `data`.
    pub schema_version: u16,
    /// JSON object.
    pub data: String,
}

/// Why stored bytes are no event.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Written by a newer program, or damaged.
    #[error("unknown event kind `{0}`")]
    UnknownKind(String),
    /// Written by a newer program, or damaged.
    #[error("event `{kind}` has schema version {found}, this program knows 1 to {known}")]
    UnknownVersion {
        /// The event's name.
        kind: &'static str,
        /// What is stored.
        found: u16,
        /// The newest known.
        known: u16,
    },
    /// The JSON does not have the form of its version.
    #[error("event `{kind}` cannot be read: {source}")]
    Malformed {
        /// The event's name.
        kind: &'static str,
        /// The parser's reason.
        source: serde_json::Error,
    },
}

macro_rules! events {
    ($($variant:ident = $version:literal),+ $(,)?) => {
        /// Names and current versions of all events.
        pub const KINDS: &[(&str, u16)] = &[$((stringify!($variant), $version)),+];

        /// The stored name of an event.
        #[must_use]
        pub const fn kind(event: &Event) -> &'static str {
            match event { $(Event::$variant(_) => stringify!($variant)),+ }
        }

        /// Writes an event in the current version of its form. Cost: O(size).
        #[must_use]
        pub fn encode(event: &Event) -> Encoded {
            match event {
                $(Event::$variant(e) => Encoded {
                    kind: stringify!($variant),
                    schema_version: $version,
                    data: serde_json::to_string(e).expect("an event can always be written as JSON"),
                }),+
            }
        }

        /// Reads an event of any released version. Cost: O(size).
        ///
        /// # Errors
        /// [`DecodeError`]: damaged, or written by a newer program.
        pub fn decode(kind: &str, schema_version: u16, data: &str) -> Result<Event, DecodeError> {
            match kind {
                $(stringify!($variant) => {
                    read(stringify!($variant), schema_version, $version, data).map(Event::$variant)
                })+
                unknown => Err(DecodeError::UnknownKind(unknown.to_owned())),
            }
        }
    };
}

events! {
    TaskCreated = 1,
    TaskRenamed = 1,
    PriorityChanged = 1,
    UserChanged = 1,
    TaskMoved = 1,
    DependenciesChanged = 1,
    TaskRespecified = 1,
    TaskDeleted = 1,
    RunStarted = 1,
    TaskStarted = 1,
    TaskProgressed = 1,
    TaskCompleted = 1,
    TaskFailed = 1,
    TaskRequeued = 1,
    TaskCancelled = 1,
    RunEnded = 1,
}

fn read<T: DeserializeOwned>(
    kind: &'static str,
    found: u16,
    known: u16,
    data: &str,
) -> Result<T, DecodeError> {
    if found == known {
        return serde_json::from_str(data)
            .map_err(|source| DecodeError::Malformed { kind, source });
    }
    if found == 0 || found > known {
        return Err(DecodeError::UnknownVersion { kind, found, known });
    }
    let mut value =
        serde_json::from_str(data).map_err(|source| DecodeError::Malformed { kind, source })?;
    for version in found..known {
        value = upcast::step(kind, version, value);
    }
    // Through text, because payloads keep their text and `from_value` cannot give it.
    serde_json::from_str(&value.to_string())
        .map_err(|source| DecodeError::Malformed { kind, source })
}

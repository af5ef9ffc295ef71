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

        /// The place of an event's name in [`KINDS`].
        #[must_use]
        pub const fn ordinal(event: &Event) -> usize {
            /// In the order of [`KINDS`].
            enum Place { $($variant),+ }
            match event { $(Event::$variant(_) => Place::$variant as usize),+ }
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
    TaskClaimRejected = 1,
    TaskCompletionRejected = 1,
    TaskSuspended = 1,
    TaskReminded = 1,
    TaskAnswered = 1,
    TaskSuspensionExpired = 1,
    TaskCompleted = 1,
    TaskFailed = 1,
    TaskRequeued = 1,
    TaskCancelled = 1,
    RunEnded = 1,
    FlowArchived = 1,
    MessageReceived = 1,
    TaskDeferred = 1,
    LabelsChanged = 1,
    TaskOutputAppended = 1,
}

fn read<T: DeserializeOwned>(
    kind: &'static str,
    found: u16,
    known: u16,
    data: &str,
) -> Result<T, DecodeError> {
    read_with(upcast::STEPS, kind, found, known, data)
}

fn read_with<T: DeserializeOwned>(
    steps: &[upcast::Step],
    kind: &'static str,
    found: u16,
    known: u16,
    data: &str,
) -> Result<T, DecodeError> {
    let malformed = |source| DecodeError::Malformed { kind, source };
    if found == known {
        return serde_json::from_str(data).map_err(malformed);
    }
    if found == 0 || found > known {
        return Err(DecodeError::UnknownVersion { kind, found, known });
    }
    if !steps
        .iter()
        .any(|step| step.kind == kind && step.from >= found)
    {
        // What was added since is absent, and payloads keep their text.
        return serde_json::from_str(data).map_err(malformed);
    }
    let value = serde_json::from_str(data).map_err(malformed)?;
    let value = upcast::upcast(steps, kind, found, known, value);
    // Through text, because payloads keep their text and `from_value` cannot give it.
    serde_json::from_str(&value.to_string()).map_err(malformed)
}

#[cfg(test)]
mod tests {
    use super::upcast::Step;
    use super::{DecodeError, read_with};
    use crate::flow::{TaskCompleted, TaskRenamed};
    use serde_json::{Value, json};

    const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

    /// Version 1 said `title`, version 2 `label`, version 3 says `name`.
    const STEPS: &[Step] = &[
        Step {
            kind: "TaskRenamed",
            from: 2,
            apply: |v| renamed(v, "label", "name"),
        },
        Step {
            kind: "TaskRenamed",
            from: 1,
            apply: |v| renamed(v, "title", "label"),
        },
        Step {
            kind: "TaskCreated",
            from: 1,
            apply: |_| Value::Null,
        },
    ];

    fn renamed(mut data: Value, from: &str, to: &str) -> Value {
        let object = data.as_object_mut().expect("an event is an object");
        if let Some(value) = object.remove(from) {
            object.insert(to.to_owned(), value);
        }
        data
    }

    fn read(found: u16, data: Value) -> Result<TaskRenamed, DecodeError> {
        read_with(STEPS, "TaskRenamed", found, 3, &data.to_string())
    }

    #[test]
    fn an_old_version_is_brought_to_the_present_one_step_by_step() {
        for (version, member) in [(1, "title"), (2, "label"), (3, "name")] {
            let event = read(version, json!({"task_id": ID, member: "x"})).unwrap();
            assert_eq!(
                (event.task_id.to_string().as_str(), event.name.as_str()),
                (ID, "x")
            );
        }
    }

    #[test]
    fn a_version_without_a_step_keeps_its_form() {
        let text = format!(r#"{{"task_id":"{ID}","attempt":1,"result":{{"b":1,"a":[2]}}}}"#);
        let event: TaskCompleted = read_with(STEPS, "TaskCompleted", 1, 4, &text).unwrap();
        assert_eq!(event.result.to_map().len(), 2);
    }

    #[test]
    fn a_newer_version_and_version_0_are_errors() {
        for found in [0, 4, u16::MAX] {
            let error = read(found, json!({"task_id": ID, "name": "x"})).unwrap_err();
            assert!(matches!(
                error,
                DecodeError::UnknownVersion { known: 3, .. }
            ));
        }
    }

    #[test]
    fn an_old_version_that_cannot_be_read_is_malformed() {
        let error = read(1, json!({"task_id": ID})).unwrap_err();
        assert!(matches!(error, DecodeError::Malformed { .. }));
        let error = read_with::<TaskRenamed>(STEPS, "TaskRenamed", 1, 3, "{").unwrap_err();
        assert!(matches!(error, DecodeError::Malformed { .. }));
    }
}

//! The events of messages to a run: the one that begins it, and later ones.

use crate::{Payload, RunId, SuspensionId};
use serde::{Deserialize, Serialize};

/// The origin of a run that was begun by a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOrigin {
    /// What the caller calls everything that belongs together, 1 to `limits::CONTEXT_CHARS_MAX` characters; absent: the
    /// id of the flow's root stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The message, as the door wrote it: an object of at most `limits::RUN_MESSAGE_BYTES_MAX` bytes, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Payload>,
    /// Runs that the message names; at most `limits::REFERENCES_MAX`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<RunId>,
}

/// See [`super::Event::MessageReceived`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageReceived {
    /// The run that it was sent to, which is on.
    pub run_id: RunId,
    /// What its sender calls it, at most `limits::MESSAGE_ID_CHARS_MAX` characters.
    pub message_id: String,
    /// SHA-256 of its name and its text, in hexadecimal: a message with the same one is the same message.
    pub body_hash: String,
    /// The message, as the door wrote it: an object of at most `limits::RUN_MESSAGE_BYTES_MAX` bytes, without secrets.
    pub message: Payload,
    /// The wait that it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension_id: Option<SuspensionId>,
}

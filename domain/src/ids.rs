//! Identifiers. Each is a UUID v4 that prints in lower case; parsing is the only way in from text.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::{Uuid, Variant, Version};

/// The text is not a UUID v4 (`xxxxxxxx-xxxx-4xxx-[89ab]xxx-xxxxxxxxxxxx`).
/// spec: validation / UUID Validation
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a UUID v4")]
pub struct NotUuidV4;

/// Reads the hyphenated form of a UUID v4, in either case.
///
/// # Errors
/// [`NotUuidV4`] for any other text, also for UUIDs of another version and for braced or bare forms.
pub fn parse_uuid_v4(text: &str) -> Result<Uuid, NotUuidV4> {
    // `Uuid::try_parse` also takes the bare, braced and URN forms, which the protocol does not.
    if text.len() != 36 {
        return Err(NotUuidV4);
    }
    let uuid = Uuid::try_parse(text).map_err(|_| NotUuidV4)?;
    if uuid.get_version() == Some(Version::Random) && uuid.get_variant() == Variant::RFC4122 {
        Ok(uuid)
    } else {
        Err(NotUuidV4)
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Reads a UUID v4.
            ///
            /// # Errors
            /// [`NotUuidV4`] for any other text.
            pub fn parse(text: &str) -> Result<Self, NotUuidV4> {
                parse_uuid_v4(text).map(Self)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id! {
    /// A task. Unique for ever: the id of a deleted task is never given again.
    TaskId
}
id! {
    /// A flow: one task tree, one consistency boundary, one event stream. Equal to the id of its root task.
    FlowId
}
id! {
    /// One execution of a set of tasks.
    RunId
}
id! {
    /// One event, given before it is written, so that an append whose answer was lost can be looked up.
    EventId
}

id! {
    /// Where the caller of one execution wants to be told of it: the address and its secrets are kept
    /// beside the log under this name.
    CallbackId
}

id! {
    /// The lease under which a worker outside the server holds an attempt. Never given twice.
    LeaseId
}

id! {
    /// One wait of a task for a person. Never given twice.
    SuspensionId
}

impl FlowId {
    /// The root task, whose id the flow carries.
    #[must_use]
    pub const fn root(self) -> TaskId {
        TaskId(self.0)
    }
}

impl TaskId {
    /// Stands for a task that a call names and that could not be told, in lists that are refused. No text is read as
    /// this id.
    pub(crate) const UNTOLD: Self = Self(Uuid::nil());

    /// The flow that has this task as its root.
    #[must_use]
    pub const fn as_flow(self) -> FlowId {
        FlowId(self.0)
    }
}

/// The partition, 0 to 255, that a flow belongs to: FNV-1a of its id, so that ids that a caller
/// chose spread as well as random ones.
#[must_use]
pub fn partition(flow: FlowId) -> u8 {
    let hash = flow
        .0
        .as_bytes()
        .iter()
        .fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
    hash.to_be_bytes().iter().fold(0, |all, byte| all ^ byte)
}

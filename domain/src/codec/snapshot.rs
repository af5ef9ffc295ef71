//! The stored form of a flow's state: a baseline for loading, disposable, never the truth.

use crate::flow::Flow;

/// Number of the format. Raise it whenever the state's primary fields change: snapshots of another
/// format are ignored and the flow is loaded from its events. A golden file in the tests fails
/// when that is forgotten.
pub const FORMAT: u32 = 1;

/// The bytes are no state of this format.
#[derive(Debug, thiserror::Error)]
#[error("the snapshot cannot be read: {0}")]
pub struct SnapshotError(#[from] postcard::Error);

impl SnapshotError {
    /// Readable, but no state that events can make.
    const UNSOUND: Self = Self(postcard::Error::SerdeDeCustom);
}

/// Writes the primary fields. Cost: O(tasks + edges), about 100 bytes a task.
#[must_use]
pub fn encode(flow: &Flow) -> Vec<u8> {
    postcard::to_stdvec(flow).expect("a state can always be written")
}

/// Reads a state and rebuilds what is derived. Cost: O(tasks + edges).
///
/// # Errors
/// [`SnapshotError`]: damaged or of another format; load from events instead.
pub fn decode(bytes: &[u8]) -> Result<Flow, SnapshotError> {
    let (mut flow, rest) = postcard::take_from_bytes::<Flow>(bytes)?;
    if !rest.is_empty() || !flow.is_sound() {
        return Err(SnapshotError::UNSOUND);
    }
    flow.rebuild();
    Ok(flow)
}

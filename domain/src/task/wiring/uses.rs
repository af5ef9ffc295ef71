//! Finds the values of the inputs that may come from results, and their places.

use super::Need;
use crate::TaskId;
use crate::violation::PathSegment;
use serde_json::{Map, Value};

/// A value of the inputs that may come from a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// Where it stands in the inputs, as a JSON pointer; cut at [`POINTER_CHARS_MAX`] characters.
    pub input: String,
    pub(super) need: Need,
}

impl Use {
    /// The reference, as it is stored.
    #[must_use]
    pub fn reference(&self) -> &str {
        self.need.text()
    }

    /// The task whose result may have it; `None` for a reference to no task.
    #[must_use]
    pub fn source(&self) -> Option<TaskId> {
        self.need.source()
    }

    /// Whether a result has it.
    #[must_use]
    pub fn is_in(&self, result: &Map<String, Value>) -> bool {
        self.need.is_in(result)
    }
}

/// Characters of a place in the inputs, where one is told.
pub const POINTER_CHARS_MAX: usize = 1024;

/// A place as a JSON pointer.
pub(super) fn pointer(path: &[PathSegment]) -> String {
    let names = path.iter().map(|step| match step {
        PathSegment::Key(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
        PathSegment::Index(i) => format!("/{i}"),
    });
    let pointer: String = names.collect();
    pointer.chars().take(POINTER_CHARS_MAX).collect()
}

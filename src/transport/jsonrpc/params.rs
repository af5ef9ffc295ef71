//! Parameters that several methods share, and those of workers, as types that only valid calls can make. Other methods
//! have theirs in their own file (`methods/`).
//!
//! Each `ask` checks everything and reports every violation; past it, a value's type proves that
//! it is valid. Its questions, in their order, are also the description of the method and the order
//! of positional parameters.

pub(super) mod as_of;
pub mod beside;
pub mod nothing;
pub mod owner;
pub mod work;
pub mod workers;

use super::reader::{BOOLEAN, Choice, Reader, choice};
use crate::application::api::Consistency;

const CONSISTENCY: Choice<Consistency> = choice(
    "not a consistency",
    &[
        ("strong", Consistency::Strong),
        ("eventual", Consistency::Eventual),
    ],
);

/// Asks for the member `consistency`, which all reads have.
pub fn consistency(reader: &mut Reader<'_>) -> Consistency {
    reader.with_default(
        "consistency",
        CONSISTENCY,
        Consistency::default(),
        "`strong` shows everything that was answered before; `eventual` does not wait for it.",
    )
}

/// Asks for the member `use_streaming`, which methods that begin a run have. Whoever says `true` gets a
/// stream behind the answer; that is arranged before the parameters are read.
pub fn use_streaming(reader: &mut Reader<'_>) {
    let about = "Whether the answer is followed by a stream of what happens in the run.";
    reader.with_default("use_streaming", BOOLEAN, false, about);
}

#[cfg(test)]
pub(crate) mod testing {
    use serde_json::{Map, Value};
    use taskledger_domain::Violation;

    pub(crate) const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    pub(crate) fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    /// (field, reason) of each violation.
    pub(crate) fn faults<T>(read: Result<T, Vec<Violation>>) -> Vec<(String, String)> {
        read.err()
            .unwrap_or_default()
            .into_iter()
            .map(|v| (v.field, v.reason))
            .collect()
    }
}

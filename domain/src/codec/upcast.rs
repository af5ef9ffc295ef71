//! One step per event kind and old version: the JSON of version v becomes the JSON of version v + 1.

use serde_json::Value;

/// `data` of `kind` in version `from`, brought to version `from + 1`.
///
/// A kind without an entry keeps its JSON: its new version only added members that have defaults.
pub(super) fn step(kind: &str, from: u16, data: Value) -> Value {
    STEPS
        .iter()
        .find(|(k, v, _)| *k == kind && *v == from)
        .map_or_else(|| data.clone(), |(_, _, f)| f(data.clone()))
}

type Step = fn(Value) -> Value;

/// All events are in their first version.
const STEPS: &[(&str, u16, Step)] = &[];

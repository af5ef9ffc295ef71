//! One step per event kind and old version: the JSON of version v becomes the JSON of version v + 1.

use serde_json::Value;

/// How the stored form of a kind changed from one version to the next.
pub(super) struct Step {
    /// Name of the event.
    pub(super) kind: &'static str,
    /// The old version.
    pub(super) from: u16,
    /// Old JSON to new JSON.
    pub(super) apply: fn(Value) -> Value,
}

/// None: every event is in its first released version. A version that only adds members with defaults needs no step.
pub(super) const STEPS: &[Step] = &[];

/// `data` of `kind` in version `found`, brought to version `known`, one step after the other.
///
/// A version without a step keeps its JSON: the next one only added members that have defaults, or
/// values.
pub(super) fn upcast(steps: &[Step], kind: &str, found: u16, known: u16, data: Value) -> Value {
    (found..known).fold(data, |data, version| {
        let step = steps.iter().find(|s| s.kind == kind && s.from == version);
        match step {
            Some(step) => (step.apply)(data),
            None => data,
        }
    })
}

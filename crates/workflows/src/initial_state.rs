//! Finds what a phase's references need and its `initial_state` lacks.

use serde_json::{Map, Value};

use crate::faults::Faults;
use crate::node::short;
use crate::workflow::Source;

/// What is lacking for a reference, and the key that may be meant; `None`: nothing. Null lacks nothing: it was written.
pub(crate) fn lacking(
    state: &Map<String, Value>,
    source: &Source,
    faults: &Faults,
) -> Option<(String, Option<String>)> {
    let Source::InitialState { key, pointer } = source else {
        return None;
    };
    let shown = short(key);
    let Some(value) = state.get(key) else {
        let what = format!("`initial_state` of the phase has no `{shown}`");
        let others = state.keys().map(String::as_str);
        return Some((what, faults.did_you_mean(key, others)));
    };
    let pointer = pointer.as_deref()?;
    if value.is_null() || value.pointer(pointer).is_some() {
        return None;
    }
    let pointer = short(pointer);
    let what = format!("`{shown}` of `initial_state` has nothing at `{pointer}`");
    Some((what, None))
}

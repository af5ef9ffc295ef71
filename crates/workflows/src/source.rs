//! The sources of references: `$trigger`, `$initial_state` or a phase, and the values that the first two name.

use serde_json::{Map, Value};
use taskledger_domain::limits::{KEY_CHARS_MAX, REFERENCE_CHARS_MAX};

use crate::workflow::Source;

/// Characters that a reference may have behind its phase, whose name becomes an id.
const PLACE_CHARS_MAX: usize = REFERENCE_CHARS_MAX - 36;

/// What stands behind the dot.
pub(crate) struct Place<'t> {
    pub(crate) key: &'t str,
    pub(crate) pointer: Option<&'t str>,
}

impl<'t> Place<'t> {
    pub(crate) fn parse(text: &'t str) -> Option<Self> {
        let (key, pointer) = match text.split_once('#') {
            Some((key, pointer)) => (key, Some(pointer)),
            None => (text, None),
        };
        let is_key = !key.is_empty() && text.chars().count() < PLACE_CHARS_MAX;
        (is_key && pointer.is_none_or(is_pointer)).then_some(Self { key, pointer })
    }

    pub(crate) fn owned(&self) -> (String, Option<String>) {
        let pointer = self.pointer.filter(|pointer| !pointer.is_empty());
        (self.key.to_owned(), pointer.map(str::to_owned))
    }
}

/// RFC 6901.
pub(crate) fn is_pointer(text: &str) -> bool {
    let mut escapes = text.split('~').skip(1);
    (text.is_empty() || text.starts_with('/'))
        && escapes.all(|behind| behind.starts_with(['0', '1']))
}

/// What `$trigger.<key>` or `$initial_state.<key>` names; `None` for any other text.
pub(crate) fn known(text: &str) -> Option<Source> {
    let (name, rest) = text.split_once('.')?;
    let (key, pointer) = Place::parse(rest)?.owned();
    match name {
        "$trigger" => Some(Source::Trigger { key, pointer }),
        "$initial_state" => Some(Source::InitialState { key, pointer }),
        _ => None,
    }
}

/// The value, unless it is null. spec: RFC-0024 3.1
pub(crate) fn found<'v>(
    map: &'v Map<String, Value>,
    key: &str,
    pointer: Option<&str>,
) -> Option<&'v Value> {
    let value = map.get(key)?;
    let value = pointer.map_or(Some(value), |pointer| value.pointer(pointer));
    value.filter(|value| !value.is_null())
}

/// Whether a text can be a key of `inputs`.
pub(crate) fn is_local_key(key: &str) -> bool {
    (1..=KEY_CHARS_MAX).contains(&key.chars().count())
}

//! Who calls, and what ties everything that follows to the call.
//!
//! Made by a transport from a request, read by `application`, written into the metadata of every
//! event. Never holds a secret.

use std::sync::Arc;

/// Characters of an idempotency key: room for any id scheme, small enough for an index.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;

/// The principal of a call until there is authentication.
pub const ANONYMOUS: &str = "anonymous";

/// The origin of one call. Cloning costs reference counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who calls; [`ANONYMOUS`] when nobody says.
    pub principal: Arc<str>,
    /// The id of the request; kept by everything that follows from it.
    pub correlation: Arc<str>,
    /// A valid W3C `traceparent`, if the request had one.
    pub traceparent: Option<Arc<str>>,
    /// Makes a repetition of a state-changing call harmless.
    pub idempotency: Option<Idempotency>,
}

impl Caller {
    /// An anonymous caller without trace context or idempotency key.
    #[must_use]
    pub fn anonymous(correlation: Arc<str>) -> Self {
        Self {
            principal: Arc::from(ANONYMOUS),
            correlation,
            traceparent: None,
            idempotency: None,
        }
    }
}

/// The caller's promise that calls with the same key are one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The caller's key, 1 to [`IDEMPOTENCY_KEY_CHARS_MAX`] characters.
    pub key: Arc<str>,
    /// SHA-256 of method and canonical parameters, lower-case hex: two calls with the same key
    /// are the same call if and only if this is equal.
    pub fingerprint: Arc<str>,
}

/// The text itself when it is a valid W3C `traceparent`.
///
/// Version 00 has exactly four fields; later versions may append more; `ff` and ids of zeros are
/// invalid. <https://www.w3.org/TR/trace-context/#traceparent-header>
#[must_use]
pub fn valid_traceparent(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let hex = |range: std::ops::Range<usize>| {
        bytes
            .get(range)
            .is_some_and(|part| part.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
    };
    let nonzero = |range: std::ops::Range<usize>| bytes[range].iter().any(|b| *b != b'0');
    let fields = bytes.len() >= 55
        && bytes.len() <= 512
        && hex(0..2)
        && bytes[2] == b'-'
        && hex(3..35)
        && bytes[35] == b'-'
        && hex(36..52)
        && bytes[52] == b'-'
        && hex(53..55);
    if !fields || &bytes[0..2] == b"ff" || !nonzero(3..35) || !nonzero(36..52) {
        return None;
    }
    let length_fits_version = if &bytes[0..2] == b"00" {
        bytes.len() == 55
    } else {
        bytes.len() == 55 || bytes[55] == b'-'
    };
    (length_fits_version && text.is_ascii()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::valid_traceparent;

    #[test]
    fn only_well_formed_trace_contexts_are_kept() {
        let good = [
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        ];
        let bad = [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-é",
        ];
        for text in good {
            assert_eq!(valid_traceparent(text), Some(text));
        }
        for text in bad {
            assert_eq!(valid_traceparent(text), None, "{text}");
        }
    }
}

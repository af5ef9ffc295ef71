//! The context of a call: who calls, and the ids that tie everything that follows to the call.
//!
//! Made by a door from what its protocol says of a request, read by every use case, written into the
//! metadata of every event. Never holds a secret.

use super::limits::EarlyTurn;
use super::noted::Noted;
use std::net::IpAddr;
use std::sync::Arc;
use taskledger_auth::Caller;
use tokio::time::Instant;
use uuid::Uuid;

/// Characters of an idempotency key: room for any id scheme, small enough for an index.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;

/// The context of a call, which every use case gets. Cloning costs reference counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Who calls, as the credentials say. Never taken from the body of a call.
    pub caller: Arc<Caller>,
    /// Where the request came from; absent when that is not known, or does not matter because nobody is
    /// authenticated. Not sent to other nodes.
    pub address: Option<IpAddr>,
    /// The id of the request; kept by everything that follows from it.
    pub correlation: Arc<str>,
    /// The server's own id of the request, where the caller has chosen the correlation. Not sent to other nodes.
    pub own_id: Option<Arc<str>>,
    /// A valid W3C `traceparent`, if the request had one.
    pub trace: Option<Arc<str>>,
    /// Makes a repetition of a state-changing call harmless.
    pub idempotency: Option<Idempotency>,
    /// When the caller waits no longer. The door stops waiting then; other nodes are told of it.
    pub deadline: Option<Instant>,
    /// The turn that the call got before it was read, if it is large. Not sent to other nodes.
    pub early_turn: EarlyTurn,
    /// Whose flows the call changes according to the audit log; absent where no entry is needed. Set by `Service`.
    pub noted: Option<Noted>,
}

impl Context {
    /// A caller while authentication is off, without trace context, idempotency key or deadline.
    #[must_use]
    pub fn anonymous(correlation: Arc<str>) -> Self {
        Self::of(Caller::anonymous(), correlation)
    }

    /// A caller without trace context, idempotency key or deadline.
    #[must_use]
    pub const fn of(caller: Arc<Caller>, correlation: Arc<str>) -> Self {
        Self {
            caller,
            address: None,
            correlation,
            own_id: None,
            trace: None,
            idempotency: None,
            deadline: None,
            early_turn: EarlyTurn::NONE,
            noted: None,
        }
    }

    /// The same caller, who waits until then at most.
    #[must_use]
    pub fn until(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// The same caller, of whom it was noted whose flows the call changes. `call`: an id of this call alone, if the
    /// audit log has an entry of it.
    #[must_use]
    pub(super) fn noting(&self, noted: Noted, call: Option<Uuid>) -> Self {
        let mut context = self.clone();
        context.noted = Some(noted);
        if let Some(idempotency) = &mut context.idempotency {
            idempotency.noted_call = call;
        }
        context
    }

    /// The same caller with an idempotency key whose request has this fingerprint.
    #[must_use]
    pub(super) fn fingerprinted(&self, fingerprint: Arc<str>) -> Self {
        let mut context = self.clone();
        if let Some(idempotency) = &mut context.idempotency {
            idempotency.fingerprint = Some(fingerprint);
        }
        context
    }

    /// The same caller, whose key is one of this method, whatever request the call becomes. For requests that are
    /// carried out by the node that they came to: other nodes are not told of it.
    #[must_use]
    pub(super) fn keyed_as(&self, method: &'static str) -> Self {
        let mut context = self.clone();
        if let Some(idempotency) = &mut context.idempotency {
            idempotency.method = Some(method);
        }
        context
    }
}

/// The caller's promise that calls with the same key are one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The caller's key, 1 to [`IDEMPOTENCY_KEY_CHARS_MAX`] characters.
    pub key: Arc<str>,
    /// For a method whose calls become requests of different kinds: what its keys are kept under in place of the kind.
    method: Option<&'static str>,
    /// Two requests with the same key are the same request if and only if this is equal. Set by
    /// `Service` from the typed request.
    fingerprint: Option<Arc<str>>,
    /// The id of a call that the audit log has an entry of. It is stored with the key, so that `Service` can tell
    /// whether this call or another one with the key has made the change.
    pub(super) noted_call: Option<Uuid>,
}

impl Idempotency {
    /// A key whose request is not known yet.
    #[must_use]
    pub const fn new(key: Arc<str>) -> Self {
        Self {
            key,
            method: None,
            fingerprint: None,
            noted_call: None,
        }
    }

    /// A key of a request with this fingerprint, for those who call the application without `Service`.
    #[must_use]
    pub const fn of(key: Arc<str>, fingerprint: Arc<str>) -> Self {
        Self {
            key,
            method: None,
            fingerprint: Some(fingerprint),
            noted_call: None,
        }
    }

    /// The method whose keys are kept apart from those of other requests of the same kind.
    #[must_use]
    pub(super) const fn method(&self) -> Option<&'static str> {
        self.method
    }

    /// The fingerprint of the request.
    ///
    /// # Panics
    /// When the call did not come through `Service`: a fault of the program.
    #[must_use]
    pub(super) fn fingerprint(&self) -> &Arc<str> {
        let fingerprint = self.fingerprint.as_ref();
        fingerprint.expect("the service takes the fingerprint of a request with a key")
    }
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

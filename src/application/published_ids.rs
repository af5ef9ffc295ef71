//! Derives the id of a task that an agent publishes under a name of its own, such as `invoice-2`: with a key of this
//! log, so that nobody can compute the id, take it beforehand, or learn from it what others have published.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;
use taskledger_domain::TaskId;

/// Bytes of the key.
pub const KEY_BYTES: usize = 32;

/// The ids of one principal.
#[derive(Clone)]
pub struct PublishedIds {
    key: Arc<[u8]>,
    actor: Arc<str>,
    /// There were published tasks before there was a key.
    had_none: bool,
}

impl fmt::Debug for PublishedIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PublishedIds");
        shown.field("actor", &self.actor).finish_non_exhaustive()
    }
}

impl PublishedIds {
    /// The ids of `actor` in the log of this key. `had_none`: tasks were published there before it had one.
    #[must_use]
    pub fn of(key: Arc<[u8]>, actor: Arc<str>, had_none: bool) -> Self {
        Self {
            key,
            actor,
            had_none,
        }
    }

    /// The id of the task that a requester calls so: that id itself if it is a UUID v4, else one that follows from the
    /// key, the principal and both. The log takes each id once, so it is unique for ever.
    ///
    /// # Panics
    /// Never: a key of any length will do.
    #[must_use]
    pub fn id(&self, requester: &str, external_id: &str) -> TaskId {
        if let Some(id) = as_it_is(external_id) {
            return id;
        }
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.key).expect("a key of any length will do");
        for part in [&*self.actor, requester, external_id] {
            // The length keeps apart what could be mixed up.
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        of_digest(&mac.finalize().into_bytes())
    }

    /// The id under which such a task is stored if it was published before the log had a key; `None`: it was not.
    #[must_use]
    pub fn id_before(&self, requester: &str, external_id: &str) -> Option<TaskId> {
        if !self.had_none || as_it_is(external_id).is_some() {
            return None;
        }
        let mut hash = Sha256::new();
        for part in [&*self.actor, requester, external_id] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Some(of_digest(&hash.finalize()))
    }
}

fn as_it_is(external_id: &str) -> Option<TaskId> {
    let id = TaskId::parse(external_id).ok()?;
    (id.to_string() == external_id).then_some(id)
}

fn of_digest(digest: &[u8]) -> TaskId {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    TaskId(uuid::Builder::from_random_bytes(bytes).into_uuid())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(key: &[u8], actor: &str, had_none: bool) -> PublishedIds {
        PublishedIds::of(Arc::from(key), Arc::from(actor), had_none)
    }

    #[test]
    fn ids_follow_from_key_principal_requester_and_id_unless_they_are_uuids() {
        let anns = ids(b"key", "user:ann", false);
        let id = anns.id("a", "t");
        assert_eq!(id, anns.id("a", "t"));
        for other in [
            ids(b"other", "user:ann", false).id("a", "t"),
            ids(b"key", "user:bob", false).id("a", "t"),
            anns.id("b", "t"),
            anns.id("at", ""),
        ] {
            assert_ne!(id, other);
        }
        assert!(TaskId::parse(&id.to_string()).is_ok(), "{id} is a UUID v4");
        let own = "6f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d11";
        assert_eq!(anns.id("a", own).to_string(), own);
        let upper = own.to_uppercase();
        assert_ne!(anns.id("a", &upper).to_string(), own);
    }

    #[test]
    fn tasks_that_were_published_without_a_key_are_looked_for_only_where_there_can_be_some() {
        assert_eq!(ids(b"key", "user:ann", false).id_before("a", "t"), None);
        let anns = ids(b"key", "user:ann", true);
        // As programs without a key have stored it.
        let before = anns.id_before("a", "t").expect("there may be one");
        assert_eq!(before.to_string(), BEFORE);
        assert_ne!(before, anns.id("a", "t"));
        let own = "6f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d11";
        assert_eq!(anns.id_before("a", own), None);
    }

    #[test]
    fn the_key_is_not_shown() {
        let shown = format!("{:?}", ids(b"very secret", "user:ann", true));
        assert!(!shown.contains("118, 101"), "{shown}");
    }

    const BEFORE: &str = "eecbeda6-1d9c-4b3e-87ac-50b7b22f6b35";
}

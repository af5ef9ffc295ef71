//! Derives the id of a task that an agent publishes under a name of its own, such as `invoice-2`: with a key of this
//! log, so that nobody can compute the id, take it beforehand, or learn from it what others have published.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
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
}

impl fmt::Debug for PublishedIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PublishedIds");
        shown.field("actor", &self.actor).finish_non_exhaustive()
    }
}

impl PublishedIds {
    /// The ids of `actor` in the log of this key.
    #[must_use]
    pub const fn of(key: Arc<[u8]>, actor: Arc<str>) -> Self {
        Self { key, actor }
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

    fn ids(key: &[u8], actor: &str) -> PublishedIds {
        PublishedIds::of(Arc::from(key), Arc::from(actor))
    }

    #[test]
    fn ids_follow_from_key_principal_requester_and_id_unless_they_are_uuids() {
        let anns = ids(b"key", "user:ann");
        let id = anns.id("a", "t");
        assert_eq!(id, anns.id("a", "t"));
        for other in [
            ids(b"other", "user:ann").id("a", "t"),
            ids(b"key", "user:bob").id("a", "t"),
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
    fn the_key_is_not_shown() {
        let shown = format!("{:?}", ids(b"very secret", "user:ann"));
        assert!(!shown.contains("118, 101"), "{shown}");
    }
}

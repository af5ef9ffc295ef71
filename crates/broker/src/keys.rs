//! The owners of published tasks, and the digests by which tasks are found. Owns their form, which never changes: it is
//! stored. May not touch the tables.

use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// Bytes that are kept of a digest. Statements compare the texts as well, so one that is met twice costs time only.
const DIGEST_BYTES: usize = 16;

/// What is kept of a digest.
pub(crate) type Digest = [u8; DIGEST_BYTES];

/// A requester, which publishes tasks and is told of their ends. Nobody sees what belongs to another owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Name of the tenant that the principal belongs to.
    pub tenant: Arc<str>,
    /// The principal, as events have it in `actor`.
    pub actor: Arc<str>,
}

impl Owner {
    /// The inbox of one of its agents.
    pub(crate) fn inbox(&self, requester: &str) -> Digest {
        self.digest(requester)
    }

    /// What it calls a task.
    pub(crate) fn name(&self, external_id: &str) -> Digest {
        self.digest(external_id)
    }

    fn digest(&self, text: &str) -> Digest {
        let mut hash = Sha256::new();
        // The lengths keep apart what could be mixed up.
        hash.update((self.tenant.len() as u64).to_le_bytes());
        hash.update(&*self.tenant);
        hash.update((self.actor.len() as u64).to_le_bytes());
        hash.update(&*self.actor);
        hash.update(text);
        let mut digest = [0; DIGEST_BYTES];
        digest.copy_from_slice(&hash.finalize()[..DIGEST_BYTES]);
        digest
    }
}

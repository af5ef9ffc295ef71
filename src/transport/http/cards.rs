//! The card of Agent2Agent as it is published: written anew when what workers have declared of its skill has changed.

use super::published::Published;
use crate::clock::SharedClock;
use crate::transport::a2a::A2a;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use taskledger_domain::Timestamp;

/// The documents that are published of an agent.
pub(super) struct CardPages {
    /// The description of the skill that they name.
    described: Option<Arc<str>>,
    pub(super) card: Published,
    /// The keys that sign the card.
    pub(super) keys: Published,
    /// The card for readers of version 0.3, if that is served.
    pub(super) older: Option<Published>,
}

/// Publishes the card of an agent.
pub(super) struct Cards {
    a2a: Arc<A2a>,
    clock: SharedClock,
    /// The pages that were written last.
    newest: Mutex<Arc<CardPages>>,
}

impl fmt::Debug for Cards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cards").finish_non_exhaustive()
    }
}

impl Cards {
    pub(super) fn new(a2a: Arc<A2a>, clock: SharedClock) -> Self {
        let pages = CardPages::write(&a2a, a2a.described(), clock.now());
        Self {
            a2a,
            clock,
            newest: Mutex::new(Arc::new(pages)),
        }
    }

    /// The pages. Cost: O(1), unless the description of the skill has changed since they were written.
    pub(super) fn pages(&self) -> Arc<CardPages> {
        let described = self.a2a.described();
        // Whoever panicked while it held this has replaced nothing.
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.described != described {
            *newest = Arc::new(CardPages::write(&self.a2a, described, self.clock.now()));
        }
        newest.clone()
    }
}

impl CardPages {
    fn write(a2a: &A2a, described: Option<Arc<str>>, now: Timestamp) -> Self {
        let texts = a2a.published(described.as_deref());
        Self {
            described,
            card: Published::hashed(&texts.card, now),
            keys: Published::hashed(&texts.keys, now),
            older: texts.older.map(|text| Published::hashed(&text, now)),
        }
    }
}

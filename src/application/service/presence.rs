//! Tracks the connections of workers: a worker has left when its last connection is gone.
//!
//! A long poll is a connection while it waits, a subscription on a socket as long as it is open. A worker that has
//! been answered is busy or comes again: only one whose connection has ended before an answer has left.

use crate::application::ports::Workers;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// A worker and its principal.
type Key = (Arc<str>, Arc<str>);

/// How many connections each worker has. Memory: one entry for each worker that is connected.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<HashMap<Key, usize>>);

impl Connections {
    fn counts(&self) -> MutexGuard<'_, HashMap<Key, usize>> {
        self.0
            .lock()
            .expect("no code panics while it holds the connections of workers")
    }

    fn opened(&self, key: &Key) {
        *self.counts().entry(key.clone()).or_default() += 1;
    }

    /// Does `last` if it was the last one, before another one of that worker opens.
    fn closed(&self, key: &Key, last: impl FnOnce()) {
        let mut counts = self.counts();
        let Some(count) = counts.get_mut(key) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
            last();
        }
    }
}

/// A connection of a worker. Dropping it says that it has ended.
#[derive(Debug)]
pub struct Connected {
    connections: Arc<Connections>,
    workers: Arc<dyn Workers>,
    key: Key,
    stays: bool,
}

impl Connected {
    pub(super) fn new(
        connections: &Arc<Connections>,
        workers: &Arc<dyn Workers>,
        key: Key,
    ) -> Self {
        connections.opened(&key);
        Self {
            connections: connections.clone(),
            workers: workers.clone(),
            key,
            stays: false,
        }
    }

    /// The worker was answered: it is there, whether it asks again or is busy.
    pub(super) fn answered(mut self) {
        self.stays = true;
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let stays = self.stays;
        self.connections.closed(&self.key, || {
            if !stays {
                let (worker, principal) = &self.key;
                self.workers.left(worker, principal);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_connection_of_a_worker_is_told_from_others() {
        let connections = Connections::default();
        let key = |worker: &str| (Arc::from(worker), Arc::from("user:ann"));
        connections.opened(&key("a"));
        connections.opened(&key("a"));
        connections.opened(&key("b"));
        let closed = |worker: &str| {
            let mut is_last = false;
            connections.closed(&key(worker), || is_last = true);
            is_last
        };
        assert!(!closed("a"));
        assert!(closed("b"));
        assert!(closed("a"));
        assert!(connections.counts().is_empty());
    }
}

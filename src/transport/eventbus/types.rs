//! Task types that a stream did not name but has found because tasks of them wait, or did a while ago.
//!
//! It looks when it opens, and is told of new ones from then on. What other nodes have it finds by looking, when they
//! say that there is something.

use super::delivery::Delivery;
use super::patterns::Patterns;
use std::collections::BTreeSet;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};
use tonic::Status;

/// How often a stream looks, even if nobody says that there is something.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// The shortest time between two looks: tasks that the agent may not have are hinted at too.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The types that a stream has found. One per stream.
#[derive(Debug, Default)]
pub(super) struct Types {
    known: Mutex<BTreeSet<Arc<str>>>,
    changed: Notify,
}

impl Types {
    fn known(&self) -> MutexGuard<'_, BTreeSet<Arc<str>>> {
        // What a panic left is a set of methods still.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Told when there are others; waits no longer than until then.
    pub(super) const fn changed(&self) -> &Notify {
        &self.changed
    }

    /// The methods to ask for now.
    pub(super) fn methods(&self, patterns: &Patterns) -> Arc<[Arc<str>]> {
        let known = self.known();
        patterns.methods(known.iter().map(|it| &**it))
    }

    fn knows(&self, method: &str) -> bool {
        self.known().contains(method)
    }

    /// Takes in what tasks wait for now, in place of all before.
    fn replace(&self, methods: BTreeSet<Arc<str>>) {
        let mut known = self.known();
        let is_more = !methods.is_subset(&known);
        *known = methods;
        drop(known);
        if is_more {
            self.changed.notify_one();
        }
    }

    /// One more. False: there are too many, and those that nobody waits for must go.
    fn add(&self, method: Arc<str>, room: usize) -> bool {
        let mut known = self.known();
        if known.len() >= room {
            return false;
        }
        known.insert(method);
        drop(known);
        self.changed.notify_one();
        true
    }
}

impl Delivery {
    /// Finds types for as long as the stream lives.
    pub(super) async fn find_types(&self, types: &Types) -> Status {
        if self.patterns.is_exact() {
            return pending().await;
        }
        let mut news = match self.bus.service.new_methods(&self.context) {
            Ok(news) => news,
            Err(error) => return super::status::of(&*self.bus.clock, error),
        };
        loop {
            let looked = Instant::now();
            match self.bus.service.waiting_methods(&self.context).await {
                Ok(waiting) => {
                    let covered = waiting.into_iter().filter(|it| self.patterns.covers(it));
                    types.replace(covered.collect());
                }
                Err(error) => {
                    tracing::debug!(%error, "the methods of waiting tasks are not known");
                }
            }
            let is_wanted = |method: &str| self.patterns.asks_more(method) && !types.knows(method);
            // Until it is time, or something may have been missed.
            while let Ok(Some(method)) = timeout_at(looked + LOOK_EVERY, news.next(is_wanted)).await
            {
                if !types.add(method, self.patterns.room()) {
                    break;
                }
            }
            sleep_until(looked + LOOK_AGAIN).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_told_of_more_types_and_not_of_fewer() {
        let types = Types::default();
        let set = |names: &[&str]| names.iter().map(|it| Arc::from(*it)).collect();
        let is_told = async || {
            tokio::time::timeout(Duration::from_millis(1), types.changed().notified())
                .await
                .is_ok()
        };
        types.replace(set(&["x.a", "x.b"]));
        assert!(is_told().await);
        types.replace(set(&["x.b"]));
        assert!(!is_told().await);
        assert!(types.add(Arc::from("x.c"), 3) && is_told().await);
        assert!(types.knows("x.c") && !types.knows("x.a"));
        assert!(!types.add(Arc::from("x.more"), 2));
    }
}

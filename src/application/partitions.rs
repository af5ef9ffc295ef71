//! What a node does when it gains or loses partitions.
//!
//! What leaves is dropped at once: attempts are stopped and their outcomes are of no interest, since
//! the next owner ends them as interrupted. Nothing rests on this being quick: every order, append
//! and cached row is checked against the ownership of the moment. What comes is looked at once the
//! read models show all that the owner before could have written.

mod arrivals;

use super::flows::Flows;
use super::ownership::{Ownership, Partitions};
pub(super) use arrivals::Arrivals;
use std::sync::Arc;

impl Flows {
    /// Who owns what.
    #[must_use]
    pub fn ownership(&self) -> &Arc<dyn Ownership> {
        &self.ownership
    }

    /// These partitions are not ours any more. Comes after [`Ownership::of`] says so, and before it
    /// may call any of them ours again, so that nothing of now is taken for something of then.
    pub fn lost(&self, partitions: &Partitions) {
        self.arrivals.waiting().remove(partitions);
        self.attempts().forsake(partitions);
        self.evict(partitions);
        self.timers.forget(partitions);
        self.awaited.forget(partitions);
        self.offers.forget(partitions);
        self.leases.forget(partitions);
        self.slots.forget(partitions);
        self.rows.forget(partitions);
    }

    /// Partitions in which attempts run.
    #[must_use]
    pub fn busy(&self) -> Partitions {
        self.attempts().partitions()
    }

    /// Takes over partitions that are ours now: the flows in them that have a run are to be woken.
    pub fn gained(&self, partitions: &Partitions) {
        self.arrivals.waiting().extend(partitions);
        self.arrivals.changed.notify_one();
    }

    /// Waits until partitions have come, and takes them.
    pub async fn arrived(&self) -> Partitions {
        loop {
            let arrived = std::mem::take(&mut *self.arrivals.waiting());
            if !arrived.is_empty() {
                return arrived;
            }
            self.arrivals.changed.notified().await;
        }
    }
}

//! Takes over leases of a worker that nobody seems to keep for it any more, for a worker that has reconnected.

use super::{Holding, Inner, Leases, WorkerKey};
use std::sync::Arc;
use taskledger_domain::Timestamp;

impl Leases {
    /// Leases of a worker that hold at `now` and that nobody keeps as it seems, at most `limit`; they hold until
    /// `until` from now on, so that whoever asks next does not get them too. `is_left` is told whether the lease came
    /// with its flow and was not renewed since. Cost: O(leases) if the worker has any.
    pub(in crate::application) fn take_over(
        &self,
        worker: &WorkerKey,
        (now, until): (Timestamp, Timestamp),
        limit: usize,
        is_left: impl Fn(&Holding, bool) -> bool,
    ) -> Vec<Holding> {
        let mut inner = self.inner();
        if !inner.counts.contains_key(worker) {
            return Vec::new();
        }
        let Inner {
            records, expiring, ..
        } = &mut *inner;
        let of_worker = records.values_mut().filter(|record| {
            let holding = &record.holding;
            (&holding.worker, &holding.holder) == (&worker.0, &worker.1)
                && !record.ending
                && holding.expires_at > now
                && is_left(holding, record.inherited)
        });
        let mut taken = Vec::new();
        for record in of_worker.take(limit) {
            let holding = &mut record.holding;
            if until > holding.expires_at {
                expiring.remove(&(holding.expires_at, holding.lease));
                holding.expires_at = until;
                expiring.insert((until, holding.lease));
            }
            record.inherited = false;
            taken.push(holding.clone());
        }
        taken
    }

    /// Whether a worker that was last heard of at `heard_at` has lost a lease since: it stands still perhaps, and
    /// would lose whatever it gets.
    pub(in crate::application) fn is_silent(
        &self,
        worker: &Arc<str>,
        holder: &Arc<str>,
        heard_at: Timestamp,
    ) -> bool {
        let inner = self.inner();
        if inner.lost.is_empty() {
            return false;
        }
        let lost = inner.lost.get(&(worker.clone(), Some(holder.clone())));
        lost.is_some_and(|at| heard_at < *at)
    }
}

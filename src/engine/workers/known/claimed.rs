//! Workers that claim tasks of flows of this server and ask at another one.
//!
//! A claim that another server forwards says whose flows the worker may claim of. That is known here before the other
//! server has written that the worker is there, and also when it never does.

use super::{Known, WORKERS_MAX, is_now};
use std::sync::Arc;
use taskledger_auth::owner_of;
use taskledger_domain::Timestamp;

/// What the last claim of a worker said.
#[derive(Debug)]
pub(super) struct Claimed {
    /// The user whose flows alone it may claim of.
    owner: Option<Arc<str>>,
    /// When it last claimed, or was heard to hold something.
    pub(super) at: Timestamp,
}

impl Known {
    /// A worker has begun tasks of this server by a claim that another server has forwarded.
    pub(in crate::engine::workers) fn claimed(
        &mut self,
        (worker, principal): (&Arc<str>, &Arc<str>),
        owner: Option<&Arc<str>>,
        now: Timestamp,
    ) {
        let of = (principal.clone(), worker.clone());
        if self.claimed.len() < WORKERS_MAX || self.claimed.contains_key(&of) {
            let owner = owner.cloned();
            self.claimed.insert(of, Claimed { owner, at: now });
        }
    }

    /// A worker holds something: what its claim said counts for longer.
    pub(super) fn still_holds(&mut self, worker: &Arc<str>, principal: &Arc<str>, now: Timestamp) {
        let of = (principal.clone(), worker.clone());
        let claimed = self.claimed.get_mut(&of);
        if let Some(claimed) = claimed.filter(|claimed| is_now(claimed.at, now)) {
            claimed.at = now;
        }
    }

    /// The flows that a worker may claim of: as its claim said, as a server at which it asks has written, or as it last
    /// asked here. If nothing is known of the worker, those of its principal; this is noted here too, so it comes last.
    pub(super) fn reach_of(
        &self,
        worker: &Arc<str>,
        principal: &Arc<str>,
        now: Timestamp,
    ) -> Option<Arc<str>> {
        let claimed = self.claimed.get(&(principal.clone(), worker.clone()));
        if let Some(claimed) = claimed.filter(|claimed| is_now(claimed.at, now)) {
            return claimed.owner.clone();
        }
        let here = || self.here.get(principal)?.get(worker);
        let elsewhere = self.elsewhere(worker, principal, now);
        match elsewhere.or_else(|| here().map(|present| &present.seen)) {
            Some(known) => known.owner.clone(),
            None => owner_of(principal).map(Arc::from),
        }
    }
}

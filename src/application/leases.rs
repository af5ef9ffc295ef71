//! The leases of attempts outside the server, of the flows that this node owns: until when they hold, and
//! the slots that they take.
//!
//! Filled when the start of an attempt is durable and when a flow is loaded, so it needs no store of its own
//! to be complete; only renewals are kept beside the log ([`Renewals`]). Whoever wants to end a lease marks
//! it here first, and from then on it cannot be renewed: a worker that was told of a renewal holds its
//! attempt.

use super::ownership::Partitions;
use super::ports::{Renewal, Renewals};
use super::slots::Held;
use crate::store;
use async_trait::async_trait;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use taskledger_domain::schedule::Leased;
use taskledger_domain::{FlowId, LeaseId, TaskId, Timestamp};

/// An attempt outside the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holding {
    pub(super) flow: FlowId,
    pub(super) task: TaskId,
    pub(super) attempt: u32,
    pub(super) lease: LeaseId,
    pub(super) expires_at: Timestamp,
}

#[derive(Debug)]
struct Record {
    holding: Holding,
    /// Its time has come and somebody ends it.
    ending: bool,
    /// Whether something is stored beside the log.
    renewed: bool,
    /// Held for what dropping it does: the slot is free again.
    _slot: Held,
}

#[derive(Debug, Default)]
struct Inner {
    records: HashMap<LeaseId, Record>,
    attempts: HashMap<(TaskId, u32), LeaseId>,
    /// Those that nobody ends, by when they end.
    expiring: BTreeSet<(Timestamp, LeaseId)>,
}

impl Inner {
    fn remove(&mut self, lease: LeaseId) -> Option<Record> {
        let record = self.records.remove(&lease)?;
        let Holding {
            task,
            attempt,
            expires_at,
            ..
        } = record.holding;
        self.attempts.remove(&(task, attempt));
        self.expiring.remove(&(expires_at, lease));
        Some(record)
    }
}

/// See the module. Memory: about 500 bytes a lease.
#[derive(Debug)]
pub(super) struct Leases {
    inner: Mutex<Inner>,
    /// Records, so that flows without any pass by.
    count: AtomicUsize,
    pub(super) renewals: Arc<dyn Renewals>,
}

impl Leases {
    pub(super) fn new(renewals: Arc<dyn Renewals>) -> Self {
        Self {
            inner: Mutex::default(),
            count: AtomicUsize::new(0),
            renewals,
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner
            .lock()
            .expect("no code panics while it holds the leases")
    }

    fn counted(&self, inner: &Inner) {
        self.count.store(inner.records.len(), Ordering::Release);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Keeps a lease from now on, with the slot of its attempt. One that is kept already stays as it is.
    pub(super) fn hold(&self, flow: FlowId, leased: &Leased, slot: Held) {
        let holding = Holding {
            flow,
            task: leased.task,
            attempt: leased.attempt,
            lease: leased.lease,
            expires_at: leased.expires_at,
        };
        let mut inner = self.inner();
        if inner.records.contains_key(&leased.lease) {
            // The slot is the same one.
            return slot.keep();
        }
        let record = Record {
            holding,
            ending: false,
            renewed: false,
            _slot: slot,
        };
        inner.records.insert(leased.lease, record);
        let attempt = (leased.task, leased.attempt);
        inner.attempts.insert(attempt, leased.lease);
        inner.expiring.insert((leased.expires_at, leased.lease));
        self.counted(&inner);
    }

    pub(super) fn get(&self, lease: LeaseId) -> Option<Holding> {
        let inner = self.inner();
        inner.records.get(&lease).map(|record| record.holding)
    }

    /// Lets the lease hold until `until`, if it still holds at `now`; an earlier time changes nothing.
    /// `None`: it is not held any more.
    pub(super) fn extend(
        &self,
        lease: LeaseId,
        until: Timestamp,
        now: Timestamp,
    ) -> Option<Holding> {
        let mut inner = self.inner();
        let Inner {
            records, expiring, ..
        } = &mut *inner;
        let record = records.get_mut(&lease)?;
        let holding = &mut record.holding;
        if record.ending || holding.expires_at <= now {
            return None;
        }
        if until > holding.expires_at {
            expiring.remove(&(holding.expires_at, lease));
            holding.expires_at = until;
            expiring.insert((until, lease));
        }
        record.renewed = true;
        Some(*holding)
    }

    /// Takes leases whose time has come, at most `limit`: they cannot be renewed any more.
    pub(super) fn expired(&self, now: Timestamp, limit: usize) -> Vec<Holding> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut inner = self.inner();
        let mut expired = Vec::new();
        while expired.len() < limit
            && let Some(&(_, lease)) = inner.expiring.first().filter(|(at, _)| *at <= now)
        {
            inner.expiring.pop_first();
            if let Some(record) = inner.records.get_mut(&lease) {
                record.ending = true;
                expired.push(record.holding);
            }
        }
        expired
    }

    /// The end of the lease could not be recorded: it is tried again at `at`.
    pub(super) fn end_later(&self, lease: LeaseId, at: Timestamp) {
        let mut inner = self.inner();
        if inner.records.contains_key(&lease) {
            inner.expiring.insert((at, lease));
        }
    }

    /// The attempt is over, in whatever way: its slot is free. Gives its lease when something of it is
    /// stored beside the log.
    pub(super) fn ended(&self, task: TaskId, attempt: u32) -> Option<LeaseId> {
        if self.is_empty() {
            return None;
        }
        let mut inner = self.inner();
        let lease = *inner.attempts.get(&(task, attempt))?;
        let record = inner.remove(lease);
        self.counted(&inner);
        drop(inner);
        record.filter(|record| record.renewed).map(|_| lease)
    }

    /// These partitions belong to another node now, which keeps their leases from what is stored.
    pub(super) fn forget(&self, partitions: &Partitions) {
        let mut inner = self.inner();
        let leaving = inner.records.values().map(|record| record.holding);
        let leaving = leaving.filter(|holding| partitions.contain(holding.flow));
        let leaving: Vec<LeaseId> = leaving.map(|holding| holding.lease).collect();
        let records: Vec<Record> = leaving.iter().filter_map(|l| inner.remove(*l)).collect();
        self.counted(&inner);
        drop(inner);
        // Frees the slots, which wakes others.
        drop(records);
    }
}

/// Renewals in memory, which a restart of the process forgets: leases then hold until the time of their
/// claim, and at least for the moment in which workers find the server again.
#[derive(Default)]
pub struct MemoryRenewals(Mutex<HashMap<LeaseId, Renewal>>);

impl fmt::Debug for MemoryRenewals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRenewals").finish_non_exhaustive()
    }
}

impl MemoryRenewals {
    fn all(&self) -> MutexGuard<'_, HashMap<LeaseId, Renewal>> {
        self.0
            .lock()
            .expect("no code panics while it holds the renewals")
    }

    /// Leases of which something is kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all().len()
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[async_trait]
impl Renewals for MemoryRenewals {
    async fn renew(&self, renewal: Renewal) -> Result<(), store::Error> {
        let mut all = self.all();
        let kept = all.entry(renewal.lease).or_insert(renewal);
        kept.expires_at = kept.expires_at.max(renewal.expires_at);
        Ok(())
    }

    async fn of(&self, flow: FlowId) -> Result<HashMap<LeaseId, Timestamp>, store::Error> {
        let all = self.all();
        let of_flow = all.values().filter(|renewal| renewal.flow == flow);
        Ok(of_flow.map(|r| (r.lease, r.expires_at)).collect())
    }

    async fn forget(&self, leases: &[LeaseId]) -> Result<(), store::Error> {
        let mut all = self.all();
        all.retain(|lease, _| !leases.contains(lease));
        Ok(())
    }
}

//! The leases of attempts outside the server, for the flows that this node owns: their workers, when they expire, and
//! the slots they take.
//!
//! Filled when the start of an attempt is durable and when a flow is loaded, so it needs no store of its own
//! to be complete; only renewals are kept beside the log ([`Renewals`]). Whoever wants to end a lease marks
//! it here first, and from then on it cannot be renewed: a worker that was told of a renewal holds its
//! attempt. An attempt that was taken back is remembered for as long as its worker may take to stop.

mod holding;
mod left;
mod memory;

pub(super) use holding::Holding;
pub use memory::MemoryRenewals;

use super::api::work::StopReason;
use super::offers::Offers;
use super::ownership::Partitions;
use super::ports::{Renewals, Tickets, TicketsOf};
use super::slots::Held;
use crate::store;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use taskledger_domain::schedule::Leased;
use taskledger_domain::task::Progress;
use taskledger_domain::{FlowId, LeaseId, TaskId, Timestamp};
use taskledger_workers::MethodKey;

/// Milliseconds between two reports of progress of an attempt that are recorded.
const PROGRESS_EVERY_MS: u64 = 1000;
/// Milliseconds for which it is known that a worker has lost a lease: longer than anybody waits for tasks
/// without a word.
const LOST_KEPT_MS: u64 = 10 * 60 * 1000;
/// Leases of one worker that a list shows.
pub(super) const SHOWN_MAX: usize = 100;

/// A worker by its name, and its principal.
pub(super) type WorkerKey = (Arc<str>, Option<Arc<str>>);

/// How this process has come to a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The attempt has begun here.
    Begun,
    /// Its flow was loaded; whether something is stored of it beside the log.
    Loaded { is_renewed: bool },
}

/// For how many milliseconds a renewed lease holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Term {
    /// So many, even if that is less than what is left of it: its worker says so.
    Exactly(u64),
    /// So many, or what is left of it.
    AtLeast(u64),
}

#[derive(Debug)]
struct Record {
    holding: Holding,
    /// Its time has come and somebody ends it.
    ending: bool,
    /// Whether something is stored beside the log.
    renewed: bool,
    /// Its flow was loaded, and nobody has renewed it since.
    inherited: bool,
    /// When progress was last recorded.
    reported_at: Timestamp,
    /// Held for what dropping it does: the slot is free again.
    _slot: Held,
}

/// An attempt that was taken back from a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stopped {
    pub(super) reason: StopReason,
    /// Until then its renewals are answered.
    pub(super) until: Timestamp,
}

/// What is stored beside the log of a lease that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    renewal: Option<LeaseId>,
    has_ticket: bool,
}

#[derive(Debug, Default)]
struct Inner {
    records: HashMap<LeaseId, Record>,
    attempts: HashMap<(TaskId, u32), LeaseId>,
    /// Those that nobody ends, by when they end.
    expiring: BTreeSet<(Timestamp, LeaseId)>,
    stopped: HashMap<LeaseId, (Holding, Stopped)>,
    /// When they are forgotten.
    forgetting: BTreeSet<(Timestamp, LeaseId)>,
    /// How many each worker holds.
    counts: HashMap<WorkerKey, usize>,
    /// When the last lease ended that a worker did not renew.
    lost: HashMap<WorkerKey, Timestamp>,
}

impl Inner {
    fn remove(&mut self, lease: LeaseId) -> Option<Record> {
        let record = self.records.remove(&lease)?;
        let holding = &record.holding;
        self.attempts.remove(&(holding.task, holding.attempt));
        self.expiring.remove(&(holding.expires_at, lease));
        let worker = (holding.worker.clone(), holding.holder.clone());
        if let Some(count) = self.counts.get_mut(&worker) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&worker);
            }
        }
        Some(record)
    }
}

/// The leases that this node keeps. Memory: about 600 bytes a lease.
#[derive(Debug)]
pub(super) struct Leases {
    inner: Mutex<Inner>,
    /// Records, so that flows without any pass by.
    count: AtomicUsize,
    offers: Arc<Offers>,
    pub(super) renewals: Arc<dyn Renewals>,
    /// `None`: this node is alone, and [`Offers`] counts for limits.
    pub(super) tickets: Option<Arc<dyn Tickets>>,
}

impl Leases {
    pub(super) fn new(
        renewals: Arc<dyn Renewals>,
        tickets: Option<Arc<dyn Tickets>>,
        offers: Arc<Offers>,
    ) -> Self {
        Self {
            inner: Mutex::default(),
            count: AtomicUsize::new(0),
            offers,
            renewals,
            tickets,
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

    /// Keeps a lease from now on, with the slot of its attempt and its method. One that is kept stays as it is.
    pub(super) fn hold(
        &self,
        of: (FlowId, MethodKey),
        leased: &Leased,
        slot: Held,
        source: Source,
    ) {
        let mut inner = self.inner();
        if inner.records.contains_key(&leased.lease) {
            // The slot is the same one.
            return slot.keep();
        }
        let holding = Holding::of(of, leased);
        let method = holding.method.clone();
        let worker = (holding.worker.clone(), holding.holder.clone());
        *inner.counts.entry(worker).or_default() += 1;
        let record = Record {
            holding,
            ending: false,
            renewed: source == Source::Loaded { is_renewed: true },
            inherited: source != Source::Begun,
            reported_at: Timestamp::default(),
            _slot: slot,
        };
        inner.records.insert(leased.lease, record);
        let attempt = (leased.task, leased.attempt);
        inner.attempts.insert(attempt, leased.lease);
        inner.expiring.insert((leased.expires_at, leased.lease));
        self.counted(&inner);
        drop(inner);
        self.offers.began(&method);
    }

    /// The lease of an attempt.
    pub(super) fn of_attempt(&self, attempt: (TaskId, u32)) -> Option<Holding> {
        let inner = self.inner();
        let lease = inner.attempts.get(&attempt)?;
        let record = inner.records.get(lease)?;
        Some(record.holding.clone())
    }

    pub(super) fn get(&self, lease: LeaseId) -> Option<Holding> {
        let inner = self.inner();
        inner
            .records
            .get(&lease)
            .map(|record| record.holding.clone())
    }

    /// Lets the lease hold for so long from `now`, if it still holds then. `None`: it is not held any more.
    pub(super) fn renew(&self, lease: LeaseId, term: Term, now: Timestamp) -> Option<Holding> {
        let mut inner = self.inner();
        let Inner {
            records, expiring, ..
        } = &mut *inner;
        let record = records.get_mut(&lease)?;
        let holding = &mut record.holding;
        if record.ending || holding.expires_at <= now {
            return None;
        }
        let until = match term {
            Term::Exactly(ms) => now.plus_ms(ms),
            Term::AtLeast(ms) => now.plus_ms(ms).max(holding.expires_at),
        };
        if until != holding.expires_at {
            expiring.remove(&(holding.expires_at, lease));
            holding.expires_at = until;
            expiring.insert((until, lease));
        }
        record.renewed = true;
        record.inherited = false;
        Some(record.holding.clone())
    }

    /// Whether progress of the attempt may be recorded at `now`, which it is then.
    pub(super) fn reports(&self, lease: LeaseId, progress: Progress, now: Timestamp) -> bool {
        let mut inner = self.inner();
        let Some(record) = inner.records.get_mut(&lease) else {
            return false;
        };
        let is_due = record.reported_at.plus_ms(PROGRESS_EVERY_MS) <= now;
        let is_last = progress == Progress::DONE && record.holding.progress != Progress::DONE;
        let is_due = is_due || is_last;
        if is_due {
            record.reported_at = now;
            record.holding.progress = progress;
        }
        is_due
    }

    /// Takes leases whose time has come, at most `limit`: they cannot be renewed any more. Forgets those that
    /// were taken back long enough ago.
    pub(super) fn expired(&self, now: Timestamp, limit: usize) -> Vec<Holding> {
        let mut inner = self.inner();
        while let Some(&(_, lease)) = inner.forgetting.first().filter(|(at, _)| *at <= now) {
            inner.forgetting.pop_first();
            inner.stopped.remove(&lease);
        }
        let mut expired = Vec::new();
        while expired.len() < limit
            && let Some(&(_, lease)) = inner.expiring.first().filter(|(at, _)| *at <= now)
        {
            inner.expiring.pop_first();
            if let Some(record) = inner.records.get_mut(&lease) {
                record.ending = true;
                expired.push(record.holding.clone());
            }
        }
        inner.lost.retain(|_, at| at.plus_ms(LOST_KEPT_MS) > now);
        for held in &expired {
            let worker = (held.worker.clone(), held.holder.clone());
            // Not `now`: a worker that asks behind the end of its lease is there, however late that is noticed.
            let at = inner.lost.entry(worker).or_insert(held.expires_at);
            *at = held.expires_at.max(*at);
        }
        expired
    }

    /// How many leases of flows of this node a worker holds.
    pub(super) fn of_worker(&self, worker: &Arc<str>, holder: &Arc<str>) -> usize {
        let worker = (worker.clone(), Some(holder.clone()));
        self.inner()
            .counts
            .get(&worker)
            .copied()
            .unwrap_or_default()
    }

    /// The end of the lease could not be recorded: it is tried again at `at`.
    pub(super) fn end_later(&self, lease: LeaseId, at: Timestamp) {
        let mut inner = self.inner();
        if inner.records.contains_key(&lease) {
            inner.expiring.insert((at, lease));
        }
    }

    /// The attempt is over, in whatever way: its slot is free. `stopped` says why its worker should stop, if it
    /// does not know, and when that happened. Says what of it is stored beside the log.
    pub(super) fn ended(
        &self,
        task: TaskId,
        attempt: u32,
        stopped: Option<(StopReason, Timestamp)>,
    ) -> Option<Kept> {
        if self.is_empty() {
            return None;
        }
        let mut inner = self.inner();
        let lease = *inner.attempts.get(&(task, attempt))?;
        let record = inner.remove(lease)?;
        if let Some((reason, at)) = stopped {
            let until = at.plus_ms(record.holding.cancel_grace_ms);
            let stopped = Stopped { reason, until };
            let holding = record.holding.clone();
            inner.stopped.insert(lease, (holding, stopped));
            inner.forgetting.insert((until, lease));
        }
        self.counted(&inner);
        drop(inner);
        let (method, renewed) = (record.holding.method.clone(), record.renewed);
        // The slot and the ticket are free before somebody is woken for them.
        drop(record);
        let tickets = self.tickets.as_ref();
        let has_ticket = tickets.is_some_and(|tickets| tickets.give_back(lease));
        self.offers.ended(&method);
        let renewal = renewed.then_some(lease);
        (renewed || has_ticket).then_some(Kept {
            renewal,
            has_ticket,
        })
    }

    /// What of a lease that has ended is kept beside the log goes.
    ///
    /// # Errors
    /// It cannot be written; it goes with the time.
    pub(super) async fn clean_up(&self, kept: Kept) -> Result<(), store::Error> {
        let ticket = match &self.tickets {
            Some(tickets) if kept.has_ticket => tickets.write().await,
            Some(_) | None => Ok(()),
        };
        if let Some(lease) = kept.renewal {
            self.renewals.forget(&[lease]).await?;
        }
        ticket
    }

    /// Another node looks after the attempt, or will: nothing of it is kept here any more.
    pub(super) fn let_go(&self, lease: LeaseId) {
        let mut inner = self.inner();
        let record = inner.remove(lease);
        self.counted(&inner);
        drop(inner);
        if let Some(record) = record {
            let method = record.holding.method.clone();
            drop(record);
            if let Some(tickets) = &self.tickets {
                tickets.forget(lease);
            }
            self.offers.ended(&method);
        }
    }

    /// The leases of attempts of these methods. Cost: O(leases).
    pub(super) fn of_methods(&self, methods: &[MethodKey]) -> TicketsOf {
        let inner = self.inner();
        let held = inner.records.values().map(|record| &record.holding);
        let of_methods = held.filter(|held| methods.contains(&held.method));
        of_methods
            .map(|held| (held.method.clone(), held.lease, held.expires_at))
            .collect()
    }

    /// Why the worker of a lease should stop, while it may take its time for that.
    pub(super) fn stopped(&self, lease: LeaseId, now: Timestamp) -> Option<(Holding, Stopped)> {
        let inner = self.inner();
        let stopped = inner.stopped.get(&lease).cloned();
        stopped.filter(|(_, stopped)| now < stopped.until)
    }

    /// The methods of which each worker holds tasks. Cost: O(leases).
    pub(super) fn methods(&self) -> HashMap<WorkerKey, BTreeSet<Arc<str>>> {
        let inner = self.inner();
        let mut workers: HashMap<WorkerKey, BTreeSet<Arc<str>>> = HashMap::new();
        for Record { holding, .. } in inner.records.values() {
            let worker = (holding.worker.clone(), holding.holder.clone());
            let methods = workers.entry(worker).or_default();
            methods.insert(holding.method.name.clone());
        }
        workers
    }

    /// Attempts under leases of this principal, by method. Cost: O(leases).
    pub(super) fn running_of(&self, holder: &str) -> HashMap<MethodKey, usize> {
        let inner = self.inner();
        let mut methods = HashMap::new();
        for Record { holding, .. } in inner.records.values() {
            if holding.holder.as_deref() == Some(holder) {
                *methods.entry(holding.method.clone()).or_default() += 1;
            }
        }
        methods
    }

    /// Leases by worker and principal: how many, and the first of them. Cost: O(leases).
    pub(super) fn by_worker(&self) -> HashMap<WorkerKey, (usize, Vec<Holding>)> {
        let inner = self.inner();
        let mut workers: HashMap<_, (usize, Vec<Holding>)> = HashMap::new();
        for Record { holding, .. } in inner.records.values() {
            let worker = (holding.worker.clone(), holding.holder.clone());
            let (count, first) = workers.entry(worker).or_default();
            *count += 1;
            if first.len() < SHOWN_MAX {
                first.push(holding.clone());
            }
        }
        workers
    }

    /// The tasks that a worker of a principal holds, at most `most`. Cost: O(leases).
    pub(super) fn tasks_of_worker(&self, worker: &str, holder: &str, most: usize) -> Vec<TaskId> {
        let inner = self.inner();
        let held = inner.records.values().map(|record| &record.holding);
        let own = held.filter(|it| &*it.worker == worker && it.is_for(it.task, holder));
        own.map(|it| it.task).take(most).collect()
    }

    /// Forgets partitions that belong to another node now, which keeps their leases from what is stored.
    pub(super) fn forget(&self, partitions: &Partitions) {
        let mut inner = self.inner();
        let leaving = inner.records.values().map(|record| &record.holding);
        let leaving = leaving.filter(|holding| partitions.contain(holding.flow));
        let leaving: Vec<LeaseId> = leaving.map(|holding| holding.lease).collect();
        let records: Vec<Record> = leaving.iter().filter_map(|l| inner.remove(*l)).collect();
        self.counted(&inner);
        drop(inner);
        for Record { holding, .. } in &records {
            if let Some(tickets) = &self.tickets {
                tickets.forget(holding.lease);
            }
            self.offers.ended(&holding.method);
        }
        // Frees the slots, which wakes others.
        drop(records);
    }
}

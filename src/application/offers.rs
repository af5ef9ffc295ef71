//! Matches tasks that workers may claim on this node with the workers that wait for them.
//!
//! A flow enters what it has to offer when it comes to rest and before a command is answered, by method: its
//! best rank and how many tasks there are. A worker that asks enters the methods that it wants and whose tasks
//! it may have. Whenever either changes, the best offer goes to the worker that has waited for the longest
//! time, as a [`Reservation`]: nobody else is woken for it. The tasks themselves are claimed in the flow's
//! turn, so an offer that is out of date costs a turn and nothing else. Where owners share fairly, the best offer is
//! that of the owner who has had least (`turns.rs`), and a worker is given one task at a time while others wait.
//!
//! A method that a user has declared for themselves is a method of its own here ([`MethodKey`]): what it offers, the
//! workers that wait for it and what counts against its limit are apart from what others have under the same name.
//!
//! Cost of a change: O(log offers + methods of the flow); memory: about 300 bytes for each flow and method.

mod calm;
mod coming;
mod matching;
mod method;
#[cfg(test)]
mod tests;
mod turns;
mod work;

use super::ownership::Partitions;
use super::slots::Sharing;
pub(super) use coming::{Coming, OnItsWay};
use matching::{Inner, Match};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskledger_auth::Reach;
use taskledger_domain::task::Priority;
use taskledger_domain::{FlowId, Timestamp};
use taskledger_workers::MethodKey;
use tokio::sync::{Notify, broadcast, oneshot};
pub use work::RemoteWork;

/// Workers that may wait on a node at once.
pub(super) const WAITING_MAX: usize = 20_000;
/// Methods that other nodes are told of at a time.
const HINTED_MAX: usize = 256;
/// Tasks of each of them that are counted.
const HINTED_TASKS_MAX: usize = 64;
/// Methods that have appeared and that a worker has not looked at yet; with more, it looks at all methods.
const APPEARED_MAX: usize = 1024;

/// The number of a worker that does not wait; those that do count from 1.
const NOBODY: u64 = 0;

/// The place of an offer among others: urgency, then age.
pub(super) type Rank = (Priority, Timestamp);

/// The tasks of one method that a flow offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) method: MethodKey,
    pub(super) rank: Rank,
    /// Tasks.
    pub(super) ready: usize,
}

/// The request of a worker.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) methods: Arc<[MethodKey]>,
    /// The flows whose tasks the worker may claim.
    pub(super) reach: Reach,
    /// At most so many tasks.
    pub(super) max: usize,
    /// Who asks: the worker, and its principal.
    pub(super) by: (Arc<str>, Arc<str>),
}

/// The right to claim tasks of a flow; dropping it offers what is left to others.
#[derive(Debug)]
pub(super) struct Reservation {
    offers: Arc<Offers>,
    pub(super) flow: FlowId,
    pub(super) method: MethodKey,
    /// At most so many.
    pub(super) many: usize,
    /// Tasks behind this rank are for others, but for the first one.
    pub(super) until: Option<Rank>,
    /// Its flow waits for the claim for a moment.
    pub(super) on_its_way: Option<OnItsWay>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.offers.give_back(self.flow, &self.method, self.many);
    }
}

/// The offers of this node.
pub(super) struct Offers {
    inner: Mutex<Inner>,
    /// Flows with offers, so that others pass it by.
    flows: AtomicUsize,
    closed: AtomicBool,
    /// Nothing is given out for now.
    held_back: AtomicBool,
    /// Nothing is given out any more, and who waits goes on waiting.
    is_stopping: AtomicBool,
    /// Methods with offers that nobody here wants, for the other nodes.
    unwanted: Notify,
    /// For workers that do not know beforehand what they want.
    appeared: broadcast::Sender<Appeared>,
}

/// There is something of a method of which there was nothing.
#[derive(Debug, Clone)]
pub(super) struct Appeared {
    pub(super) method: Arc<str>,
    pub(super) of: Whose,
}

/// The owner of tasks.
#[derive(Debug, Clone)]
pub(super) enum Whose {
    /// Of flows of this node with this owner.
    Owner(Option<Arc<str>>),
    /// Nobody here knows: another node has given a hint.
    Elsewhere,
}

impl fmt::Debug for Offers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offers").finish_non_exhaustive()
    }
}

impl Offers {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::default(),
            flows: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            held_back: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            unwanted: Notify::new(),
            appeared: broadcast::Sender::new(APPEARED_MAX),
        })
    }

    /// Says in which order tasks of different owners come; before the first flow.
    pub(super) fn share(&self, sharing: Sharing) {
        self.inner().share(sharing);
    }

    /// Whether owners share workers fairly.
    pub(super) fn is_fair(&self) -> bool {
        self.inner().is_fair()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // What a panic left is a set of offers still.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A flow has nothing to offer any more, or nobody knows.
    pub(super) fn clear(self: &Arc<Self>, flow: FlowId) {
        self.set((flow, None), Vec::new(), &Arc::default());
    }

    /// Says what a flow of this owner has to offer now, in place of what it had before; the claims that follow at
    /// once are `coming`.
    pub(super) fn set(
        self: &Arc<Self>,
        (flow, owner): (FlowId, Option<&str>),
        offers: Vec<Offer>,
        coming: &Arc<Coming>,
    ) {
        if offers.is_empty() && self.flows.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut inner = self.inner();
        let changed = inner.set(flow, owner, offers);
        self.changed(inner, flow, &changed, coming);
    }

    /// Says what has changed in what a flow has to offer, method by method; the owner is the same as before. Gives
    /// of how many methods it has something now. Cost: O(methods that have changed * log).
    pub(super) fn change(
        self: &Arc<Self>,
        (flow, owner): (FlowId, Option<&str>),
        offers: Vec<(MethodKey, Option<Offer>)>,
        coming: &Arc<Coming>,
    ) -> usize {
        let mut inner = self.inner();
        let changed = inner.change_offers(flow, owner, offers);
        let many = inner.offered(flow);
        self.changed(inner, flow, &changed, coming);
        many
    }

    fn changed(
        self: &Arc<Self>,
        mut inner: MutexGuard<'_, Inner>,
        flow: FlowId,
        methods: &[MethodKey],
        coming: &Arc<Coming>,
    ) {
        self.flows.store(inner.flows(), Ordering::Release);
        let matches = self.matches(&mut inner, methods.iter());
        let appeared = inner.take_appeared();
        drop(inner);
        for (MethodKey { name: method, .. }, owner) in appeared {
            let of = Whose::Owner(owner);
            // Nobody need listen.
            let _ = self.appeared.send(Appeared { method, of });
        }
        self.hand_out_with(matches, |of| (of == flow).then(|| coming.one()));
    }

    /// Whether a worker waits on this node.
    pub(super) fn is_anybody_waiting(&self) -> bool {
        self.inner().waiting() > 0
    }

    /// Waits for offers, behind those who wait already. Dropping what this gives ends the wait.
    ///
    /// # Errors
    /// [`TooManyWait`].
    pub(super) fn ask(self: &Arc<Self>, ask: Ask) -> Result<Waiting, TooManyWait> {
        let (tell, told) = oneshot::channel();
        let mut inner = self.inner();
        if inner.waiting() >= WAITING_MAX {
            return Err(TooManyWait);
        }
        if self.closed.load(Ordering::Acquire) {
            // Who waited has been told already; this one is told in the same way.
            drop(tell);
            let (offers, id) = (self.clone(), NOBODY);
            return Ok(Waiting { offers, id, told });
        }
        let methods = inner.best_first(&ask);
        let id = inner.wait(ask, tell);
        let matches = self.matches(&mut inner, methods.iter());
        drop(inner);
        self.hand_out(matches);
        Ok(Waiting {
            offers: self.clone(),
            id,
            told,
        })
    }

    /// How many attempts of a method may be under way at once; a method that is not there has no limit. Gives
    /// those that had none before.
    pub(super) fn limit(self: &Arc<Self>, limits: &HashMap<MethodKey, usize>) -> Vec<MethodKey> {
        let mut inner = self.inner();
        let limited = limits.keys().filter(|name| !inner.is_limited(name));
        let limited: Vec<MethodKey> = limited.cloned().collect();
        let changed = inner.limit(limits);
        let matches = self.matches(&mut inner, changed.iter());
        drop(inner);
        self.hand_out(matches);
        limited
    }

    /// Whether attempts of a method count against a limit.
    pub(super) fn is_limited(&self, method: &MethodKey) -> bool {
        self.inner().is_limited(method)
    }

    /// Other nodes have taken all places under the limit of a method: nothing of it is given out until
    /// [`Self::resume`]. Says whether it was given out before.
    pub(super) fn pause(&self, method: &MethodKey) -> bool {
        self.inner().pause(method, true)
    }

    /// Whether a method is paused.
    pub(super) fn is_paused(&self, method: &MethodKey) -> bool {
        self.inner().is_paused(method)
    }

    /// Whether no attempt of a method may begin now because of its limit.
    pub(super) fn is_full(&self, method: &MethodKey) -> bool {
        self.inner().is_full(method)
    }

    /// Gives a method out again that was paused.
    pub(super) fn resume(self: &Arc<Self>, method: &MethodKey) {
        let mut inner = self.inner();
        inner.pause(method, false);
        let matches = self.matches(&mut inner, [method].into_iter());
        drop(inner);
        self.hand_out(matches);
    }

    /// The right to claim one task that was named; `None` when the limit of its method is reached, or nothing is
    /// given out.
    pub(super) fn reserve(
        self: &Arc<Self>,
        flow: FlowId,
        method: &MethodKey,
    ) -> Option<Reservation> {
        let is_free = !self.gives_nothing() && self.inner().reserve(flow, method);
        is_free.then(|| Reservation {
            offers: self.clone(),
            flow,
            method: method.clone(),
            many: 1,
            until: None,
            on_its_way: None,
        })
    }

    /// An attempt has begun.
    pub(super) fn began(&self, method: &MethodKey) {
        self.inner().began(method);
    }

    /// An attempt has ended: somebody else may begin one.
    pub(super) fn ended(self: &Arc<Self>, method: &MethodKey) {
        let mut inner = self.inner();
        if inner.ended(method) {
            let matches = self.matches(&mut inner, [method].into_iter());
            drop(inner);
            self.hand_out(matches);
        }
    }

    /// Forgets partitions that belong to another node now.
    pub(super) fn forget(&self, partitions: &Partitions) {
        let mut inner = self.inner();
        inner.forget(partitions);
        self.flows.store(inner.flows(), Ordering::Release);
    }

    /// Tasks that wait for a worker, and workers that wait for tasks, by method.
    pub(super) fn figures(&self) -> HashMap<MethodKey, RemoteWork> {
        self.inner().figures()
    }

    /// Tasks that wait for a worker, by method, of the flows that are in reach. Cost: O(methods * flows of each).
    pub(super) fn ready_of(&self, reach: &Reach) -> HashMap<MethodKey, usize> {
        self.inner().ready_of(reach)
    }

    /// Offers of a method that go before this place, of the flows in reach, counted up to `most`.
    pub(super) fn ahead(
        &self,
        method: &MethodKey,
        place: (Rank, FlowId),
        of: &Reach,
        most: usize,
    ) -> usize {
        self.inner().ahead(method, place, of, most)
    }

    /// Waits until there may be offers that nobody here wants.
    pub(super) async fn unwanted_changed(&self) {
        self.unwanted.notified().await;
    }

    /// Methods with offers that nobody here wants, each with how many tasks there are.
    pub(super) fn unwanted(&self) -> Vec<(MethodKey, usize)> {
        self.inner().unwanted()
    }

    /// Has this worker of these principals look whether it is still to have something, wherever it waits. Cost:
    /// O(workers that wait).
    pub(super) fn look_of(&self, worker: &str, principals: &[Arc<str>]) {
        let told = self.inner().dismiss_worker(worker, principals);
        for tell in told {
            let _ = tell.send(Wakeup::Look);
        }
    }

    /// The same for those that wait for one of these methods, which a user has begun or ceased to declare.
    pub(super) fn look_for(&self, declared: &[MethodKey]) {
        if !declared.is_empty() {
            let told = self.inner().dismiss_for(declared).into_iter();
            told.for_each(|tell| _ = tell.send(Wakeup::Look));
        }
    }

    /// Methods from now on of which there is something and was nothing, on this node or, as far as it hears of them,
    /// others.
    pub(super) fn appearing(&self) -> broadcast::Receiver<Appeared> {
        self.appeared.subscribe()
    }

    /// Tells workers here that another node has offers of these methods, as many as there are.
    pub(super) fn hint(&self, elsewhere: uuid::Uuid, methods: &[(MethodKey, usize)]) {
        for (method, _) in methods {
            let (method, of) = (method.name.clone(), Whose::Elsewhere);
            let _ = self.appeared.send(Appeared { method, of });
        }
        let told = self.inner().hint(methods);
        for tell in told {
            let _ = tell.send(Wakeup::There(elsewhere));
        }
    }

    fn give_back(self: &Arc<Self>, flow: FlowId, method: &MethodKey, many: usize) {
        let mut inner = self.inner();
        inner.give_back(flow, method, many);
        let matches = self.matches(&mut inner, [method].into_iter());
        drop(inner);
        self.hand_out(matches);
    }

    fn matches<'a>(
        &self,
        inner: &mut Inner,
        methods: impl Iterator<Item = &'a MethodKey>,
    ) -> Vec<Match> {
        if self.gives_nothing() {
            return Vec::new();
        }
        let mut matches = Vec::new();
        let mut left = false;
        for method in methods {
            left |= inner.bring_together(method, &mut matches);
        }
        if left {
            self.unwanted.notify_one();
        }
        matches
    }

    fn hand_out(self: &Arc<Self>, matches: Vec<Match>) {
        self.hand_out_with(matches, |_| None);
    }

    fn hand_out_with(
        self: &Arc<Self>,
        matches: Vec<Match>,
        on_its_way: impl Fn(FlowId) -> Option<OnItsWay>,
    ) {
        for matched in matches {
            let reservation = Reservation {
                offers: self.clone(),
                flow: matched.flow,
                method: matched.method,
                many: matched.many,
                until: matched.until,
                on_its_way: on_its_way(matched.flow),
            };
            // One that has gone meanwhile gives it back.
            let _ = matched.tell.send(Wakeup::Here(reservation));
        }
    }
}

/// The reasons for which a waiting worker is woken.
#[derive(Debug)]
pub(super) enum Wakeup {
    /// There is something for it.
    Here(Reservation),
    /// Another node has something.
    There(uuid::Uuid),
    /// Something has changed that decides whether it may have anything.
    Look,
}

/// As many workers wait on this node as may.
#[derive(Debug)]
pub(super) struct TooManyWait;

/// See [`Offers::ask`].
#[derive(Debug)]
pub(super) struct Waiting {
    offers: Arc<Offers>,
    id: u64,
    told: oneshot::Receiver<Wakeup>,
}

impl Waiting {
    /// What there is already.
    pub(super) fn now(&mut self) -> Option<Wakeup> {
        self.told.try_recv().ok()
    }

    /// Waits; `None` when nothing is given out any more.
    pub(super) async fn told(&mut self) -> Option<Wakeup> {
        (&mut self.told).await.ok()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.offers.inner().leave(self.id);
    }
}

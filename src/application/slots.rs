//! The slots in which attempts run: one synchronous pool for all flows, so that urgency counts
//! across flows and never more attempts run than each executor allows.
//!
//! A flow takes slots inside its own turn. When none is free for it, it is remembered with its best
//! rank for that executor; a freed slot wakes the flow with the best rank.
//!
//! Those who wait come by priority, then by age; with fair sharing ([`Sharing`]) by priority, then by what their
//! owners have had, then by age. What owners have had is kept in memory only.
//!
//! Limits follow the directory of executors (`Slots::follow`): a lower one stops nobody, a higher one
//! wakes who waits.

mod calm;
mod fair;
mod held;
mod queues;
mod view;
mod waiting;
mod weights;

pub(super) use fair::Fair;
pub use held::Held;
pub use queues::Queue;
pub use view::View;
pub use weights::{Sharing, Weights};

use super::ownership::Partitions;
use super::ports::{DeclaredByUsers, ExecutorSnapshot, Executors, Standing};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use taskledger_domain::flow::{Capacity, SlotRequest};
use taskledger_domain::task::Priority;
use taskledger_domain::{FlowId, TaskId, Timestamp};
use taskledger_workers::MethodKey;
use tokio::sync::{Notify, mpsc, watch};
use waiting::{Place, Waiting};

/// Holders of slots that [`Slots::line`] names.
pub const HOLDERS_MAX: usize = 10;
/// Flows ahead that [`Slots::line`] counts; that there are more is told, not how many.
pub const AHEAD_MAX: usize = 1000;

/// See [`Slots::line`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Attempts that may run at once.
    pub limit: usize,
    /// Attempts that run.
    pub running: usize,
    /// Some of them, at most [`HOLDERS_MAX`].
    pub holders: Vec<(TaskId, u32)>,
    /// Flows that wait with a better rank, up to [`AHEAD_MAX`].
    pub flows_ahead: usize,
    /// There are more than those.
    pub more_flows_ahead: bool,
    /// Owners share the executor fairly.
    pub fair_share: bool,
}

type Rank = (Priority, Timestamp, FlowId);

#[derive(Debug)]
struct Lane {
    limit: usize,
    /// The snapshot that the limit is of.
    number: u64,
    taken: HashSet<(TaskId, u32)>,
    waiting: Waiting,
}

/// Since when an attempt has its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Now,
    /// From an earlier decision: the flow was decided without what is stored of it.
    Before,
}

impl Lane {
    fn hold(&mut self, request: &SlotRequest<'_>) -> Taken {
        match self.taken.insert((request.task, request.attempt)) {
            true => Taken::Now,
            false => Taken::Before,
        }
    }

    fn new(limit: usize, number: u64, sharing: &Sharing) -> Self {
        Self {
            limit,
            number,
            taken: HashSet::new(),
            waiting: Waiting::new(sharing),
        }
    }

    /// Takes the limit of a snapshot, unless it has that of a newer one.
    fn limit(&mut self, limit: usize, number: u64) {
        if number >= self.number {
            (self.limit, self.number) = (limit, number);
        }
    }

    fn free(&self) -> usize {
        self.limit.saturating_sub(self.taken.len())
    }
}

/// The slots of all executors of this server. Every method is one short critical section and never waits.
#[derive(Debug)]
pub struct Slots {
    lanes: Mutex<HashMap<String, Lane>>,
    executors: Arc<dyn Executors>,
    /// Absent while nobody has said it: by age.
    sharing: OnceLock<Sharing>,
    /// Flows to wake. Unbounded by type; a flow enters it once each time that it begins to wait, so
    /// it is bounded by the turns that are taken meanwhile.
    wake: mpsc::UnboundedSender<FlowId>,
    /// Nothing begins any more: the server is stopping.
    closed: AtomicBool,
    /// Nothing begins for now: the server is draining. Who wants a slot waits in the line.
    held_back: AtomicBool,
    /// Nothing begins, whatever is said: the server stops when what is under way has ended.
    is_stopping: AtomicBool,
    /// A slot was given back.
    given_back: Notify,
}

impl Slots {
    /// A pool for these executors, and the flows that it wants woken.
    pub fn new(executors: Arc<dyn Executors>) -> (Self, mpsc::UnboundedReceiver<FlowId>) {
        let (wake, woken) = mpsc::unbounded_channel();
        (
            Self {
                lanes: Mutex::new(HashMap::new()),
                executors,
                sharing: OnceLock::new(),
                wake,
                closed: AtomicBool::new(false),
                held_back: AtomicBool::new(false),
                is_stopping: AtomicBool::new(false),
                given_back: Notify::new(),
            },
            woken,
        )
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<String, Lane>> {
        self.lanes
            .lock()
            .expect("no code panics while it holds the slots")
    }

    /// Says in which order flows come that wait for the same executor. Once, before the first of them.
    ///
    /// # Panics
    /// When it is said twice, or too late.
    pub fn share(&self, sharing: Sharing) {
        let early = self.lanes().is_empty();
        assert!(
            early && self.sharing.set(sharing).is_ok(),
            "said once, before the first flow"
        );
    }

    fn sharing(&self) -> &Sharing {
        self.sharing.get().unwrap_or(&Sharing::ByAge)
    }

    /// From now on no attempt begins. What becomes ready waits for the next start of the server.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    fn take(
        &self,
        executors: &dyn ExecutorSnapshot,
        flow: FlowId,
        request: &SlotRequest<'_>,
    ) -> Option<Taken> {
        if self.closed.load(Ordering::Relaxed) {
            return None;
        }
        let mut lanes = self.lanes();
        let name = executors.canonical_name(request.method);
        let (limit, number) = (executors.slot_limit(name), executors.number());
        let lane = lanes
            .entry(name.to_owned())
            .or_insert_with(|| Lane::new(limit, number, self.sharing()));
        lane.limit(limit, number);
        let held_back = self.is_held_back();
        if request.is_claimed {
            // Whoever lets it claim has counted it.
            return (!held_back).then(|| lane.hold(request));
        }
        let rank = (request.priority, request.since, flow);
        let owner = lane.waiting.account(request.owner);
        let free = lane.free();
        if !held_back && free > lane.waiting.ahead(rank, &owner, free) {
            let taken = lane.hold(request);
            lane.waiting.started(request.priority, &owner);
            if lane.waiting.rank_of(flow) == Some(rank) {
                lane.waiting.leave(flow);
            }
            return Some(taken);
        }
        // Under another alias of the executor the flow may wait with a better rank already.
        if lane
            .waiting
            .rank_of(flow)
            .is_none_or(|earlier| rank < earlier)
        {
            lane.waiting.join(rank, owner);
        }
        None
    }

    /// The attempt has ended or never began. Idempotent.
    pub fn release(&self, method: &str, task: TaskId, attempt: u32) {
        let executors = self.executors.snapshot();
        let mut lanes = self.lanes();
        let holds = |lane: &Lane| lane.taken.contains(&(task, attempt));
        let name = executors.canonical_name(method);
        let lane = if lanes.get(name).is_some_and(holds) {
            lanes.get_mut(name)
        } else {
            // The name may have belonged to another executor when the slot was taken.
            lanes.values_mut().find(|lane| holds(lane))
        };
        if let Some(lane) = lane {
            lane.taken.remove(&(task, attempt));
            self.wake_best(lane);
        }
        drop(lanes);
        self.given_back.notify_waiters();
    }

    /// The number of the newest snapshot of the directory, for whoever follows it.
    #[must_use]
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.executors.changes()
    }

    /// Takes the limits of the newest snapshot. Nothing that runs is stopped; flows are woken for slots
    /// that there are now, and those that wait for an executor that is not there any more, or runs
    /// elsewhere now. Cost: O(lanes + flows that wait in lanes that are no more).
    pub(super) fn follow(&self) {
        let executors = self.executors.snapshot();
        let number = executors.number();
        for (name, lane) in self.lanes().iter_mut() {
            lane.limit(executors.slot_limit(name), number);
            if Standing::of(&*executors, name) == Standing::BuiltIn {
                self.wake_best(lane);
                continue;
            }
            // Who was woken and has not looked yet will see this change too.
            lane.waiting.wake_all(|flow| self.wake.send(flow).is_ok());
        }
    }

    /// Which users have declared which methods for themselves, by the newest snapshot.
    pub(super) fn declared_by_users(&self) -> Arc<DeclaredByUsers> {
        self.executors.snapshot().declared_by_users()
    }

    /// How many attempts of methods that workers claim may be under way at once.
    pub(super) fn claim_limits(&self) -> HashMap<MethodKey, usize> {
        self.executors.snapshot().claim_limits()
    }

    /// Takes the slot of an attempt that is under way already, free or not: what another process started
    /// counts here too.
    #[must_use]
    pub fn occupy(self: &Arc<Self>, method: &str, task: TaskId, attempt: u32) -> Held {
        let executors = self.executors.snapshot();
        let name = executors.canonical_name(method);
        let (limit, number) = (executors.slot_limit(name), executors.number());
        let mut lanes = self.lanes();
        let lane = lanes
            .entry(name.to_owned())
            .or_insert_with(|| Lane::new(limit, number, self.sharing()));
        lane.taken.insert((task, attempt));
        drop(lanes);
        self.held(method, task, attempt)
    }

    /// The slot of an attempt that runs, to be given back by whoever drops it.
    #[must_use]
    pub fn held(self: &Arc<Self>, method: &str, task: TaskId, attempt: u32) -> Held {
        Held {
            slots: Some(self.clone()),
            method: method.into(),
            task,
            attempt,
        }
    }

    /// The flow is being looked at: it registers anew if it still has to wait. Gives the places
    /// that it had.
    fn look(&self, flow: FlowId) -> Vec<(String, Place)> {
        let mut places = Vec::new();
        for (name, lane) in self.lanes().iter_mut() {
            if let Some(place) = lane.waiting.look(flow) {
                places.push((name.clone(), place));
            }
        }
        places
    }

    /// The flow cannot take a turn now: others go before it. True when it waited.
    pub fn give_way(&self, flow: FlowId) -> bool {
        let mut waited = false;
        for lane in self.lanes().values_mut() {
            waited |= lane.waiting.leave(flow).is_some();
        }
        self.offer_free();
        waited
    }

    /// The flows in these partitions wait here no more.
    pub(super) fn forget(&self, partitions: &Partitions) {
        for lane in self.lanes().values_mut() {
            lane.waiting.forget(partitions);
        }
        self.offer_free();
    }

    /// Wakes flows for slots that are free although somebody waits. Cheap when there are none.
    pub fn offer_free(&self) {
        for lane in self.lanes().values_mut() {
            self.wake_best(lane);
        }
    }

    /// Forgets that flows were woken, so that a wake-up that got lost is repeated.
    pub fn repeat_wake_ups(&self) {
        for lane in self.lanes().values_mut() {
            lane.waiting.forget_wake_ups();
            self.wake_best(lane);
        }
    }

    fn wake_best(&self, lane: &mut Lane) {
        if self.is_held_back() {
            return;
        }
        let free = lane.free();
        lane.waiting
            .wake_first(free, |flow| self.wake.send(flow).is_ok());
    }

    /// What the newest snapshot knows of executors for flows of this owner, for looking ahead: never grants a slot.
    #[must_use]
    pub fn view(&self, owner: Option<&str>) -> View {
        View::of(self.executors.snapshot_for(owner))
    }

    /// Attempts under way, and the limit, by executor.
    #[must_use]
    pub fn usage(&self) -> Vec<(String, usize, usize)> {
        self.lanes()
            .iter()
            .map(|(name, lane)| (name.clone(), lane.taken.len(), lane.limit))
            .collect()
    }

    /// How a task of `flow` stands in the line for an executor. Cost: O([`AHEAD_MAX`] +
    /// [`HOLDERS_MAX`]), under the lock that starts need.
    #[must_use]
    pub fn line(
        &self,
        method: &str,
        (flow, owner): (FlowId, Option<&str>),
        rank: (Priority, Timestamp),
    ) -> Line {
        let fair_share = matches!(self.sharing(), Sharing::Fair(_));
        let executors = self.executors.snapshot();
        let lanes = self.lanes();
        let Some(lane) = lanes.get(executors.canonical_name(method)) else {
            return Line {
                limit: executors.slot_limit(method),
                running: 0,
                holders: Vec::new(),
                flows_ahead: 0,
                more_flows_ahead: false,
                fair_share,
            };
        };
        let owner = lane.waiting.account(owner);
        let rank = (rank.0, rank.1, flow);
        let ahead = lane.waiting.ahead(rank, &owner, AHEAD_MAX + 1);
        Line {
            limit: lane.limit,
            running: lane.taken.len(),
            holders: lane.taken.iter().copied().take(HOLDERS_MAX).collect(),
            flows_ahead: ahead.min(AHEAD_MAX),
            more_flows_ahead: ahead > AHEAD_MAX,
            fair_share,
        }
    }

    /// The pool as the rules see it during a turn of `flow` of this owner, which asks one snapshot only.
    #[must_use]
    pub fn turn(self: &Arc<Self>, flow: FlowId, owner: Option<&str>) -> Turn<'_> {
        Turn {
            slots: self,
            executors: self.executors.snapshot_for(owner),
            flow,
            had: self.look(flow),
            held: Vec::new(),
        }
    }
}

/// See [`Slots::turn`]. When it ends, slots that the flow left are offered to others.
#[derive(Debug)]
pub struct Turn<'a> {
    slots: &'a Arc<Slots>,
    executors: Arc<dyn ExecutorSnapshot>,
    flow: FlowId,
    /// Where the flow waited before the turn.
    had: Vec<(String, Place)>,
    held: Vec<Held>,
}

impl Turn<'_> {
    /// The number of the snapshot that the turn asks.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.executors.number()
    }

    /// Whether any user has declared a method for themselves, or asks for one for their own flows alone.
    pub(super) fn has_owners(&self) -> bool {
        self.executors.has_owners()
    }

    /// The command was refused, so nothing has changed: the flow waits where it waited before.
    pub fn refused(self) {
        let mut lanes = self.slots.lanes();
        for (name, place) in &self.had {
            if let Some(lane) = lanes.get_mut(name) {
                lane.waiting.join(place.rank, place.owner.clone());
            }
        }
    }

    /// The slots that were taken, in order.
    #[must_use]
    pub fn end(mut self) -> Vec<Held> {
        std::mem::take(&mut self.held)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        for (name, place) in &self.had {
            if let Some(lane) = self.slots.lanes().get_mut(name) {
                lane.waiting.looked(place);
            }
        }
        self.slots.offer_free();
    }
}

impl Capacity for Turn<'_> {
    fn knows(&self, method: &str) -> bool {
        self.executors.knows(method)
    }
    fn is_remote(&self, method: &str) -> bool {
        self.executors.is_remote(method)
    }
    fn is_idempotent(&self, method: &str) -> bool {
        self.executors.is_idempotent(method)
    }
    fn canonical_name<'a>(&'a self, method: &'a str) -> &'a str {
        self.executors.canonical_name(method)
    }
    fn take_slot(&mut self, attempt: &SlotRequest<'_>) -> bool {
        let taken = self.slots.take(&*self.executors, self.flow, attempt);
        if let Some(taken) = taken {
            // A slot that the attempt had before stays its own, whatever becomes of this decision.
            let slots = (taken == Taken::Now).then(|| self.slots.clone());
            self.held.push(Held {
                slots,
                method: attempt.method.into(),
                task: attempt.task,
                attempt: attempt.attempt,
            });
        }
        taken.is_some()
    }
}

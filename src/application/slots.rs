//! The slots in which attempts run: one synchronous pool for all flows, so that urgency counts
//! across flows and never more attempts run than each executor allows.
//!
//! A flow takes slots inside its own turn. When none is free for it, it is remembered with its best
//! rank for that executor; a freed slot wakes the flow with the best rank.
//!
//! Limits follow the directory of executors (`Slots::follow`): a lower one stops nobody, a higher one
//! wakes who waits.

mod queues;

pub use queues::Queue;

use super::ownership::Partitions;
use super::ports::{ExecutorSnapshot, Executors, Standing};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use taskledger_domain::flow::{Capacity, SlotRequest};
use taskledger_domain::task::Priority;
use taskledger_domain::{FlowId, TaskId, Timestamp};
use tokio::sync::{mpsc, watch};

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
}

type Rank = (Priority, Timestamp, FlowId);

#[derive(Debug)]
struct Lane {
    limit: usize,
    /// The snapshot that the limit is of.
    number: u64,
    taken: HashSet<(TaskId, u32)>,
    /// At most one entry a flow.
    waiting: BTreeMap<Rank, Waiter>,
    ranks: HashMap<FlowId, Rank>,
}

#[derive(Debug, Default)]
struct Waiter {
    woken: bool,
}

impl Lane {
    fn new(limit: usize, number: u64) -> Self {
        Self {
            limit,
            number,
            taken: HashSet::new(),
            waiting: BTreeMap::new(),
            ranks: HashMap::new(),
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

    fn withdraw(&mut self, flow: FlowId) {
        if let Some(rank) = self.ranks.remove(&flow) {
            self.waiting.remove(&rank);
        }
    }
}

/// The slots of all executors of this server. Every method is one short critical section and never waits.
#[derive(Debug)]
pub struct Slots {
    lanes: Mutex<HashMap<String, Lane>>,
    executors: Arc<dyn Executors>,
    /// Flows to wake. Unbounded by type; a flow enters it once each time that it begins to wait, so
    /// it is bounded by the turns that are taken meanwhile.
    wake: mpsc::UnboundedSender<FlowId>,
    /// Nothing begins any more: the server is stopping.
    closed: AtomicBool,
}

impl Slots {
    /// A pool for these executors, and the flows that it wants woken.
    pub fn new(executors: Arc<dyn Executors>) -> (Self, mpsc::UnboundedReceiver<FlowId>) {
        let (wake, woken) = mpsc::unbounded_channel();
        (
            Self {
                lanes: Mutex::new(HashMap::new()),
                executors,
                wake,
                closed: AtomicBool::new(false),
            },
            woken,
        )
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<String, Lane>> {
        self.lanes
            .lock()
            .expect("no code panics while it holds the slots")
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
    ) -> bool {
        if self.closed.load(Ordering::Relaxed) {
            return false;
        }
        let mut lanes = self.lanes();
        let name = executors.canonical_name(request.method);
        let (limit, number) = (executors.slot_limit(name), executors.number());
        let lane = lanes
            .entry(name.to_owned())
            .or_insert_with(|| Lane::new(limit, number));
        lane.limit(limit, number);
        let rank = (request.priority, request.since, flow);
        let free = lane.free();
        let ahead = lane
            .waiting
            .range(..rank)
            .filter(|((_, _, other), _)| *other != flow)
            .take(free)
            .count();
        if free > ahead {
            lane.taken.insert((request.task, request.attempt));
            if lane.ranks.get(&flow) == Some(&rank) {
                lane.withdraw(flow);
            }
            return true;
        }
        // A claim that finds no slot is made again by whoever made it.
        if executors.is_remote(request.method) {
            return false;
        }
        // Under another alias of the executor the flow may wait with a better rank already.
        if lane.ranks.get(&flow).is_none_or(|earlier| rank < *earlier) {
            lane.withdraw(flow);
            lane.waiting.insert(rank, Waiter::default());
            lane.ranks.insert(flow, rank);
        }
        false
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
            for ((_, _, flow), waiter) in lane.waiting.iter_mut().filter(|(_, w)| !w.woken) {
                waiter.woken = self.wake.send(*flow).is_ok();
            }
        }
    }

    /// Takes the slot of an attempt that is under way already, free or not: what another process started
    /// counts here too.
    #[must_use]
    pub(super) fn occupy(self: &Arc<Self>, method: &str, task: TaskId, attempt: u32) -> Held {
        let executors = self.executors.snapshot();
        let name = executors.canonical_name(method);
        let (limit, number) = (executors.slot_limit(name), executors.number());
        let mut lanes = self.lanes();
        let lane = lanes
            .entry(name.to_owned())
            .or_insert_with(|| Lane::new(limit, number));
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
    fn withdraw(&self, flow: FlowId) -> Vec<(String, Rank)> {
        let mut places = Vec::new();
        for (name, lane) in self.lanes().iter_mut() {
            if let Some(rank) = lane.ranks.get(&flow).copied() {
                lane.withdraw(flow);
                places.push((name.clone(), rank));
            }
        }
        places
    }

    /// The flow cannot take a turn now: others go before it. True when it waited.
    pub fn give_way(&self, flow: FlowId) -> bool {
        let waited = !self.withdraw(flow).is_empty();
        self.offer_free();
        waited
    }

    /// The flows in these partitions wait here no more.
    pub(super) fn forget(&self, partitions: &Partitions) {
        for lane in self.lanes().values_mut() {
            lane.waiting
                .retain(|(_, _, flow), _| !partitions.contain(*flow));
            lane.ranks.retain(|flow, _| !partitions.contain(*flow));
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
            lane.waiting.values_mut().for_each(|w| w.woken = false);
            self.wake_best(lane);
        }
    }

    fn wake_best(&self, lane: &mut Lane) {
        let free = lane.free();
        for ((_, _, flow), waiter) in lane.waiting.iter_mut().take(free).filter(|(_, w)| !w.woken) {
            waiter.woken = self.wake.send(*flow).is_ok();
        }
    }

    /// What the newest snapshot knows of executors, for looking ahead: never grants a slot.
    #[must_use]
    pub fn view(&self) -> View {
        View(self.executors.snapshot())
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
    pub fn line(&self, method: &str, flow: FlowId, rank: (Priority, Timestamp)) -> Line {
        let executors = self.executors.snapshot();
        let lanes = self.lanes();
        let Some(lane) = lanes.get(executors.canonical_name(method)) else {
            return Line {
                limit: executors.slot_limit(method),
                running: 0,
                holders: Vec::new(),
                flows_ahead: 0,
                more_flows_ahead: false,
            };
        };
        let ahead = lane.waiting.range(..(rank.0, rank.1, flow));
        let ahead = ahead
            .filter(|((_, _, other), _)| *other != flow)
            .take(AHEAD_MAX + 1)
            .count();
        Line {
            limit: lane.limit,
            running: lane.taken.len(),
            holders: lane.taken.iter().copied().take(HOLDERS_MAX).collect(),
            flows_ahead: ahead.min(AHEAD_MAX),
            more_flows_ahead: ahead > AHEAD_MAX,
        }
    }

    /// The pool as the rules see it during a turn of `flow`, which asks one snapshot only.
    #[must_use]
    pub fn turn(self: &Arc<Self>, flow: FlowId) -> Turn<'_> {
        Turn {
            slots: self,
            executors: self.executors.snapshot(),
            flow,
            had: self.withdraw(flow),
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
    had: Vec<(String, Rank)>,
    held: Vec<Held>,
}

impl Turn<'_> {
    /// The number of the snapshot that the turn asks.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.executors.number()
    }

    /// The command was refused, so nothing has changed: the flow waits where it waited before.
    pub fn refused(mut self) {
        let mut lanes = self.slots.lanes();
        for (name, rank) in std::mem::take(&mut self.had) {
            if let Some(lane) = lanes.get_mut(&name) {
                lane.waiting.insert(rank, Waiter::default());
                lane.ranks.insert(self.flow, rank);
            }
        }
    }

    /// The slots that were taken, in order.
    #[must_use]
    pub fn end(mut self) -> Vec<Held> {
        std::mem::take(&mut self.held)
    }
}

/// The slot of an attempt: dropping it frees the slot.
#[derive(Debug)]
pub struct Held {
    slots: Option<Arc<Slots>>,
    method: Box<str>,
    task: TaskId,
    attempt: u32,
}

impl Held {
    /// The attempt.
    #[must_use]
    pub const fn attempt(&self) -> (TaskId, u32) {
        (self.task, self.attempt)
    }

    /// The attempt begins: whoever runs it gives the slot back ([`Slots::held`]).
    pub fn keep(mut self) {
        self.slots = None;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(slots) = &self.slots {
            slots.release(&self.method, self.task, self.attempt);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
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
        if taken {
            let (slots, method) = (Some(self.slots.clone()), attempt.method.into());
            self.held.push(Held {
                slots,
                method,
                task: attempt.task,
                attempt: attempt.attempt,
            });
        }
        taken
    }
}

/// See [`Slots::view`].
#[derive(Debug)]
pub struct View(Arc<dyn ExecutorSnapshot>);

impl View {
    /// The number of the snapshot.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.0.number()
    }

    /// How the snapshot stands to a method.
    #[must_use]
    pub fn standing(&self, method: &str) -> Standing {
        Standing::of(&*self.0, method)
    }
}

impl Capacity for View {
    fn knows(&self, method: &str) -> bool {
        self.0.knows(method)
    }
    fn is_remote(&self, method: &str) -> bool {
        self.0.is_remote(method)
    }
    fn is_idempotent(&self, method: &str) -> bool {
        self.0.is_idempotent(method)
    }
    fn canonical_name<'a>(&'a self, method: &'a str) -> &'a str {
        self.0.canonical_name(method)
    }
    fn take_slot(&mut self, _: &SlotRequest<'_>) -> bool {
        false
    }
}

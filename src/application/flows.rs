//! The flows in memory: finds a flow's mailbox, creates it when there is none, and drops the coldest states when memory
//! exceeds its bound.

mod calm;
mod looks;

use super::awaited::Awaited;
use super::driver;
use super::error::{Error, Failure};
use super::figures::Figures;
use super::leases::Leases;
use super::mailbox::{self, Answer, Asked, Begins, Look, Mailbox, Order, Put};
use super::offers::{Offers, RemoteWork};
use super::ownership::{Ownership, Partitions, Place};
use super::partitions::Arrivals;
use super::ports::{Attempts, Executors, Renewals, Tickets};
use super::positions::{Positions, SeenBy};
use super::rows::RowCache;
use super::slots::{Sharing, Slots};
use super::timers::Timers;
use crate::clock::SharedClock;
use crate::store::{self, EventStore, Snapshot};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use taskledger_domain::codec::snapshot;
use taskledger_domain::flow::{Command, Flow};
use taskledger_domain::{FlowId, Metadata, Position, Recorded, Version};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Bytes of idle flow states kept in memory.
pub const IDLE_BYTES_MAX: usize = 48 * 1024 * 1024;
/// How often wake-ups for free slots are repeated, in case one got lost, and leases are looked at.
const REPEAT_WAKE_UPS_EVERY: Duration = Duration::from_secs(1);
/// Milliseconds after which a flow is looked at whose driver has died.
const ABANDONED_WAKE_MS: u64 = 1000;
/// Flows woken from timers at a time.
const WAKE_BATCH: usize = 1000;
/// Bytes of an idle mailbox besides its state.
const MAILBOX_BYTES: usize = 512;

/// All mailboxes of this server, and everything that they share.
pub struct Flows {
    pub(super) store: Arc<dyn EventStore>,
    pub(super) clock: SharedClock,
    pub(super) slots: Arc<Slots>,
    pub(super) timers: Timers,
    pub(super) awaited: Awaited,
    /// What users have declared for themselves, as far as workers were told to look.
    pub(super) declared: super::entering::Declared,
    /// Attempts outside the server, of the flows that this node owns.
    pub(super) leases: Leases,
    /// What workers may claim of them.
    pub(super) offers: Arc<Offers>,
    pub(super) rows: Arc<RowCache>,
    pub(super) positions: Arc<Positions>,
    /// Who decides about which flow, and the proof that every append carries.
    pub(super) ownership: Arc<dyn Ownership>,
    /// Partitions whose flows are to be woken.
    pub(super) arrivals: Arrivals,
    pub(super) figures: Figures,
    attempts: OnceLock<Arc<dyn Attempts>>,
    hot: Mutex<Hot>,
    idle_bytes_max: usize,
    foreign_loads: Semaphore,
    pub(super) tasks: TaskTracker,
    fenced: AtomicBool,
    /// Why the latest append was refused: the log cannot be written.
    refusal: Mutex<Option<String>>,
    /// Ends the server when it has been replaced.
    stop: CancellationToken,
}

impl fmt::Debug for Flows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flows").finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Hot {
    mailboxes: HashMap<FlowId, Arc<Mailbox>>,
    /// Idle states, coldest first, with their weights.
    idle: BTreeMap<u64, (FlowId, usize)>,
    idle_at: HashMap<FlowId, u64>,
    idle_bytes: usize,
    stamp: u64,
}

impl Hot {
    fn forget_idle(&mut self, flow: FlowId) {
        if let Some(stamp) = self.idle_at.remove(&flow)
            && let Some((_, weight)) = self.idle.remove(&stamp)
        {
            self.idle_bytes -= weight;
        }
    }
}

/// The parts that [`Flows`] is made of.
#[derive(Debug)]
pub struct Parts {
    /// The log.
    pub store: Arc<dyn EventStore>,
    /// Time and ids.
    pub clock: SharedClock,
    /// What can be executed.
    pub executors: Arc<dyn Executors>,
    /// Until when leases were renewed.
    pub renewals: Arc<dyn Renewals>,
    /// What limits of methods count, where several nodes share them; `None` for a node that is alone.
    pub tickets: Option<Arc<dyn Tickets>>,
    /// Confirmed rows.
    pub rows: Arc<RowCache>,
    /// Where each flow's history ends.
    pub positions: Arc<Positions>,
    /// Who decides about which flow.
    pub ownership: Arc<dyn Ownership>,
    /// Bytes of idle states; [`IDLE_BYTES_MAX`] unless a test wants evictions.
    pub idle_bytes_max: usize,
    /// Cancelled when another server has taken over.
    pub stop: CancellationToken,
}

impl Flows {
    /// The hot flows, none yet; and the flows to wake because a slot is free, for [`Self::run`].
    #[must_use]
    pub fn new(parts: Parts) -> (Arc<Self>, mpsc::UnboundedReceiver<FlowId>) {
        let (slots, woken) = Slots::new(parts.executors);
        let offers = Offers::new();
        let flows = Self {
            timers: Timers::new(parts.clock.clone()),
            awaited: Awaited::default(),
            declared: super::entering::Declared::default(),
            leases: Leases::new(parts.renewals, parts.tickets, offers.clone()),
            offers,
            store: parts.store,
            clock: parts.clock,
            slots: Arc::new(slots),
            rows: parts.rows,
            positions: parts.positions,
            ownership: parts.ownership,
            arrivals: Arrivals::default(),
            figures: Figures::default(),
            attempts: OnceLock::new(),
            hot: Mutex::default(),
            idle_bytes_max: parts.idle_bytes_max,
            foreign_loads: Semaphore::new(super::loading::FOREIGN_LOADS_MAX),
            tasks: TaskTracker::new(),
            fenced: AtomicBool::new(false),
            refusal: Mutex::default(),
            stop: parts.stop,
        };
        (Arc::new(flows), woken)
    }

    /// Says who runs attempts. Once, before the first command.
    ///
    /// # Panics
    /// When it is said twice.
    pub fn set_attempts(&self, attempts: Arc<dyn Attempts>) {
        assert!(self.attempts.set(attempts).is_ok(), "attempts are set once");
    }

    pub(super) fn attempts(&self) -> &Arc<dyn Attempts> {
        self.attempts
            .get()
            .expect("attempts are set before the first command")
    }

    /// What was counted since the start.
    #[must_use]
    pub const fn figures(&self) -> &Figures {
        &self.figures
    }

    /// What there is for workers outside the server, by method. Cost: O(offers).
    #[must_use]
    pub fn remote_work(&self) -> HashMap<Arc<str>, RemoteWork> {
        RemoteWork::by_name(self.offers.figures())
    }

    /// Says in which order flows of different owners get executors and workers. Once, before the first flow.
    ///
    /// # Panics
    /// When it is said twice, or too late.
    pub fn share(&self, sharing: Sharing) {
        self.offers.share(sharing.clone());
        self.slots.share(sharing);
    }

    /// The slots of the executors of this process.
    #[must_use]
    pub fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    /// Wakes flows whose time has come, or for which a slot is free or an executor has come, until
    /// cancelled.
    pub async fn run(
        self: Arc<Self>,
        mut woken: mpsc::UnboundedReceiver<FlowId>,
        cancel: CancellationToken,
    ) {
        let mut repeat = tokio::time::interval(REPEAT_WAKE_UPS_EVERY);
        let mut changes = self.slots.changes();
        self.executors_changed();
        loop {
            tokio::select! {
                () = cancel.cancelled() => return,
                Some(flow) = woken.recv() => self.wake(flow),
                () = self.timers.wait() => {}
                Ok(()) = changes.changed() => self.executors_changed(),
                _ = repeat.tick() => {
                    self.slots.repeat_wake_ups();
                    self.end_expired_leases();
                }
            }
            // Whatever woke us: free slots that keep coming must not hold up what is due.
            self.timers
                .take_due(WAKE_BATCH)
                .into_iter()
                .for_each(|flow| self.wake(flow));
        }
    }

    /// Has a flow looked at, and waits until that is done. A flow that cannot be looked at has said
    /// why in the log.
    pub async fn wake_and_wait(self: &Arc<Self>, flow: FlowId) {
        let _ = self.ask(flow, self.engine_order(Command::Wake)).await;
    }

    /// Whether the flow is in memory or has a time at which it will be looked at.
    #[must_use]
    pub fn attends(&self, flow: FlowId) -> bool {
        let hot = self
            .hot
            .lock()
            .expect("no code panics while it holds the registry");
        hot.mailboxes.contains_key(&flow) || self.timers.has(flow)
    }

    /// Has a flow looked at: what is due in it happens, attempts that nobody runs are ended.
    pub fn wake(self: &Arc<Self>, flow: FlowId) {
        self.send(flow, self.engine_order(Command::Wake));
    }

    pub(super) fn engine_order(&self, command: Command) -> Order {
        let metadata = Metadata {
            actor: Arc::from("engine"),
            correlation: Arc::from(self.clock.uuid().to_string()),
            causation: None,
            trace: None,
        };
        self.order(Some(command), None, metadata, true)
    }

    pub(super) fn order(
        &self,
        command: Option<Command>,
        look: Option<Look>,
        metadata: Metadata,
        engine: bool,
    ) -> Order {
        let clock = self.clock.clone();
        Order {
            command,
            look,
            guard: None,
            metadata,
            begins: Begins::No,
            repeatable: None,
            engine,
            slot: None,
            of_turn: false,
            reply: None,
            clock,
            bytes: 256,
            made_at: Instant::now(),
        }
    }

    /// Sends an order whose answer nobody waits for.
    fn send(self: &Arc<Self>, flow: FlowId, mut order: Order) {
        loop {
            let mailbox = self.mailbox(flow);
            match mailbox.put(order) {
                Put::Queued | Put::Full => return,
                Put::Drive => {
                    self.tasks.spawn(driver::drive(mailbox, self.clone()));
                    return;
                }
                Put::Retired(back) => order = *back,
            }
        }
    }

    /// Sends an order and waits for its answer.
    ///
    /// # Errors
    /// [`Error`]; `Busy` when the flow's mailbox is full, `Elsewhere` when another node decides.
    pub async fn ask(self: &Arc<Self>, flow: FlowId, order: Order) -> Result<Answer, Error> {
        self.put(flow, order)?.answered().await
    }

    /// Puts an order into the mailbox of its flow.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub(super) fn put(self: &Arc<Self>, flow: FlowId, mut order: Order) -> Result<Asked, Error> {
        if self.fenced.load(Ordering::Relaxed) {
            return Err(Failure::ShuttingDown.into());
        }
        match self.ownership.of(flow) {
            Place::Here(_) => {}
            Place::There(node) => return Err(Error::Elsewhere(Some(node))),
            Place::Nobody => return Err(Error::Elsewhere(None)),
        }
        let (reply, answer) = oneshot::channel();
        order.reply = Some(reply);
        loop {
            let mailbox = self.mailbox(flow);
            match mailbox.put(order) {
                Put::Queued => return Ok(Asked(answer)),
                Put::Drive => {
                    self.tasks.spawn(driver::drive(mailbox, self.clone()));
                    return Ok(Asked(answer));
                }
                Put::Full => {
                    let (commands, bytes) = (mailbox::COMMANDS_MAX, mailbox::BYTES_MAX);
                    let reason = format!("{commands} commands or {bytes} bytes wait for the flow");
                    return Err(Error::Busy {
                        reason,
                        retry_after_ms: 100,
                    });
                }
                Put::Retired(back) => order = *back,
            }
        }
    }

    fn mailbox(&self, flow: FlowId) -> Arc<Mailbox> {
        let mut hot = self
            .hot
            .lock()
            .expect("no code panics while it holds the registry");
        hot.forget_idle(flow);
        hot.mailboxes
            .entry(flow)
            .or_insert_with(|| Arc::new(Mailbox::new(flow)))
            .clone()
    }

    /// A mailbox has become idle and keeps a state of this weight; the coldest are dropped. One that
    /// keeps nothing leaves at once.
    pub(super) fn parked(&self, flow: FlowId, weight: Option<usize>) {
        let mut hot = self
            .hot
            .lock()
            .expect("no code panics while it holds the registry");
        hot.forget_idle(flow);
        let Some(weight) = weight.map(|state| state + MAILBOX_BYTES) else {
            if hot.mailboxes.get(&flow).is_some_and(|m| m.retire()) {
                hot.mailboxes.remove(&flow);
            }
            return;
        };
        hot.stamp += 1;
        let stamp = hot.stamp;
        hot.idle.insert(stamp, (flow, weight));
        hot.idle_at.insert(flow, stamp);
        hot.idle_bytes += weight;
        while hot.idle_bytes > self.idle_bytes_max
            && let Some((&stamp, &(coldest, _))) = hot.idle.first_key_value()
        {
            debug_assert!(
                hot.idle_at.get(&coldest) == Some(&stamp),
                "both indexes name the same flows"
            );
            hot.forget_idle(coldest);
            if hot.mailboxes.get(&coldest).is_some_and(|m| m.retire()) {
                hot.mailboxes.remove(&coldest);
            }
        }
    }

    /// Drops the idle states of these partitions.
    pub(super) fn evict(&self, partitions: &Partitions) {
        let mut hot = self
            .hot
            .lock()
            .expect("no code panics while it holds the registry");
        let leaving = |(flow, mailbox): (&FlowId, &Arc<Mailbox>)| {
            (partitions.contain(*flow) && mailbox.retire()).then_some(*flow)
        };
        let left: Vec<FlowId> = hot.mailboxes.iter().filter_map(leaving).collect();
        for flow in left {
            hot.forget_idle(flow);
            hot.mailboxes.remove(&flow);
        }
    }

    /// The driver of a mailbox has died: orders that wait go to a new one.
    pub(super) fn abandoned(self: &Arc<Self>, mailbox: &Arc<Mailbox>) {
        let orders = {
            let mut hot = self
                .hot
                .lock()
                .expect("no code panics while it holds the registry");
            if hot
                .mailboxes
                .get(&mailbox.flow)
                .is_some_and(|m| Arc::ptr_eq(m, mailbox))
            {
                hot.mailboxes.remove(&mailbox.flow);
            }
            mailbox.abandon()
        };
        self.offers.clear(mailbox.flow);
        self.slots.give_way(mailbox.flow);
        // What its append may have started has to be noticed by somebody.
        let soon = self.clock.now().plus_ms(ABANDONED_WAKE_MS);
        self.timers.set(mailbox.flow, Some(soon));
        orders
            .into_iter()
            .for_each(|order| self.send(mailbox.flow, order));
    }

    /// A flow was loaded: readers wait for what decisions rest on from now on, and rows that have
    /// missed something are forgotten.
    pub(super) fn loaded(&self, flow: FlowId, version: Version, position: Position) {
        if position > 0 {
            self.positions.advance(flow, position, &SeenBy::Anybody);
        }
        self.rows.confirm(flow, version);
    }

    /// Shares what has become durable with readers, before anybody is answered. The rows come first: who waits
    /// for the position reads them.
    pub(super) fn committed(&self, flow: FlowId, recorded: &[Arc<Recorded>], seen_by: &SeenBy) {
        self.rows.apply(recorded);
        if let Some(last) = recorded.last() {
            self.positions.advance(flow, last.position, seen_by);
        }
    }

    pub(super) fn save_snapshot(self: &Arc<Self>, id: FlowId, flow: &Flow) {
        let flows = self.clone();
        let snapshot = Snapshot {
            version: flow.version(),
            format: snapshot::FORMAT,
            bytes: snapshot::encode(flow),
        };
        self.tasks.spawn(async move {
            if let Err(error) = flows.store.save_snapshot(id, snapshot).await {
                tracing::warn!(flow.id = %id, error = %error, "a snapshot was not stored");
            }
        });
    }

    /// Remembers whether the log takes appends: `error` is that of the latest one.
    pub(super) fn note_append(&self, error: Option<&store::Error>) {
        let refusal = match error {
            Some(store::Error::NotWritable(reason)) => Some(reason.clone()),
            None => None,
            // Says nothing of the disk.
            Some(
                store::Error::Unavailable(_)
                | store::Error::Corrupt { .. }
                | store::Error::Invalid(_),
            ) => return,
        };
        let mut known = self.refusal.lock().expect("no panic holds it");
        if *known != refusal {
            *known = refusal;
        }
    }

    /// Why the log refuses appends, by the latest one; `None`: it takes them.
    pub(super) fn log_refusal(&self) -> Option<String> {
        self.refusal.lock().expect("no panic holds it").clone()
    }

    /// Another server has taken over: nothing that this one decides can become durable any more.
    pub(super) fn fenced(&self) {
        if !self.fenced.swap(true, Ordering::Relaxed) {
            tracing::error!("another server has taken over this log; this one stops");
            self.stop.cancel();
        }
    }

    /// Waits until every mailbox has done its work. Call after the last command was sent.
    pub async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Flows in memory, idle ones included, and bytes of the idle ones.
    #[must_use]
    pub fn resident(&self) -> (usize, usize) {
        let hot = self
            .hot
            .lock()
            .expect("no code panics while it holds the registry");
        (hot.mailboxes.len(), hot.idle_bytes)
    }
}

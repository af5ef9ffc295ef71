//! The mailbox of a flow in memory: it holds waiting commands, and the flow's state between turns.
//!
//! Bounded in commands and bytes. Nobody drives an idle mailbox: an order that finds none makes its
//! sender spawn the driver (`driver`), which ends when there is nothing left to do.

use super::api;
pub use super::begins::Begins;
use super::entering::Entered;
use super::error::{Error, Failure};
use super::guard::Guard;
use super::idempotency::Repeatable;
use super::ownership::Place;
use super::positions::SeenBy;
use super::slots::Held;
use crate::store::Fence;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use taskledger_domain::flow::{Command, Done, Flow};
use taskledger_domain::{FlowId, Metadata, Position, Recorded, Timestamp};
use taskledger_projections::new_owner;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

/// Commands that may wait in one mailbox; more are answered `Busy`.
pub const COMMANDS_MAX: usize = 1000;
/// Bytes of commands that may wait in one mailbox.
pub const BYTES_MAX: usize = 64 * 1024 * 1024;
/// The answer to the sender of a command.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The command took effect, and is durable.
    Done {
        /// What it did.
        done: Done,
        /// A position from which a reader sees it.
        position: Position,
    },
    /// A repetition: the reply to the first call.
    Repeated(Box<api::Reply>),
}

/// An order in the mailbox, whose answer somebody waits for.
#[derive(Debug)]
pub(super) struct Asked(pub(super) oneshot::Receiver<Result<Answer, Error>>);

impl Asked {
    /// Waits for the answer.
    pub(super) async fn answered(self) -> Result<Answer, Error> {
        let answer = self.0.await;
        answer.unwrap_or_else(|_| Err(Failure::Broken("a command got no answer".to_owned()).into()))
    }
}

/// A look at the state of a flow; runs inside its turn, so it must be quick. It runs again when the
/// state that it saw did not become durable; the last run counts.
pub type Look = Box<dyn FnMut(&Flow) + Send>;

/// A command on its way, or a look at the state.
pub struct Order {
    /// What to do; `None` for a look.
    pub command: Option<Command>,
    /// Runs on the working state, answered when that is durable.
    pub look: Option<Look>,
    /// What must hold of the flow before it is decided; `None` for the engine, and callers who may do
    /// everything.
    pub(super) guard: Option<Box<Guard>>,
    /// Goes into its events.
    pub metadata: Metadata,
    /// Whether it begins the flow.
    pub begins: Begins,
    /// The idempotency key.
    pub repeatable: Option<Repeatable>,
    /// From the engine: bounded by its slots and timers, so it is never turned away.
    pub engine: bool,
    /// The slot of the attempt whose end it reports; free once that is decided, so that no more
    /// tasks are in progress than attempts may run.
    pub slot: Option<Held>,
    /// The turn itself gave it, with the start of an attempt that ends at once: it is decided anew
    /// together with that start, never by itself.
    pub of_turn: bool,
    /// Where the answer goes, if somebody waits for it.
    pub reply: Option<oneshot::Sender<Result<Answer, Error>>>,
    /// Fresh ids for its events.
    pub(super) clock: crate::clock::SharedClock,
    /// Roughly what it weighs in the queue.
    pub bytes: usize,
    /// When it set out.
    pub(super) made_at: Instant,
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Order")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

impl Order {
    pub(super) fn mint(&self) -> Uuid {
        self.clock.uuid()
    }

    /// A wake-up for whose answer nobody waits: one in the queue is as good as many.
    fn is_wake_up(&self) -> bool {
        self.reply.is_none() && matches!(self.command, Some(Command::Wake))
    }
}

/// The orders that wait for one flow, and its state while nobody drives it.
#[derive(Debug)]
pub(super) struct Mailbox {
    pub(super) flow: FlowId,
    inner: Mutex<Inner>,
    arrived: Notify,
}

#[derive(Default)]
struct Inner {
    queue: VecDeque<Order>,
    /// Orders of callers in the queue, and their bytes. Those of the engine are bounded by the
    /// attempts that may run, and must not keep callers out.
    callers: usize,
    bytes: usize,
    /// Ends of attempts in the queue.
    ends: usize,
    /// A wake-up stands in the queue; another one would find nothing to do.
    wake_queued: bool,
    driven: bool,
    /// The state, while nobody drives.
    parked: Option<Resident>,
    /// Left the registry: orders must go to its successor.
    retired: bool,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("queued", &self.queue.len())
            .field("driven", &self.driven)
            .finish_non_exhaustive()
    }
}

/// A flow in memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Resident {
    pub(super) flow: Flow,
    /// The ownership under which it was loaded: under another one somebody else may have written.
    pub(super) fence: Option<Fence>,
    /// Version of the newest snapshot.
    pub(super) snapshot: u64,
    /// Position of the last event that this process has seen of it.
    pub(super) position: Position,
    /// Version of the last event that is durable.
    pub(super) durable: u64,
    /// Who owns the flow by then.
    pub(super) owner: Option<Arc<str>>,
    /// When this state was last settled: what became due later is still to be looked at, however
    /// long an append took meanwhile.
    pub(super) settled_at: Timestamp,
    /// The snapshot of the directory of executors that its last turn asked; 0 before the first.
    pub(super) asked: u64,
    /// What of it stands in the indexes of this node.
    pub(super) entered: Entered,
}

impl Resident {
    /// Takes in what has become durable, and says who may see it.
    pub(super) fn take_in(&mut self, recorded: &[Arc<Recorded>]) -> SeenBy {
        let mut seen_by = SeenBy::Owner(self.owner.clone());
        for recorded in recorded {
            self.position = recorded.position;
            self.durable = recorded.version;
            let Some(owner) = new_owner(recorded) else {
                continue;
            };
            if owner != self.owner.as_deref() {
                self.owner = owner.map(Arc::from);
                seen_by = match recorded.version {
                    1 => SeenBy::Owner(self.owner.clone()),
                    _ => SeenBy::Anybody,
                };
            }
        }
        seen_by
    }

    /// Roughly what it takes in memory.
    pub(super) fn weight_bytes(&self) -> usize {
        self.flow.weight_bytes() + self.entered.weight_bytes()
    }

    /// Whether the flow is owned as it was when the state was loaded.
    pub(super) fn is_under(&self, place: &Place) -> bool {
        matches!(place, Place::Here(fence) if *fence == self.fence)
    }
}

/// The result of putting an order into a mailbox.
pub(super) enum Put {
    /// It is in the queue, and somebody drives.
    Queued,
    /// It is in the queue, and the caller must spawn the driver.
    Drive,
    /// The queue is full.
    Full,
    /// The mailbox has left the registry; try its successor.
    Retired(Box<Order>),
}

impl Mailbox {
    pub(super) fn new(flow: FlowId) -> Self {
        Self {
            flow,
            inner: Mutex::default(),
            arrived: Notify::new(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner
            .lock()
            .expect("no code panics while it holds a mailbox")
    }

    /// Puts an order into the queue. Orders of the engine always fit, and so does an order larger
    /// than the bound when it is alone.
    pub(super) fn put(&self, order: Order) -> Put {
        let mut inner = self.inner();
        if inner.retired {
            return Put::Retired(Box::new(order));
        }
        let too_large = inner.bytes + order.bytes > BYTES_MAX && inner.callers > 0;
        if !order.engine && (inner.callers >= COMMANDS_MAX || too_large) {
            return Put::Full;
        }
        if order.is_wake_up() && std::mem::replace(&mut inner.wake_queued, true) {
            return Put::Queued;
        }
        if !order.engine {
            inner.callers += 1;
            inner.bytes += order.bytes;
        }
        inner.ends += usize::from(order.slot.is_some());
        inner.queue.push_back(order);
        if std::mem::replace(&mut inner.driven, true) {
            drop(inner);
            self.arrived.notify_one();
            Put::Queued
        } else {
            Put::Drive
        }
    }

    /// Ends when an order has arrived that the driver has not been told of.
    pub(super) async fn arrival(&self) {
        self.arrived.notified().await;
    }

    /// Drops the state if nobody drives; true when the mailbox may leave the registry.
    pub(super) fn retire(&self) -> bool {
        let mut inner = self.inner();
        if inner.driven || !inner.queue.is_empty() {
            return false;
        }
        inner.parked = None;
        inner.retired = true;
        true
    }

    /// Gives up a mailbox whose driver has died; what still waits goes to the successor.
    pub(super) fn abandon(&self) -> VecDeque<Order> {
        let mut inner = self.inner();
        inner.retired = true;
        (inner.callers, inner.bytes, inner.ends) = (0, 0, 0);
        std::mem::take(&mut inner.queue)
    }

    pub(super) fn pop(&self) -> Option<Order> {
        let mut inner = self.inner();
        let order = inner.queue.pop_front()?;
        inner.ends -= usize::from(order.slot.is_some());
        if !order.engine {
            inner.callers -= 1;
            inner.bytes -= order.bytes;
        }
        if order.is_wake_up() {
            inner.wake_queued = false;
        }
        Some(order)
    }

    /// Ends of attempts that wait to be decided.
    pub(super) fn ends(&self) -> usize {
        self.inner().ends
    }

    /// The state that the last driver left, for the next one.
    pub(super) fn unpark(&self) -> Option<Resident> {
        self.inner().parked.take()
    }

    /// Ends the driver and takes its state, unless something arrived; true when it has ended.
    pub(super) fn park(&self, state: &mut Option<Resident>) -> bool {
        let mut inner = self.inner();
        if !inner.queue.is_empty() {
            return false;
        }
        inner.parked = state.take();
        inner.driven = false;
        true
    }
}

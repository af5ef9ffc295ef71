//! One mailbox per hot flow: the only place where its commands are decided.
//!
//! Owns the flow's resident state. Commands are decided in order on the *working* state; their
//! events form the next append while at most one append is in flight. Every answer, refusals and
//! no-ops included, waits until the state it was decided on is durable, and commands are kept until
//! then: when an append does not succeed, the state is loaded anew and they are decided again.
//! Nobody drives an idle mailbox: a command that finds none spawns the driver, which ends when
//! there is nothing left to do.

use super::batch::{Batch, Consequence, Entry};
use super::error::{Error, Failure};
use super::flows::Flows;
use super::idempotency::Repeatable;
use super::loading;
use crate::store::{self, ClaimKey, Outcome, Resolution};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use taskledger_domain::flow::{Command, Done, Flow, Kind, Rejection};
use taskledger_domain::schedule;
use taskledger_domain::violation::Violation;
use taskledger_domain::{FlowId, Metadata, Position, Recorded};
use tokio::sync::{Notify, oneshot};
use uuid::Uuid;

/// Commands that may wait in one mailbox; more are answered `Busy`.
pub const COMMANDS_MAX: usize = 1000;
/// Bytes of commands that may wait in one mailbox.
pub const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Times that commands are decided anew because somebody else wrote; then they are `Busy`.
pub const CONFLICT_ROUNDS_MAX: u32 = 3;
/// How long answers wait for the fate of an append whose outcome is unknown.
pub const UNKNOWN_WAIT: Duration = Duration::from_secs(5);
/// Milliseconds after which a wake-up that failed is repeated.
const WAKE_AGAIN_MS: u64 = 1000;
/// Pause between two questions for that fate.
const RESOLVE_PAUSE: Duration = Duration::from_millis(50);

/// What a sender learns.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The command took effect, and is durable.
    Done {
        /// What it did.
        done: Done,
        /// A position from which a reader sees it.
        position: Position,
    },
    /// A repetition: the answer of the first call.
    Repeated(Box<RawValue>),
}

/// A look at the state of a flow; runs inside its turn, so it must be quick.
pub type Look = Box<dyn FnOnce(&Flow) + Send>;

/// A command on its way, or a look at the state.
pub struct Order {
    /// What to do; `None` for a look.
    pub command: Option<Command>,
    /// Runs on the working state, answered when that is durable.
    pub look: Option<Look>,
    /// Goes into its events.
    pub metadata: Metadata,
    /// Whether the caller chose the root's id, which is then claimed like any other.
    pub claims_root: bool,
    /// The idempotency key.
    pub repeatable: Option<Repeatable>,
    /// From the engine: bounded by its slots and timers, so it is never turned away.
    pub engine: bool,
    /// Where the answer goes, if somebody waits for it.
    pub reply: Option<oneshot::Sender<Result<Reply, Error>>>,
    /// Fresh ids for its events.
    pub(super) clock: crate::clock::SharedClock,
    /// Roughly what it weighs in the queue.
    pub bytes: usize,
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
}

/// See the module.
#[derive(Debug)]
pub(super) struct Mailbox {
    pub(super) flow: FlowId,
    inner: Mutex<Inner>,
    arrived: Notify,
}

#[derive(Default)]
struct Inner {
    queue: VecDeque<Order>,
    bytes: usize,
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
#[derive(Debug, Clone)]
pub(super) struct Resident {
    pub(super) flow: Flow,
    /// Version of the newest snapshot.
    pub(super) snapshot: u64,
    /// Position of the last event that this process has seen of it.
    pub(super) position: Position,
}

/// What became of an order that was put into a mailbox.
pub(super) enum Put {
    /// It is in the queue, and somebody drives.
    Queued,
    /// It is in the queue, and the caller must spawn the driver.
    Drive,
    /// The queue is full.
    Full,
    /// The mailbox has left the registry; try its successor.
    Retired(Order),
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

    /// Puts an order into the queue. Orders of the engine always fit.
    pub(super) fn put(&self, order: Order) -> Put {
        let mut inner = self.inner();
        if inner.retired {
            return Put::Retired(order);
        }
        if !order.engine
            && (inner.queue.len() >= COMMANDS_MAX || inner.bytes + order.bytes > BYTES_MAX)
        {
            return Put::Full;
        }
        inner.bytes += order.bytes;
        inner.queue.push_back(order);
        if std::mem::replace(&mut inner.driven, true) {
            drop(inner);
            self.arrived.notify_one();
            Put::Queued
        } else {
            Put::Drive
        }
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

    fn pop(&self) -> Option<Order> {
        let mut inner = self.inner();
        let order = inner.queue.pop_front()?;
        inner.bytes -= order.bytes;
        Some(order)
    }

    /// Ends the driver unless something arrived; gives the state back in that case.
    fn park(&self, state: Option<Resident>) -> Result<(), Option<Resident>> {
        let mut inner = self.inner();
        if !inner.queue.is_empty() {
            return Err(state);
        }
        inner.parked = state;
        inner.driven = false;
        Ok(())
    }
}

/// Decides, appends and answers until the mailbox is empty.
pub(super) async fn drive(mailbox: Arc<Mailbox>, flows: Arc<Flows>) {
    let state = mailbox.inner().parked.take();
    let driver = Driver {
        flows: &flows,
        mailbox: &mailbox,
        state,
        next: Batch::default(),
        again: VecDeque::new(),
        conflicts: 0,
    };
    driver.run().await;
}

type InFlight<'a> = (Batch, BoxFuture<'a, Result<Outcome, store::Error>>);

struct Driver<'a> {
    flows: &'a Arc<Flows>,
    mailbox: &'a Mailbox,
    /// The working state: everything decided so far, durable or not.
    state: Option<Resident>,
    /// Decided, not yet sent.
    next: Batch,
    /// To be decided (again) before anything else.
    again: VecDeque<Order>,
    /// Appends in a row that met somebody else's writing.
    conflicts: u32,
}

impl<'a> Driver<'a> {
    async fn run(mut self) {
        let mut in_flight: Option<InFlight<'a>> = None;
        loop {
            self.decide_waiting(in_flight.is_some()).await;
            if in_flight.is_none() && !self.next.entries.is_empty() {
                let batch = std::mem::take(&mut self.next);
                if batch.events.is_empty() {
                    self.answer_all(batch);
                    continue;
                }
                let append = batch.append(self.mailbox.flow, self.flows.fence.clone());
                let flows: &'a Arc<Flows> = self.flows;
                let store = &flows.store;
                in_flight = Some((batch, Box::pin(store.append(append))));
                continue;
            }
            match in_flight.take() {
                Some((batch, mut future)) => {
                    let outcome = if self.next.is_full() {
                        Some(future.as_mut().await)
                    } else {
                        tokio::select! {
                            biased;
                            outcome = future.as_mut() => Some(outcome),
                            () = self.mailbox.arrived.notified() => None,
                        }
                    };
                    match outcome {
                        Some(outcome) => self.conclude(batch, outcome).await,
                        None => in_flight = Some((batch, future)),
                    }
                }
                None => {
                    self.keep_snapshot();
                    self.set_timer();
                    let weight = self.state.as_ref().map_or(0, |s| s.flow.weight_bytes());
                    match self.mailbox.park(self.state.take()) {
                        Ok(()) => return self.flows.parked(self.mailbox.flow, weight),
                        Err(state) => self.state = state,
                    }
                }
            }
        }
    }

    /// Decides what has arrived, until the next append is full.
    async fn decide_waiting(&mut self, in_flight: bool) {
        while !self.next.is_full() {
            let Some(order) = self.again.pop_front().or_else(|| self.mailbox.pop()) else {
                return;
            };
            if self.state.is_none() {
                assert!(
                    !in_flight,
                    "the state is resident while an append is in flight"
                );
                match loading::load(self.flows, self.mailbox.flow).await {
                    Ok((state, recovery)) => {
                        self.state = Some(state);
                        if let Some(recovery) = recovery {
                            self.decide(recovery);
                        }
                    }
                    Err(error) => {
                        let entry = Entry {
                            order,
                            decision: Ok(Done::Ok),
                            claims: Vec::new(),
                        };
                        self.refuse(entry, error);
                        continue;
                    }
                }
            }
            self.decide(order);
        }
    }

    fn decide(&mut self, mut order: Order) {
        let resident = self
            .state
            .as_mut()
            .expect("loaded before the first decision");
        if let Some(look) = order.look.take() {
            look(&resident.flow);
            self.next.entries.push(Entry {
                order,
                decision: Ok(Done::Ok),
                claims: Vec::new(),
            });
            return;
        }
        let command = order
            .command
            .take()
            .expect("an order is a command or a look");
        let now = self.flows.clock.now();
        let mut capacity = self.flows.slots.turn(self.mailbox.flow);
        let decided = resident.flow.handle(&command, now, &mut capacity);
        drop(capacity);
        order.command = Some(command);
        let entry = match decided {
            Err(rejection) => Entry {
                order,
                decision: Err(rejection),
                claims: Vec::new(),
            },
            Ok((events, done)) => {
                let mut claims =
                    self.next
                        .add(&resident.flow, self.mailbox.flow, &order, events, now);
                // Without events there is no append that could hold the claim; a repetition of a
                // command that changes nothing changes nothing again.
                if !self.next.events.is_empty() {
                    claims.extend(self.next.claim_request(&order, done, now));
                }
                Entry {
                    order,
                    decision: Ok(done),
                    claims,
                }
            }
        };
        self.next.entries.push(entry);
    }

    async fn conclude(&mut self, batch: Batch, outcome: Result<Outcome, store::Error>) {
        match outcome {
            Ok(Outcome::Appended(recorded)) => self.appended(batch, &recorded),
            Ok(Outcome::Conflict { actual }) => {
                tracing::debug!(flow.id = %self.mailbox.flow, actual, "somebody else wrote to the flow");
                self.conflicts += 1;
                if self.conflicts > CONFLICT_ROUNDS_MAX {
                    let busy = || Error::Busy {
                        reason: "other writers hold the flow".to_owned(),
                        retry_after_ms: 100,
                    };
                    self.fail(batch, busy);
                } else {
                    self.decide_again(batch, None);
                }
            }
            Ok(Outcome::Exists { key, value }) => self.decide_again(batch, Some((key, value))),
            Ok(Outcome::Fenced) => {
                self.flows.fenced();
                self.fail(batch, || {
                    Failure::Store(store::Error::Unavailable(
                        "another server has taken over".to_owned(),
                    ))
                    .into()
                });
            }
            Ok(Outcome::Unknown) => self.resolve(batch).await,
            Err(error) => {
                tracing::error!(flow.id = %self.mailbox.flow, error = %error, "an append failed");
                self.fail(batch, || error.clone().into());
            }
        }
    }

    fn appended(&mut self, batch: Batch, recorded: &[Arc<Recorded>]) {
        self.conflicts = 0;
        let position = recorded.last().map_or(0, |r| r.position);
        if let Some(state) = &mut self.state {
            state.position = position;
        }
        self.flows.committed(self.mailbox.flow, recorded);
        let Batch {
            entries, effects, ..
        } = batch;
        entries
            .into_iter()
            .for_each(|entry| entry.answer_decided(position));
        for effect in effects {
            match effect {
                Consequence::Launch(started) => self.flows.attempts().launch(*started),
                Consequence::Stop(task, attempt) => {
                    self.flows.attempts().stop(self.mailbox.flow, task, attempt)
                }
            }
        }
    }

    /// Answers entries that changed nothing, decided on a state that is durable.
    fn answer_all(&self, batch: Batch) {
        let position = self.state.as_ref().map_or(0, |s| s.position);
        batch
            .entries
            .into_iter()
            .for_each(|entry| entry.answer_decided(position));
    }

    /// Drops the working state; everything that rested on it is decided anew. The one that lost a
    /// claim is answered.
    fn decide_again(&mut self, batch: Batch, lost: Option<(ClaimKey, Arc<str>)>) {
        let follow_up = std::mem::take(&mut self.next);
        self.drop_state(&batch);
        self.drop_state(&follow_up);
        let waiting = std::mem::take(&mut self.again);
        let mut lost = lost;
        for mut entry in batch.entries.into_iter().chain(follow_up.entries) {
            if let Some((key, value)) = lost.take_if(|(key, _)| entry.claims.contains(key)) {
                entry.decision = Ok(Done::Ok);
                let result = lost_claim(&entry, &key, &value);
                entry.answer(result);
            } else if entry.order.command.is_some() {
                self.again.push_back(entry.order);
            } else {
                // A look has run already; its sender finds out when it acts on it.
                entry.answer(Ok(Reply::Done {
                    done: Done::Ok,
                    position: 0,
                }));
            }
        }
        self.again.extend(waiting);
    }

    /// Answers everything that rested on the append with an error.
    fn fail(&mut self, batch: Batch, error: impl Fn() -> Error) {
        let follow_up = std::mem::take(&mut self.next);
        self.drop_state(&batch);
        self.drop_state(&follow_up);
        self.conflicts = 0;
        for entry in batch.entries.into_iter().chain(follow_up.entries) {
            self.refuse(entry, error());
        }
    }

    /// Answers with an error; a wake-up, for whose answer nobody waits, is repeated later.
    fn refuse(&self, entry: Entry, error: Error) {
        if entry.order.reply.is_none() {
            tracing::warn!(flow.id = %self.mailbox.flow, error = %error, "a wake-up of the flow is put off");
            self.flows.timers.set(
                self.mailbox.flow,
                Some(self.flows.clock.now().plus_ms(WAKE_AGAIN_MS)),
            );
        }
        entry.answer(Err(error));
    }

    /// Forgets the working state and gives back the slots of starts that did not happen.
    fn drop_state(&mut self, batch: &Batch) {
        self.state = None;
        for (method, task, attempt) in &batch.starts {
            self.flows.slots.release(method, *task, *attempt);
        }
    }

    /// Finds out what became of an append, for as long as answers may wait.
    async fn resolve(&mut self, batch: Batch) {
        let ids: Vec<_> = batch.events.iter().map(|e| e.id).collect();
        let until = tokio::time::Instant::now() + UNKNOWN_WAIT;
        loop {
            match self.flows.store.resolve(self.mailbox.flow, &ids).await {
                Ok(Resolution::Appended(recorded)) => return self.appended(batch, &recorded),
                Ok(Resolution::Absent) => return self.decide_again(batch, None),
                Err(error) if tokio::time::Instant::now() >= until => {
                    tracing::error!(flow.id = %self.mailbox.flow, error = %error, "the outcome of an append stays unknown");
                    return self.fail(batch, || Error::OutcomeUnknown);
                }
                Err(_) => tokio::time::sleep(RESOLVE_PAUSE).await,
            }
        }
    }

    /// Stores a snapshot when loading the flow would have to read many events.
    fn keep_snapshot(&mut self) {
        if let Some(state) = &mut self.state
            && state.flow.version() - state.snapshot > loading::snapshot_interval(state.flow.size())
        {
            state.snapshot = state.flow.version();
            self.flows.save_snapshot(self.mailbox.flow, &state.flow);
        }
    }

    fn set_timer(&self) {
        let Some(state) = self.state.as_ref() else {
            return;
        };
        let due = if state.flow.has_active_run() {
            schedule::next_due(
                &state.flow,
                self.flows.clock.now(),
                &self.flows.slots.view(),
            )
        } else {
            None
        };
        self.flows.timers.set(self.mailbox.flow, due);
    }
}

fn lost_claim(entry: &Entry, key: &ClaimKey, value: &str) -> Result<Reply, Error> {
    match (key, &entry.order.repeatable) {
        (ClaimKey::Request(_), Some(repeatable)) => repeatable.repeat(value).map(Reply::Repeated),
        (ClaimKey::Request(_), None) => {
            Err(Failure::Broken("a claim without a request".to_owned()).into())
        }
        (ClaimKey::Task(id), _) => {
            let expected = "an id that no task has or ever had";
            let fault = Violation::of(
                "id",
                "Id is taken",
                expected,
                &serde_json::Value::String(id.to_string()),
            );
            Err(Rejection::one(Kind::Invalid, fault).into())
        }
    }
}

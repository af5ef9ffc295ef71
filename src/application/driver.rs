//! Drives one mailbox: the only place where the commands of a flow are decided.
//!
//! Commands are decided in order on the *working* state; their events form the next append while at
//! most one append is in flight. Every answer, refusals and no-ops included, waits until the state
//! it was decided on is durable, and commands are kept until then: when an append does not succeed,
//! the state is loaded anew and they are decided again.
//!
//! Nothing is decided unless this node owns the flow at that moment, under the same ownership under
//! which the state was loaded. Under another one somebody else may have written in between.

use super::batch::{Batch, Consequence, Decision, Entry, UnderWay};
use super::error::{Error, Failure};
use super::flows::Flows;
use super::loading;
use super::mailbox::{Answer, Begins, Mailbox, Order, Resident};
use super::offers::Coming;
use super::ownership::Place;
use super::positions::SeenBy;
use super::reach::reach;
use crate::runtime::maybe_block_in_place;
use crate::store::{self, ClaimKey, Fence, Outcome, Resolution};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Recorded;
use taskledger_domain::flow::{Command, Fault};
use tokio::time::{Instant, timeout_at};

/// Times in a row that commands are decided anew because their append was not written; then they
/// are `Busy`.
pub(super) const CONFLICT_ROUNDS_MAX: u32 = 3;
/// How long answers wait for the fate of an append whose outcome is unknown.
pub(super) const UNKNOWN_WAIT: Duration = Duration::from_secs(5);
/// Pause between two questions for that fate.
const RESOLVE_PAUSE: Duration = Duration::from_millis(50);

/// Decides, appends and answers until the mailbox is empty.
pub(super) async fn drive(mailbox: Arc<Mailbox>, flows: Arc<Flows>) {
    let state = mailbox.unpark();
    let driver = Driver {
        flows: &flows,
        mailbox: &mailbox,
        state,
        next: Batch::default(),
        again: VecDeque::new(),
        under_way: UnderWay::default(),
        rounds: 0,
        coming: Arc::default(),
    };
    // A broken invariant of one flow must not leave its senders without an answer for ever: what the
    // driver held is dropped, slots and replies included, and the flow is loaded anew.
    if AssertUnwindSafe(driver.run()).catch_unwind().await.is_err() {
        tracing::error!(flow.id = %mailbox.flow, "an invariant of the flow is broken; its state is dropped");
        flows.abandoned(&mailbox);
    }
}

mod belonging;
mod claims;
mod counting;
mod ends;
mod owners;
mod resting;

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
    /// What is decided and may not be durable yet, apart from `next`.
    under_way: UnderWay,
    /// Appends in a row that were not written.
    rounds: u32,
    /// Claims of workers to which the flow has just given tasks.
    coming: Arc<Coming>,
}

impl<'a> Driver<'a> {
    async fn run(mut self) {
        let mut in_flight: Option<InFlight<'a>> = None;
        loop {
            if in_flight.is_none() {
                // Also when it never comes to rest: until then it decides one command at a time.
                if self.next.entries.is_empty() {
                    self.keep_snapshot();
                }
                self.gather_ends().await;
            }
            self.decide_waiting(in_flight.is_some()).await;
            if in_flight.is_none() && !self.next.entries.is_empty() {
                self.gather_claims().await;
                let mut batch = std::mem::take(&mut self.next);
                if batch.events.is_empty() {
                    self.answer_all(batch);
                    continue;
                }
                let fence = self.state.as_ref().and_then(|s| s.fence.clone());
                let append = batch.take_append(self.mailbox.flow, fence);
                self.under_way = UnderWay {
                    before: append.expected,
                    events: append.events.iter().map(|e| e.event.clone()).collect(),
                };
                let flows: &'a Arc<Flows> = self.flows;
                in_flight = Some((batch, Box::pin(flows.store.append(append))));
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
                            () = self.mailbox.arrival() => None,
                        }
                    };
                    match outcome {
                        Some(outcome) => self.conclude(batch, outcome).await,
                        None => in_flight = Some((batch, future)),
                    }
                }
                None => {
                    if !self.is_ours() {
                        self.leave();
                    }
                    self.set_timer();
                    let exists = |s: &&Resident| s.flow.version() > 0;
                    let weight = self
                        .state
                        .as_ref()
                        .filter(exists)
                        .map(Resident::weight_bytes);
                    if self.mailbox.park(&mut self.state) {
                        return self.flows.parked(self.mailbox.flow, weight);
                    }
                }
            }
        }
    }

    /// Decides what has arrived, until the next append is full.
    async fn decide_waiting(&mut self, in_flight: bool) {
        while !self.next.is_full() {
            // A flow that is never idle gets its snapshot too: what waits is decided after it.
            if self.owes_snapshot() && (in_flight || !self.next.entries.is_empty()) {
                return;
            }
            let place = self.place();
            let stale = self.state.as_ref().is_some_and(|s| !s.is_under(&place));
            if stale && (in_flight || !self.next.entries.is_empty()) {
                // What was decided under that ownership comes to its end first.
                return;
            }
            let Some(order) = self.again.pop_front().or_else(|| self.take()) else {
                return;
            };
            // Also when no state is left: a turn of before may wait for slots still, or for a time.
            if stale || !matches!(place, Place::Here(_)) {
                self.leave();
            }
            let fence = match place {
                Place::Here(fence) => fence,
                Place::There(node) => {
                    self.refuse(order, Error::Elsewhere(Some(node)));
                    continue;
                }
                Place::Nobody => {
                    self.refuse(order, Error::Elsewhere(None));
                    continue;
                }
            };
            let is_loaded = self.state.is_some();
            let is_assumed = !is_loaded && order.begins == Begins::Chosen;
            if !is_loaded {
                assert!(!in_flight, "the state stays while an append is in flight");
                match self.load(order.begins, fence).await {
                    Ok(Some(recovery)) => self.decide_with_ends(recovery).await,
                    Ok(None) => {}
                    Err(error) => {
                        // While it cannot be loaded it must not keep slots from others.
                        self.flows.offers.clear(self.mailbox.flow);
                        if self.flows.slots.give_way(self.mailbox.flow) {
                            self.wake_later();
                        }
                        self.refuse(order, error);
                        continue;
                    }
                }
            }
            self.decide_with_ends(order).await;
            if is_assumed {
                self.forget_assumption();
            }
        }
    }

    /// Brings the flow into memory for an order that begins it or not; gives what must be decided before that.
    async fn load(&mut self, begins: Begins, fence: Option<Fence>) -> Result<Option<Order>, Error> {
        match begins {
            Begins::Minted | Begins::Chosen => {
                self.state = Some(Resident {
                    fence,
                    ..Resident::default()
                });
                Ok(None)
            }
            Begins::No | Begins::Contested => {
                let loaded = loading::load(self.flows, self.mailbox.flow, fence).await?;
                let (state, recovery) = loaded;
                self.state = Some(state);
                Ok(recovery)
            }
        }
    }

    fn decide(&mut self, mut order: Order) {
        let resident = self
            .state
            .as_mut()
            .expect("loaded before the first decision");
        if let (Some(guard), Some(command)) = (&order.guard, &order.command)
            && let Err(error) = guard.check(&resident.flow, command)
        {
            self.next.entries.push(Entry {
                order,
                decision: Decision::Denied(error),
                claims: Vec::new(),
            });
            return;
        }
        if let Some(first) = self.next.first_with_key_of(&order) {
            self.next.entries.push(Entry {
                order,
                decision: Decision::Repeats(first),
                claims: Vec::new(),
            });
            return;
        }
        if let Some(look) = &mut order.look {
            maybe_block_in_place(resident.flow.size(), || look(&resident.flow));
            let decision = Decision::Done(taskledger_domain::flow::Done::Ok);
            self.next.entries.push(Entry {
                order,
                decision,
                claims: Vec::new(),
            });
            return;
        }
        let command = order
            .command
            .as_ref()
            .expect("an order is a command or a look");
        let now = self.flows.clock.now();
        let (mut turn, owner) =
            owners::turn(self.flows, self.mailbox.flow, &resident.flow, command);
        // The attempt whose end this is runs no more, so what becomes ready may have its slot.
        drop(order.slot.take());
        let tasks = reach(command, resident.flow.size());
        let decided = maybe_block_in_place(tasks, || resident.flow.handle(command, now, &mut turn));
        let entry = match decided {
            Err(rejection) => {
                turn.refused();
                if order.of_turn {
                    tracing::error!(flow.id = %self.mailbox.flow, reason = %rejection, detail = ?rejection, "an end was refused in the turn of its start");
                }
                Entry {
                    order,
                    decision: Decision::Refused(rejection),
                    claims: Vec::new(),
                }
            }
            Ok((events, done)) => {
                let (figures, ended) = (&self.flows.figures, &mut self.next.ended);
                figures.note_ends(&resident.flow, &order, &events, &turn, ended);
                resident.asked = owners::asked(&turn, &resident.flow, owner.as_deref());
                let held = turn.end();
                resident.settled_at = now;
                let changes = !events.is_empty();
                let (next, flow) = (&mut self.next, self.mailbox.flow);
                let mut claims = maybe_block_in_place(events.len(), || {
                    next.add(&resident.flow, flow, &order, events, held, now)
                });
                // A command that changes nothing has no append that could hold the claim; a
                // repetition changes nothing again.
                if changes {
                    claims.extend(self.next.claim_request(&order, done.clone(), now));
                }
                Entry {
                    order,
                    decision: Decision::Done(done),
                    claims,
                }
            }
        };
        self.next.entries.push(entry);
    }

    async fn conclude(&mut self, batch: Batch, outcome: Result<Outcome, store::Error>) {
        // What was not written must not be taken for what another node wrote at these versions.
        self.under_way = UnderWay::default();
        if let Ok(outcome) = &outcome {
            self.flows.figures.answered(batch.sent_at, outcome);
        }
        self.flows.note_append(outcome.as_ref().err());
        match outcome {
            Ok(Outcome::Appended(recorded)) => self.appended(batch, &recorded),
            Ok(Outcome::Conflict { actual }) => {
                tracing::debug!(flow.id = %self.mailbox.flow, actual, "somebody else wrote to the flow");
                self.not_written(batch);
            }
            Ok(Outcome::Exists { key, value }) => self.decide_again(batch, Some((key, value))),
            Ok(Outcome::Fenced) => self.refuted(batch),
            Ok(Outcome::Unknown) => self.resolve(batch).await,
            Err(error) => {
                tracing::error!(flow.id = %self.mailbox.flow, error = %error, "an append failed");
                self.fail(batch, || error.clone().into());
            }
        }
    }

    fn appended(&mut self, batch: Batch, recorded: &[Arc<Recorded>]) {
        self.rounds = 0;
        let position = recorded.last().map_or(0, |r| r.position);
        let state = self.state.as_mut();
        let seen_by = state.map_or(SeenBy::Anybody, |state| state.take_in(recorded));
        self.flows.figures.appended(recorded, &batch.ended);
        maybe_block_in_place(recorded.len(), || {
            self.flows.committed(self.mailbox.flow, recorded, &seen_by);
        });
        let Batch {
            entries,
            holds,
            effects,
            ..
        } = batch;
        self.keep_leases(holds, recorded);
        self.offer();
        entries
            .into_iter()
            .for_each(|entry| entry.answer_decided(position));
        let ours = self.is_ours();
        for effect in effects {
            match effect {
                // The owner of the flow ends an attempt that nobody runs as interrupted.
                Consequence::Launch(_, slot) if !ours => drop(slot),
                Consequence::Launch(started, slot) => {
                    slot.keep();
                    self.flows.attempts().launch(*started);
                }
                Consequence::GiveUp(started, asked_at) => {
                    if ours {
                        self.flows.attempts().give_up(*started, asked_at);
                    }
                }
                Consequence::Stop(task, attempt) => {
                    self.flows.attempts().stop(self.mailbox.flow, task, attempt)
                }
            }
        }
        self.check_what_was_shared();
    }

    /// Answers entries that changed nothing, decided on a state that is durable.
    fn answer_all(&self, batch: Batch) {
        let position = self.state.as_ref().map_or(0, |s| s.position);
        batch
            .entries
            .into_iter()
            .for_each(|entry| entry.answer_decided(position));
    }

    /// The append is not in the log: another round, unless there were enough.
    fn not_written(&mut self, batch: Batch) {
        self.rounds += 1;
        if self.rounds > CONFLICT_ROUNDS_MAX {
            self.fail(batch, || Error::Busy {
                reason: "other writers hold the flow".to_owned(),
                retry_after_ms: 100,
            });
        } else {
            self.decide_again(batch, None);
        }
    }

    /// Drops the working state; everything that rested on it is decided anew. The one that lost a
    /// claim is answered.
    fn decide_again(&mut self, batch: Batch, mut lost: Option<(ClaimKey, Arc<str>)>) {
        let waiting = std::mem::take(&mut self.again);
        for mut entry in self.take_back(batch) {
            if let Some((key, value)) = lost.take_if(|(key, _)| entry.claims.contains(key)) {
                let result = lost_claim(&entry.order, &key, &value);
                entry.answer(result);
                continue;
            }
            // Loading finds anew who is alive; what was found before may miss attempts of this turn.
            if matches!(entry.order.command, Some(Command::Recover { .. })) {
                entry.order.command = Some(Command::Wake);
            }
            // Somebody has written to the flow: from now on it is loaded.
            entry.order.begins = match entry.order.begins {
                Begins::Minted | Begins::No => Begins::No,
                Begins::Chosen | Begins::Contested => Begins::Contested,
            };
            self.again.push_back(entry.order);
        }
        assert!(
            lost.is_none(),
            "a claim that is taken belongs to one of the commands of its append"
        );
        self.again.extend(waiting);
    }

    /// Answers everything that rested on the append with an error.
    fn fail(&mut self, batch: Batch, error: impl Fn() -> Error) {
        self.rounds = 0;
        for entry in self.take_back(batch) {
            self.refuse(entry.order, error());
        }
    }

    /// Drops the working state. Gives what rested on it; ends that a turn gave go with their starts.
    fn take_back(&mut self, batch: Batch) -> impl Iterator<Item = Entry> + use<> {
        let follow_up = std::mem::take(&mut self.next);
        self.drop_state();
        let entries = batch.entries.into_iter().chain(follow_up.entries);
        entries.filter(|entry| !entry.order.of_turn)
    }

    /// Answers with an error; a wake-up, for whose answer nobody waits, is repeated later.
    fn refuse(&self, order: Order, error: Error) {
        match order.reply {
            Some(reply) => {
                let _ = reply.send(Err(error));
            }
            // Its owner wakes it.
            None if matches!(error, Error::Elsewhere(_)) => {}
            // What is damaged stays damaged, and the log has named it: the reconciler looks now and then.
            None if error.is_damage() => {}
            None => {
                tracing::warn!(flow.id = %self.mailbox.flow, error = %error, "a wake-up of the flow is put off");
                self.wake_later();
            }
        }
    }

    /// Finds out what became of an append, for as long as answers may wait.
    async fn resolve(&mut self, batch: Batch) {
        let until = Instant::now() + UNKNOWN_WAIT;
        loop {
            match timeout_at(
                until,
                self.flows.store.resolve(self.mailbox.flow, &batch.ids),
            )
            .await
            {
                Ok(Ok(Resolution::Appended(recorded))) => return self.appended(batch, &recorded),
                Ok(Ok(Resolution::Absent)) => return self.not_written(batch),
                Ok(Err(error)) if Instant::now() < until => {
                    tracing::debug!(flow.id = %self.mailbox.flow, error = %error, "the outcome of an append is not known yet");
                    tokio::time::sleep(RESOLVE_PAUSE).await;
                }
                Ok(Err(_)) | Err(_) => {
                    tracing::error!(flow.id = %self.mailbox.flow, "the outcome of an append stays unknown");
                    // If it was written, its attempts wait for somebody to notice.
                    self.wake_later();
                    return self.fail(batch, || Error::OutcomeUnknown);
                }
            }
        }
    }
}

fn lost_claim(order: &Order, key: &ClaimKey, value: &str) -> Result<Answer, Error> {
    match (key, &order.repeatable) {
        (ClaimKey::Request(_), Some(repeatable)) => {
            let reply = repeatable.key.repeat(value);
            reply.map(|reply| Answer::Repeated(Box::new(reply)))
        }
        (ClaimKey::Request(_), None) => {
            Err(Failure::Broken("a claim without a request".to_owned()).into())
        }
        (ClaimKey::Task(id), _) => {
            let taken = Fault::IdTakenMeanwhile { id: *id };
            Err(Error::invalid([taken]))
        }
    }
}

//! Commands that were decided together and are written in one append.

use super::error::{Error, Failure};
use super::figures::Ended;
use super::mailbox::{self, Answer, Order};
use super::ports::Started;
use super::slots::Held;
use crate::store::{Append, ClaimKey, Fence, NewClaim, NewEvent};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use taskledger_domain::flow::{Done, Event, Flow, Rejection};
use taskledger_domain::schedule::{self, Effect, Leased};
use taskledger_domain::{EventId, FlowId, TaskId, Timestamp, Version};
use tokio::time::Instant;

/// A command and what was decided on it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) order: Order,
    pub(super) decision: Decision,
    /// What it claims besides the ids of its tasks.
    pub(super) claims: Vec<ClaimKey>,
}

/// What a command is answered once the state that it was decided on is durable.
#[derive(Debug)]
pub(super) enum Decision {
    Done(Done),
    Refused(Rejection),
    /// The caller may not give it.
    Denied(Error),
    /// It repeats an earlier command of the same append, whose claim holds this.
    Repeats(Arc<str>),
}

/// Decided commands, in order, whose answers wait for the same append.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Version of the flow before the first event.
    pub(super) expected: Version,
    pub(super) entries: Vec<Entry>,
    pub(super) events: Vec<NewEvent>,
    /// Of the events once they are under way, to ask what became of them.
    pub(super) ids: Vec<EventId>,
    pub(super) claims: Vec<NewClaim>,
    /// Attempts that were decided to start, with their slots: each ends at once or becomes an effect.
    pub(super) starts: VecDeque<(Box<Started>, Held)>,
    /// Attempts that workers outside the server have begun, with their slots.
    pub(super) holds: Vec<(Leased, Held)>,
    /// What the engine does once the events are durable.
    pub(super) effects: Vec<Consequence>,
    /// Attempts that end with the events.
    pub(super) ended: Vec<Ended>,
    /// When they were sent.
    pub(super) sent_at: Option<Instant>,
    pub(super) bytes: usize,
    /// What attempts that ended at once have worked through.
    pub(super) at_once_bytes: usize,
    /// Claimed idempotency keys with the values of their claims.
    requests: HashMap<Arc<str>, Arc<str>>,
}

/// An effect with the event that caused it.
#[derive(Debug)]
pub(super) enum Consequence {
    /// With its slot, which is free again when the append is not written.
    Launch(Box<Started>, Held),
    Stop(TaskId, u32),
    /// With the version of the event with the question.
    GiveUp(Box<Started>, Version),
}

impl Batch {
    /// Events in one append before the next one is begun.
    pub(super) const EVENTS_MAX: usize = 1000;
    /// Bytes in one append before the next one is begun.
    pub(super) const BYTES_MAX: usize = 1024 * 1024;

    /// Refusals and looks add no events, but they wait for an answer too.
    pub(super) fn is_full(&self) -> bool {
        self.events.len() >= Self::EVENTS_MAX
            || self.bytes >= Self::BYTES_MAX
            || self.entries.len() >= mailbox::COMMANDS_MAX
    }

    /// What the claim of an earlier command with the same idempotency key holds.
    pub(super) fn first_with_key_of(&self, order: &Order) -> Option<Arc<str>> {
        self.requests
            .get(&order.repeatable.as_ref()?.key.claimed)
            .cloned()
    }

    /// Adds the events of an accepted order, decided at `now`, the flow's state being `flow` after
    /// them; `held` are the slots that it took. Returns the ids that it claims.
    pub(super) fn add(
        &mut self,
        flow: &Flow,
        id: FlowId,
        order: &Order,
        events: Vec<Event>,
        held: Vec<Held>,
        now: Timestamp,
    ) -> Vec<ClaimKey> {
        let mut held: HashMap<_, _> = held
            .into_iter()
            .map(|slot| (slot.attempt(), slot))
            .collect();
        if self.events.is_empty() {
            self.expected = flow.version() - events.len() as Version;
        }
        let mut claimed = Vec::new();
        for event in events {
            if let Event::TaskCreated(created) = &event
                && (created.parent_id.is_some() || order.begins.claims())
            {
                let key = ClaimKey::Task(created.task_id);
                claimed.push(key.clone());
                self.claims.push(NewClaim {
                    key,
                    value: Arc::from(id.to_string()),
                    expires_at: None,
                });
            }
            let event_id = EventId(order.mint());
            match schedule::react(flow, &event) {
                Some(Effect::Launch(launch)) => {
                    let slot = held
                        .remove(&(launch.task, launch.attempt))
                        .expect("an attempt starts with a slot of this turn");
                    let metadata = order.metadata.clone();
                    let started = Started {
                        flow: id,
                        launch,
                        event: event_id,
                        metadata,
                    };
                    self.starts.push_back((Box::new(started), slot));
                }
                Some(Effect::Hold(leased)) => {
                    let slot = held
                        .remove(&(leased.task, leased.attempt))
                        .expect("a claim takes a slot of this turn");
                    self.holds.push((leased, slot));
                }
                Some(Effect::Stop { task, attempt }) => {
                    self.effects.push(Consequence::Stop(task, attempt))
                }
                Some(Effect::GiveUp { launch, asked_at }) => {
                    let metadata = order.metadata.clone();
                    let started = Started {
                        flow: id,
                        launch: *launch,
                        event: event_id,
                        metadata,
                    };
                    let given_up = Consequence::GiveUp(Box::new(started), asked_at);
                    self.effects.push(given_up);
                }
                None => {}
            }
            let new = NewEvent::new(event_id, now, order.metadata.clone(), event);
            self.bytes += new.encoded.data.len();
            self.events.push(new);
        }
        claimed
    }

    /// Claims the order's idempotency key, with the answer that its repetitions get.
    pub(super) fn claim_request(
        &mut self,
        order: &Order,
        done: Done,
        now: Timestamp,
    ) -> Option<ClaimKey> {
        let repeatable = order.repeatable.as_ref()?;
        let claimed = &repeatable.key.claimed;
        let key = ClaimKey::Request(claimed.clone());
        let value: Arc<str> = Arc::from(repeatable.claim_value(done));
        self.requests.insert(claimed.clone(), value.clone());
        let expires_at = Some(now.plus_ms(super::idempotency::KEY_LIFETIME_MS));
        self.claims.push(NewClaim {
            key: key.clone(),
            value,
            expires_at,
        });
        Some(key)
    }

    /// The event of this version, if it is one of the batch that is not under way yet.
    pub(super) fn event(&self, version: Version) -> Option<&Arc<Event>> {
        of_version(&self.events, self.expected, version).map(|new| &new.event)
    }

    /// Has an attempt launched, unless its end was decided meanwhile.
    pub(super) fn launch(&mut self, started: Box<Started>, slot: Held) {
        let (task, attempt) = slot.attempt();
        let ended = |effect: &Consequence| matches!(effect, Consequence::Stop(t, a) if (*t, *a) == (task, attempt));
        if !self.effects.iter().any(ended) {
            self.effects.push(Consequence::Launch(started, slot));
        }
    }

    /// The append itself; the batch keeps what its conclusion needs.
    pub(super) fn take_append(&mut self, stream: FlowId, fence: Option<Fence>) -> Append {
        let (events, claims) = (
            std::mem::take(&mut self.events),
            std::mem::take(&mut self.claims),
        );
        self.ids = events.iter().map(|e| e.id).collect();
        self.sent_at = Some(Instant::now());
        Append {
            stream,
            expected: self.expected,
            events,
            claims,
            fence,
        }
    }
}

/// Events of the append that is under way.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// Version of the flow before the first.
    pub(super) before: Version,
    pub(super) events: Vec<Arc<Event>>,
}

impl UnderWay {
    pub(super) fn event(&self, version: Version) -> Option<&Arc<Event>> {
        of_version(&self.events, self.before, version)
    }
}

/// The event of a version among consecutive ones, the first of which follows `before`.
fn of_version<E>(events: &[E], before: Version, version: Version) -> Option<&E> {
    let index = version.checked_sub(before + 1)?;
    events.get(usize::try_from(index).ok()?)
}

impl Entry {
    /// Tells the sender; one who has gone away is no fault.
    pub(super) fn answer(self, result: Result<Answer, Error>) {
        send(self.order, result);
    }

    /// The answer that was decided.
    pub(super) fn answer_decided(self, position: taskledger_domain::Position) {
        let result = match self.decision {
            Decision::Done(done) => Ok(Answer::Done { done, position }),
            Decision::Refused(rejection) => Err(rejection.into()),
            Decision::Denied(error) => Err(error),
            Decision::Repeats(first) => match &self.order.repeatable {
                Some(repeatable) => {
                    let reply = repeatable.key.repeat(&first);
                    reply.map(|reply| Answer::Repeated(Box::new(reply)))
                }
                None => Err(Failure::Broken("a repetition without a key".to_owned()).into()),
            },
        };
        send(self.order, result);
    }
}

fn send(order: Order, result: Result<Answer, Error>) {
    if let Some(reply) = order.reply {
        let _ = reply.send(result);
    }
}

//! Commands that were decided together and become one append.

use super::error::Error;
use super::mailbox::{Order, Reply};
use super::ports::Started;
use crate::store::{Append, ClaimKey, Fence, NewClaim, NewEvent};
use std::sync::Arc;
use taskledger_domain::flow::{Done, Event, Flow, Rejection};
use taskledger_domain::schedule::{self, Effect};
use taskledger_domain::{EventId, FlowId, TaskId, Timestamp, Version};

/// A command and what was decided on it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) order: Order,
    pub(super) decision: Result<Done, Rejection>,
    /// What it claims besides the ids of its tasks.
    pub(super) claims: Vec<ClaimKey>,
}

/// Decided commands, in order, whose answers wait for the same append.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Version of the flow before the first event.
    pub(super) expected: Version,
    pub(super) entries: Vec<Entry>,
    pub(super) events: Vec<NewEvent>,
    pub(super) claims: Vec<NewClaim>,
    /// What the engine does once the events are durable.
    pub(super) effects: Vec<Consequence>,
    /// Attempts for which slots were taken.
    pub(super) starts: Vec<(String, TaskId, u32)>,
    pub(super) bytes: usize,
}

/// An effect with the event that caused it.
#[derive(Debug)]
pub(super) enum Consequence {
    Launch(Box<Started>),
    Stop(TaskId, u32),
}

impl Batch {
    /// Events in one append before the next one is begun.
    pub(super) const EVENTS_MAX: usize = 1000;
    /// Bytes in one append before the next one is begun.
    pub(super) const BYTES_MAX: usize = 1024 * 1024;

    pub(super) fn is_full(&self) -> bool {
        self.events.len() >= Self::EVENTS_MAX || self.bytes >= Self::BYTES_MAX
    }

    /// Adds the events of an accepted order, decided at `now`, the flow's state being `flow` after them.
    pub(super) fn add(
        &mut self,
        flow: &Flow,
        id: FlowId,
        order: &Order,
        events: Vec<Event>,
        now: Timestamp,
    ) -> Vec<ClaimKey> {
        if self.events.is_empty() {
            self.expected = flow.version() - events.len() as Version;
        }
        let mut claimed = Vec::new();
        for event in events {
            if let Event::TaskCreated(created) = &event
                && (created.parent_id.is_some() || order.claims_root)
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
                    self.starts
                        .push((launch.method.clone(), launch.task, launch.attempt));
                    let metadata = order.metadata.clone();
                    self.effects.push(Consequence::Launch(Box::new(Started {
                        flow: id,
                        launch,
                        event: event_id,
                        metadata,
                    })));
                }
                Some(Effect::Stop { task, attempt }) => {
                    self.effects.push(Consequence::Stop(task, attempt))
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
        let key = ClaimKey::Request(repeatable.key.clone());
        let value = repeatable.claim_value(done);
        let expires_at = Some(now.plus_ms(super::idempotency::KEY_LIFETIME_MS));
        self.claims.push(NewClaim {
            key: key.clone(),
            value: Arc::from(value),
            expires_at,
        });
        Some(key)
    }

    pub(super) fn append(&self, stream: FlowId, fence: Option<Fence>) -> Append {
        let (events, claims) = (self.events.clone(), self.claims.clone());
        Append {
            stream,
            expected: self.expected,
            events,
            claims,
            fence,
        }
    }
}

impl Entry {
    /// Tells the sender; one who has gone away is no fault.
    pub(super) fn answer(self, result: Result<Reply, Error>) {
        if let Some(reply) = self.order.reply {
            let _ = reply.send(result);
        }
    }

    /// The answer that was decided.
    pub(super) fn answer_decided(self, position: taskledger_domain::Position) {
        match &self.decision {
            Ok(done) => {
                let reply = Reply::Done {
                    done: *done,
                    position,
                };
                self.answer(Ok(reply));
            }
            Err(rejection) => {
                let error = rejection.clone().into();
                self.answer(Err(error));
            }
        }
    }
}

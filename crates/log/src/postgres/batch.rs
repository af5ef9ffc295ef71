//! Decides which appends go into one statement.
//!
//! Owns: the rule that no two appends of a batch are of one stream or claim the same key, which is
//! what lets the database judge all of them on one state; and the size of a batch.

use crate::check::{BATCH_BYTES_MAX, BATCH_EVENTS_MAX, Size};
use crate::{Append, ClaimKey, Error, Outcome};
use std::collections::HashSet;
use taskledger_domain::FlowId;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// An append that waits, with whom to tell.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) append: Append,
    pub(super) size: Size,
    pub(super) reply: oneshot::Sender<Result<Outcome, Error>>,
    /// The bytes' share of the queue, given back when the append has been answered.
    pub(super) share: OwnedSemaphorePermit,
}

/// Why an append has to wait for a later batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Later {
    /// The batch is full.
    Full,
    /// A neighbour writes the same stream or claims the same key.
    Clash,
}

/// Appends for one statement.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) waiting: Vec<Waiting>,
    size: Size,
    /// Streams and keys of what is in the batch, and of what was held back because of it: a later
    /// append of the same stream must not overtake.
    flows: HashSet<FlowId>,
    keys: HashSet<ClaimKey>,
}

impl Batch {
    pub(super) const fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes an append in, or gives it back. The first one always fits. Cost: O(claims).
    pub(super) fn admit(&mut self, waiting: Box<Waiting>) -> Result<(), (Later, Box<Waiting>)> {
        let events = self.size.events + waiting.size.events;
        let bytes = self.size.bytes + waiting.size.bytes;
        if !self.is_empty() && (events > BATCH_EVENTS_MAX || bytes > BATCH_BYTES_MAX) {
            return Err((Later::Full, waiting));
        }
        let append = &waiting.append;
        let clashes = self.flows.contains(&append.stream)
            || append.claims.iter().any(|c| self.keys.contains(&c.key));
        self.flows.insert(append.stream);
        self.keys
            .extend(append.claims.iter().map(|claim| claim.key.clone()));
        if clashes {
            return Err((Later::Clash, waiting));
        }
        self.size = Size { events, bytes };
        self.waiting.push(*waiting);
        Ok(())
    }

    /// Claims with an expiry; they will have to be swept.
    pub(super) fn expiring_claims(&self) -> usize {
        let claims = self.waiting.iter().flat_map(|w| &w.append.claims);
        claims.filter(|c| c.expires_at.is_some()).count()
    }

    /// Tells everybody that nothing was written.
    pub(super) fn refuse(self, error: &Error) {
        for waiting in self.waiting {
            // A caller that is gone does not care.
            let _ = waiting.reply.send(Err(error.clone()));
        }
    }

    /// Tells everybody that nobody knows.
    pub(super) fn leave_unknown(self) {
        for waiting in self.waiting {
            let _ = waiting.reply.send(Ok(Outcome::Unknown));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NewClaim, NewEvent};
    use std::sync::Arc;
    use taskledger_domain::flow::{Event, TaskRenamed};
    use taskledger_domain::{EventId, Metadata, TaskId, Timestamp};
    use tokio::sync::Semaphore;
    use uuid::Uuid;

    fn waiting(flow: u128, claim: Option<&str>, bytes: usize) -> Box<Waiting> {
        let event = NewEvent::new(
            EventId(Uuid::nil()),
            Timestamp(0),
            Metadata {
                actor: Arc::from("a"),
                correlation: Arc::from("c"),
                causation: None,
                trace: None,
            },
            Event::TaskRenamed(TaskRenamed {
                task_id: TaskId(Uuid::nil()),
                name: "name".to_owned(),
            }),
        );
        let claims = claim.map(|key| NewClaim {
            key: ClaimKey::Request(Arc::from(key)),
            value: Arc::from("value"),
            expires_at: Some(Timestamp(1)),
        });
        Box::new(Waiting {
            append: Append {
                stream: FlowId(Uuid::from_u128(flow)),
                expected: 0,
                events: vec![event],
                claims: claims.into_iter().collect(),
                fence: None,
            },
            size: Size { events: 1, bytes },
            reply: oneshot::channel().0,
            share: Arc::new(Semaphore::new(1))
                .try_acquire_owned()
                .expect("it is free"),
        })
    }

    fn refused(batch: &mut Batch, waiting: Box<Waiting>) -> Option<Later> {
        batch.admit(waiting).err().map(|(why, _)| why)
    }

    #[test]
    fn neighbours_write_different_streams_and_claim_different_keys() {
        let mut batch = Batch::default();

        assert_eq!(refused(&mut batch, waiting(1, Some("k"), 1)), None);
        assert_eq!(refused(&mut batch, waiting(1, None, 1)), Some(Later::Clash));
        assert_eq!(
            refused(&mut batch, waiting(2, Some("k"), 1)),
            Some(Later::Clash)
        );
        // What follows one that was held back waits too.
        assert_eq!(
            refused(&mut batch, waiting(2, Some("l"), 1)),
            Some(Later::Clash)
        );
        assert_eq!(refused(&mut batch, waiting(3, Some("m"), 1)), None);
        assert_eq!(batch.expiring_claims(), 2);
    }

    #[test]
    fn a_batch_is_bounded_unless_one_append_is_larger() {
        let mut batch = Batch::default();

        assert_eq!(
            refused(&mut batch, waiting(1, None, BATCH_BYTES_MAX * 2)),
            None
        );
        assert_eq!(refused(&mut batch, waiting(2, None, 1)), Some(Later::Full));

        let mut batch = Batch::default();
        let flows = 0..BATCH_EVENTS_MAX as u128;
        assert!(
            flows
                .into_iter()
                .all(|n| refused(&mut batch, waiting(n, None, 1)).is_none())
        );
        assert_eq!(
            refused(&mut batch, waiting(1 << 64, None, 1)),
            Some(Later::Full)
        );
    }
}

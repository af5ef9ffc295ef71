//! Limits of methods across several nodes: a claim takes a ticket for each attempt before its flow decides, and the
//! ticket is returned with the attempt. A node that is alone counts in its index of offers and takes none.

use super::error::{Error, Failure};
use super::flows::Flows;
use super::mailbox::Answer;
use super::ownership::Place;
use super::ports::TicketsOf;
use super::sending::engine_metadata;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::flow::{Done, Flow};
use taskledger_domain::task::Status;
use taskledger_domain::{FlowId, LeaseId, Timestamp};
use taskledger_workers::MethodKey;
use tokio::time::sleep;

/// How long a node gives nothing of a method out whose places all nodes together have taken. Then it tries again:
/// nobody tells it of places that become free elsewhere.
const FULL_PAUSE: Duration = Duration::from_millis(100);

impl Flows {
    /// Whether attempts of a method take tickets.
    pub(super) fn shares_limit_of(&self, method: &MethodKey) -> bool {
        self.leases.tickets.is_some() && self.offers.is_limited(method)
    }

    /// Takes tickets for attempts of a method that would begin; gives for how many. Fewer than asked for: the
    /// method rests on this node for a moment.
    ///
    /// # Errors
    /// The tickets cannot be written.
    pub(super) async fn tickets_for(
        self: &Arc<Self>,
        method: &MethodKey,
        (leases, expires_at): (&[LeaseId], Timestamp),
    ) -> Result<usize, Error> {
        let Some(tickets) = &self.leases.tickets else {
            return Ok(leases.len());
        };
        if self.offers.is_paused(method) {
            return Ok(0);
        }
        let taken = tickets.take(method, (leases, expires_at), self.clock.now());
        let granted = taken.await.map_err(Failure::from)?;
        if granted < leases.len() && self.offers.pause(method) {
            let (flows, method) = (self.clone(), method.clone());
            self.tasks.spawn(async move {
                sleep(FULL_PAUSE).await;
                flows.offers.resume(&method);
            });
        }
        Ok(granted)
    }

    /// Gives the tickets back of attempts that have not begun, as the answer of their flow says.
    pub(super) fn settle_tickets(
        self: &Arc<Self>,
        flow: FlowId,
        leases: &[LeaseId],
        answer: &Result<Answer, Error>,
    ) {
        let begun = matches!(
            answer,
            Ok(Answer::Done {
                done: Done::Status(Status::InProgress),
                ..
            })
        );
        let is_held = |lease: &LeaseId| self.leases.get(*lease).is_some();
        let has_moved = !matches!(self.ownership.of(flow), Place::Here(_));
        if begun && has_moved && !leases.iter().any(is_held) {
            // The attempts have moved with the flow.
            self.forget_tickets(leases);
        } else if let Err(Error::OutcomeUnknown) = answer {
            let (flows, leases) = (self.clone(), leases.to_vec());
            self.tasks.spawn(async move {
                let look = |_: &Flow| ();
                // A flow that is loaded has its leases kept.
                match flows.look(flow, engine_metadata(), look).await {
                    Ok(()) => flows.give_tickets_back(&leases),
                    // They count until the time of the leases.
                    Err(_) => flows.forget_tickets(&leases),
                }
            });
        } else {
            self.give_tickets_back(leases);
        }
    }

    fn forget_tickets(&self, leases: &[LeaseId]) {
        if let Some(tickets) = &self.leases.tickets {
            leases.iter().for_each(|lease| tickets.forget(*lease));
        }
    }

    /// Gives the tickets back of attempts that have not begun.
    fn give_tickets_back(&self, leases: &[LeaseId]) {
        let Some(tickets) = &self.leases.tickets else {
            return;
        };
        let mut is_changed = false;
        for lease in leases {
            if self.leases.get(*lease).is_none() {
                is_changed |= tickets.give_back(*lease);
            }
        }
        if is_changed {
            self.write_tickets();
        }
    }

    /// Attempts that are under way get tickets.
    pub(super) fn keep_tickets(&self, held: TicketsOf) {
        if let Some(tickets) = &self.leases.tickets
            && !held.is_empty()
        {
            tickets.keep(held);
            self.write_tickets();
        }
    }

    fn write_tickets(&self) {
        let Some(tickets) = self.leases.tickets.clone() else {
            return;
        };
        self.tasks.spawn(async move {
            if let Err(error) = tickets.write().await {
                tracing::warn!(%error, "other nodes do not see yet which attempts count against the limits of methods");
            }
        });
    }

    /// Counts attempts under way of methods that have a limit from now on.
    pub(super) fn count_attempts_of(&self, methods: &[MethodKey]) {
        if self.leases.tickets.is_some() && !methods.is_empty() && !self.leases.is_empty() {
            self.keep_tickets(self.leases.of_methods(methods));
        }
    }
}

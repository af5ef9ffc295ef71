//! Limits of methods that several nodes share: a claim takes a ticket for each attempt before its flow decides, and
//! the ticket goes back with the attempt. A node that is alone counts in its index of offers and takes none.

use super::error::{Error, Failure};
use super::flows::Flows;
use super::ports::TicketsOf;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::{LeaseId, Timestamp};
use tokio::time::sleep;

/// How long a node gives nothing of a method out whose places all nodes together have taken. Then it tries again:
/// nobody tells it of places that become free elsewhere.
const FULL_PAUSE: Duration = Duration::from_millis(100);

impl Flows {
    /// Takes tickets for attempts of a method that would begin; gives for how many. Fewer than asked for: the
    /// method rests on this node for a moment.
    ///
    /// # Errors
    /// The tickets cannot be written.
    pub(super) async fn tickets_for(
        self: &Arc<Self>,
        method: Option<&Arc<str>>,
        (leases, expires_at): (&[LeaseId], Timestamp),
    ) -> Result<usize, Error> {
        let (Some(tickets), Some(method)) = (&self.leases.tickets, method) else {
            return Ok(leases.len());
        };
        if !self.offers.is_limited(method) {
            return Ok(leases.len());
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

    /// Gives the tickets back of attempts that have not begun.
    pub(super) fn give_tickets_back(&self, leases: &[LeaseId]) {
        let Some(tickets) = &self.leases.tickets else {
            return;
        };
        let unused = leases
            .iter()
            .filter(|lease| self.leases.get(**lease).is_none());
        // All of them, not only the first one that has a ticket.
        let given: Vec<bool> = unused.map(|lease| tickets.give_back(*lease)).collect();
        if given.contains(&true) {
            let tickets = tickets.clone();
            self.tasks.spawn(async move {
                if let Err(error) = tickets.write().await {
                    tracing::debug!(%error, "tickets that were not used are not given back yet");
                }
            });
        }
    }

    /// Attempts that are under way get tickets.
    pub(super) fn keep_tickets(&self, held: TicketsOf) {
        let Some(tickets) = self.leases.tickets.clone().filter(|_| !held.is_empty()) else {
            return;
        };
        self.tasks.spawn(async move {
            if let Err(error) = tickets.keep(held).await {
                tracing::warn!(%error, "attempts that are under way do not count against the limit of their method");
            }
        });
    }

    /// These methods have a limit from now on: attempts that are under way count.
    pub(super) fn count_attempts_of(&self, methods: Vec<Arc<str>>) {
        if self.leases.tickets.is_some() && !methods.is_empty() && !self.leases.is_empty() {
            self.keep_tickets(self.leases.of_methods(&methods));
        }
    }
}

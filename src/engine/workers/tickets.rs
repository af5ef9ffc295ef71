//! Tickets of methods with a limit in the store of workers that the nodes share.

use super::renewals::unavailable;
use crate::application::ports::{Tickets, TicketsOf};
use crate::store;
use async_trait::async_trait;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};
use taskledger_domain::{LeaseId, Timestamp};
use taskledger_workers::WorkerStore;

/// Tickets that all nodes see.
#[derive(Debug)]
pub struct StoredTickets {
    store: Arc<WorkerStore>,
    known: Mutex<Known>,
    /// Held while something is written, so that whoever takes a ticket sees what was given back before.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    /// Leases of this node that have a ticket.
    held: HashSet<LeaseId>,
    /// Those whose ticket is to be given back.
    over: Vec<LeaseId>,
}

impl StoredTickets {
    /// The tickets of this store.
    #[must_use]
    pub fn of(store: Arc<WorkerStore>) -> Self {
        Self {
            store,
            known: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known
            .lock()
            .expect("no code panics while it holds the tickets")
    }

    fn over(&self) -> Vec<LeaseId> {
        std::mem::take(&mut self.known().over)
    }
}

#[async_trait]
impl Tickets for StoredTickets {
    async fn take(
        &self,
        method: &Arc<str>,
        (leases, expires_at): (&[LeaseId], Timestamp),
        now: Timestamp,
    ) -> Result<usize, store::Error> {
        let _writing = self.writing.lock().await;
        let over = self.over();
        let wanted = (leases, expires_at);
        match self.store.take_tickets(method, wanted, &over, now).await {
            Ok(granted) => {
                let granted = granted.min(leases.len());
                self.known().held.extend(&leases[..granted]);
                Ok(granted)
            }
            Err(error) => {
                self.known().over.extend(over);
                Err(unavailable(&error))
            }
        }
    }

    async fn keep(&self, tickets: TicketsOf) -> Result<(), store::Error> {
        let _writing = self.writing.lock().await;
        self.known()
            .held
            .extend(tickets.iter().map(|(_, lease, _)| *lease));
        let kept = self.store.keep_tickets(&tickets).await;
        kept.map_err(|e| unavailable(&e))
    }

    fn give_back(&self, lease: LeaseId) -> bool {
        let mut known = self.known();
        let has_one = known.held.remove(&lease);
        if has_one {
            known.over.push(lease);
        }
        has_one
    }

    fn forget(&self, lease: LeaseId) {
        self.known().held.remove(&lease);
    }

    async fn write(&self) -> Result<(), store::Error> {
        let _writing = self.writing.lock().await;
        let over = self.over();
        if over.is_empty() {
            return Ok(());
        }
        let written = self.store.give_tickets_back(&over).await;
        written.map_err(|error| {
            self.known().over.extend(over);
            unavailable(&error)
        })
    }
}

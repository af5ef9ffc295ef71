//! Tickets of methods with a limit in the store of workers that the nodes share.

use super::renewals::unavailable;
use crate::application::ports::{Tickets, TicketsOf};
use crate::store;
use async_trait::async_trait;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use taskledger_domain::{LeaseId, Timestamp};
use taskledger_workers::store::Error;
use taskledger_workers::{MethodKey, WorkerStore};
use tokio::time::timeout;

/// How long a call waits for those before it.
const TURN_WAIT: Duration = Duration::from_secs(10);

/// Tickets that all nodes see.
#[derive(Debug)]
pub struct StoredTickets {
    store: Arc<WorkerStore>,
    known: Mutex<Known>,
    /// Held while something is written, so that whoever takes a ticket sees what was given back before.
    writing: tokio::sync::Mutex<()>,
}

/// Leases of this node, and what of them is not written yet.
#[derive(Debug, Default)]
struct Known {
    /// Those that have a ticket.
    held: HashSet<LeaseId>,
    /// Tickets that are to be there.
    kept: TicketsOf,
    /// Those whose ticket is to go.
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

    async fn turn(&self) -> Result<tokio::sync::MutexGuard<'_, ()>, store::Error> {
        let turn = timeout(TURN_WAIT, self.writing.lock()).await;
        turn.map_err(|_| unavailable(&Error::Late))
    }

    /// Writes the tickets that are to be there, in one's turn.
    async fn write_kept(&self) -> Result<(), Error> {
        let kept = {
            let mut known = self.known();
            let mut kept = std::mem::take(&mut known.kept);
            kept.retain(|(_, lease, _)| known.held.contains(lease));
            kept
        };
        if kept.is_empty() {
            return Ok(());
        }
        self.store.keep_tickets(&kept).await.inspect_err(|_| {
            self.known().kept.extend(kept);
        })
    }
}

#[async_trait]
impl Tickets for StoredTickets {
    async fn take(
        &self,
        method: &MethodKey,
        (leases, expires_at): (&[LeaseId], Timestamp),
        now: Timestamp,
    ) -> Result<usize, store::Error> {
        let _turn = self.turn().await?;
        self.write_kept().await.map_err(|e| unavailable(&e))?;
        let over = std::mem::take(&mut self.known().over);
        let wanted = (leases, expires_at);
        match self.store.take_tickets(method, wanted, &over, now).await {
            Ok(granted) => {
                let granted = granted.min(leases.len());
                self.known().held.extend(&leases[..granted]);
                Ok(granted)
            }
            Err(error) => {
                let mut known = self.known();
                known.over.extend(over);
                // It may have been written.
                known.over.extend(leases);
                Err(unavailable(&error))
            }
        }
    }

    fn keep(&self, tickets: TicketsOf) {
        let mut known = self.known();
        known
            .held
            .extend(tickets.iter().map(|(_, lease, _)| *lease));
        known.kept.extend(tickets);
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
        let _turn = self.turn().await?;
        self.write_kept().await.map_err(|e| unavailable(&e))?;
        let over = std::mem::take(&mut self.known().over);
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

//! The endpoints that this worker has leased, and for how long it may rely on each lease.

use super::{LEASE, LEASE_MARGIN};
use crate::delivery::Lease;
use crate::endpoint::EndpointId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// One held endpoint.
#[derive(Debug)]
pub(super) struct Holding {
    right: Mutex<Right>,
    /// Cancelled when the endpoint is held no more.
    pub(super) lost: CancellationToken,
}

#[derive(Debug, Clone)]
struct Right {
    lease: Lease,
    /// By the monotonic clock, counted from before the store was asked.
    ends: Instant,
}

impl Holding {
    fn right(&self) -> MutexGuard<'_, Right> {
        self.right
            .lock()
            .expect("no code panics while it holds a lease")
    }

    /// The lease as it is now.
    pub(super) fn lease(&self) -> Lease {
        self.right().lease.clone()
    }

    /// Whether the lease can be relied on for `time` more.
    pub(super) fn lasts(&self, time: Duration) -> bool {
        Instant::now() + time < self.right().ends
    }
}

#[derive(Debug, Default)]
pub(super) struct Holdings {
    held: Mutex<HashMap<EndpointId, Arc<Holding>>>,
}

impl Holdings {
    fn held(&self) -> MutexGuard<'_, HashMap<EndpointId, Arc<Holding>>> {
        self.held
            .lock()
            .expect("no code panics while it holds the leases")
    }

    pub(super) fn len(&self) -> usize {
        self.held().len()
    }

    /// Takes in a lease that was asked for at `asked`. `None`: the endpoint is held already, as when the
    /// clock has leapt over the end of our own lease; whoever has to do with it goes on under the new one.
    pub(super) fn take(&self, lease: Lease, asked: Instant) -> Option<Arc<Holding>> {
        let ends = asked + LEASE - LEASE_MARGIN;
        let mut held = self.held();
        let present = held.get(&lease.endpoint);
        if let Some(holding) = present.filter(|holding| !holding.lost.is_cancelled()) {
            *holding.right() = Right { lease, ends };
            return None;
        }
        let id = lease.endpoint;
        let holding = Arc::new(Holding {
            right: Mutex::new(Right { lease, ends }),
            lost: CancellationToken::new(),
        });
        held.insert(id, holding.clone());
        Some(holding)
    }

    /// Forgets an endpoint, unless it was taken anew.
    pub(super) fn remove(&self, id: EndpointId, holding: &Arc<Holding>) {
        let mut held = self.held();
        if held
            .get(&id)
            .is_some_and(|present| Arc::ptr_eq(present, holding))
        {
            held.remove(&id);
        }
    }

    pub(super) fn leases(&self) -> Vec<Lease> {
        self.held()
            .values()
            .map(|holding| holding.lease())
            .collect()
    }

    /// What the store says of leases at `asked`. Those that it does not know are lost, unless they were
    /// replaced meanwhile.
    pub(super) fn renewed(&self, leases: &[Lease], kept: &[bool], asked: Instant) {
        let held = self.held();
        for (lease, kept) in leases.iter().zip(kept) {
            let Some(holding) = held.get(&lease.endpoint) else {
                continue;
            };
            let mut right = holding.right();
            if right.lease != *lease {
                continue;
            }
            if *kept {
                right.ends = right.ends.max(asked + LEASE - LEASE_MARGIN);
            } else {
                holding.lost.cancel();
            }
        }
    }

    /// Gives up what cannot be relied on any more.
    pub(super) fn expire(&self) {
        for holding in self.held().values() {
            if !holding.lasts(Duration::ZERO) {
                holding.lost.cancel();
            }
        }
    }
}

//! Renewals kept in memory only, for servers without a store for them.

use crate::application::ports::{Renewal, Renewals, Renewed};
use crate::store;
use async_trait::async_trait;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard};
use taskledger_domain::{FlowId, LeaseId};

/// Renewals in memory, which a restart of the process forgets: leases then hold until the time of their
/// claim, and at least for the moment in which workers find the server again.
#[derive(Default)]
pub struct MemoryRenewals(Mutex<HashMap<LeaseId, Renewal>>);

impl fmt::Debug for MemoryRenewals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRenewals").finish_non_exhaustive()
    }
}

impl MemoryRenewals {
    fn all(&self) -> MutexGuard<'_, HashMap<LeaseId, Renewal>> {
        self.0
            .lock()
            .expect("no code panics while it holds the renewals")
    }

    /// Leases of which something is kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all().len()
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[async_trait]
impl Renewals for MemoryRenewals {
    async fn renew(&self, renewals: &[Renewal]) -> Result<(), store::Error> {
        let renewals = renewals.iter().map(|renewal| (renewal.lease, *renewal));
        self.all().extend(renewals);
        Ok(())
    }

    async fn of(&self, flow: FlowId) -> Result<HashMap<LeaseId, Renewed>, store::Error> {
        let all = self.all();
        let of_flow = all.values().filter(|renewal| renewal.flow == flow);
        let renewed = |renewal: &Renewal| Renewed {
            expires_at: renewal.expires_at,
            graces: renewal.graces,
        };
        Ok(of_flow.map(|it| (it.lease, renewed(it))).collect())
    }

    async fn forget(&self, leases: &[LeaseId]) -> Result<(), store::Error> {
        let mut all = self.all();
        all.retain(|lease, _| !leases.contains(lease));
        Ok(())
    }
}

//! Renewals of leases in the store of workers.

use crate::application::ports::{Renewal, Renewals, Renewed};
use crate::store;
use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::{FlowId, LeaseId};
use taskledger_workers::WorkerStore;
use taskledger_workers::store::Error;

/// Renewals that outlive the process.
#[derive(Debug, Clone)]
pub struct StoredRenewals(pub Arc<WorkerStore>);

#[async_trait]
impl Renewals for StoredRenewals {
    async fn renew(&self, renewals: &[Renewal]) -> Result<(), store::Error> {
        self.0.renew(renewals).await.map_err(|e| unavailable(&e))
    }

    async fn of(&self, flow: FlowId) -> Result<HashMap<LeaseId, Renewed>, store::Error> {
        self.0.renewals(flow).await.map_err(|e| unavailable(&e))
    }

    async fn forget(&self, leases: &[LeaseId]) -> Result<(), store::Error> {
        let forgotten = self.0.forget_renewals(leases).await;
        forgotten.map_err(|e| unavailable(&e))
    }
}

/// As the application knows it: what failed is tried again.
pub(super) fn unavailable(error: &Error) -> store::Error {
    store::Error::Unavailable(error.to_string())
}

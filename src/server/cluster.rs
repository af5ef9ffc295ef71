//! Assembles a server that is one of several on a database.

use super::StartError;
use crate::application::Flows;
use crate::clock::SharedClock;
use crate::nodes::{self, Keeper, NodeOwnership, Peers, PostgresLeases, Said, Trust};
use crate::store::postgres;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What is needed to be one of several.
pub(super) struct Cluster {
    /// What this server may rely on; nothing before it has joined.
    pub(super) ownership: Arc<NodeOwnership>,
    /// The way to the others.
    pub(super) peers: Arc<Peers>,
    leases: Arc<PostgresLeases>,
}

impl Cluster {
    /// Prepares to join; holds nothing yet. The log is open already.
    pub(super) async fn open(
        options: &postgres::Options,
        trust: &Trust,
        clock: &SharedClock,
    ) -> Result<Self, StartError> {
        let leases = PostgresLeases::open(options).await?;
        let ownership = NodeOwnership::new(clock.uuid());
        let peers = Peers::new(ownership.clone(), &leases.secret().await?, trust)?;
        Ok(Self {
            ownership,
            peers: Arc::new(peers),
            leases: Arc::new(leases),
        })
    }

    /// Servers that run on the database.
    pub(super) async fn living(&self) -> Result<i64, StartError> {
        Ok(self.leases.living().await?)
    }

    /// Says whether this server asks for credentials, as `decide` finds by what the others have said.
    pub(super) async fn agree<E: Send>(
        &self,
        decide: impl FnOnce(&[Said]) -> Result<bool, E> + Send,
    ) -> Result<Result<bool, E>, StartError> {
        Ok(self.leases.agree(self.ownership.me(), decide).await?)
    }

    /// Takes part until `leaving`, as the node that others reach at `url`. A node that must not take part any more ends
    /// the server with `stop`.
    pub(super) fn take_part(
        &self,
        url: &str,
        flows: Arc<Flows>,
        (leaving, stop): (CancellationToken, CancellationToken),
    ) -> impl Future<Output = ()> + use<> {
        let leases = self.leases.clone();
        let keeper = Keeper::new(Arc::from(url), self.ownership.clone(), leases, flows);
        async move {
            let Err(error) = keeper.run(leaving).await else {
                return;
            };
            let error = match error {
                nodes::Error::Differs { is_on, other } => {
                    StartError::Authentication { is_on, other }
                }
                error @ (nodes::Error::Unavailable(_) | nodes::Error::InUse { .. }) => error.into(),
            };
            tracing::error!(%error, "this server ends: it was taken for gone and cannot take part again");
            stop.cancel();
        }
    }

    /// Closes its connections; the last step.
    pub(super) async fn close(&self) {
        if let Err(error) = self.leases.take_back(self.ownership.me()).await {
            tracing::debug!(%error, "other nodes are not told that this one has stopped");
        }
        self.leases.close().await;
    }
}

//! Attempts that have started but have not been delivered to their worker yet. If the worker disconnects, they are
//! released instead of being lost until their leases end.

use super::api::Request;
use super::api::work::{Begun, Release};
use super::context::Context;
use super::error::Error;
use super::flows::Flows;
use super::routing::{self, Forward};
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Metadata;
use taskledger_domain::flow::Command;

/// How long another node may take to be given something back; else the lease ends.
const GIVE_BACK_WAIT: Duration = Duration::from_secs(5);

/// Attempts that were not delivered to a worker yet. Dropping this releases them.
#[derive(Debug)]
pub(super) struct UndeliveredClaims {
    flows: Arc<Flows>,
    metadata: Metadata,
    /// The way to flows of other nodes, and as whom.
    elsewhere: Option<(Arc<dyn Forward>, Context)>,
    begun: Vec<Begun>,
}

impl UndeliveredClaims {
    /// Claims that have begun in flows of this node.
    pub(super) const fn new(flows: Arc<Flows>, metadata: Metadata, begun: Vec<Begun>) -> Self {
        Self {
            flows,
            metadata,
            elsewhere: None,
            begun,
        }
    }

    /// The same for flows of any node.
    pub(super) fn anywhere(mut self, forward: &Arc<dyn Forward>, context: &Context) -> Self {
        let context = context.clone().until(None);
        self.elsewhere = Some((forward.clone(), context));
        self
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }

    pub(super) fn begun(&self) -> &[Begun] {
        &self.begun
    }

    pub(super) fn extend(&mut self, more: impl IntoIterator<Item = Begun>) {
        self.begun.extend(more);
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&Begun) -> bool) {
        self.begun.retain(keep);
    }

    /// They were delivered: dropping this releases nothing any more.
    pub(super) fn delivered(mut self) -> Vec<Begun> {
        std::mem::take(&mut self.begun)
    }
}

impl UndeliveredClaims {
    /// Those from `at` on.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        Self {
            flows: self.flows.clone(),
            metadata: self.metadata.clone(),
            elsewhere: self.elsewhere.clone(),
            begun: self.begun.split_off(at),
        }
    }

    /// Gives them back, and waits for that.
    pub(super) async fn give_back(mut self) {
        let begun = std::mem::take(&mut self.begun);
        let (flows, metadata) = (self.flows.clone(), self.metadata.clone());
        give_back(flows, metadata, self.elsewhere.take(), begun).await;
    }
}

impl Drop for UndeliveredClaims {
    fn drop(&mut self) {
        if self.begun.is_empty() {
            return;
        }
        let begun = std::mem::take(&mut self.begun);
        let (flows, metadata) = (self.flows.clone(), self.metadata.clone());
        let given = give_back(flows, metadata, self.elsewhere.take(), begun);
        self.flows.tasks.spawn(given);
    }
}

async fn give_back(
    flows: Arc<Flows>,
    metadata: Metadata,
    elsewhere: Option<(Arc<dyn Forward>, Context)>,
    begun: Vec<Begun>,
) {
    for begun in begun {
        let Begun { task, lease, .. } = begun;
        let release = Command::Release {
            task,
            attempt: begun.attempt,
            lease,
        };
        // Whatever is not given back is offered again when its lease ends.
        let told = flows.tell(begun.flow, release, metadata.clone()).await;
        if let Err(Error::Elsewhere(Some(node))) = told
            && let Some((forward, context)) = &elsewhere
        {
            let release = Request::Release(Release { task, lease });
            let given = routing::at(&**forward, context, &node, &release, GIVE_BACK_WAIT).await;
            if let Err(error) = given {
                tracing::debug!(task.id = %task, %error, "an undelivered claim was not released");
            }
        }
    }
}

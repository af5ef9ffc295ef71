//! Hints between nodes: each tells the others which methods have tasks that no worker at its own doors asks for, so
//! that workers of one node get tasks of another.
//!
//! A hint names methods and nothing else; the worker that it wakes claims at the node that gave it, in the turn
//! of the flow. Hints may get lost: they are repeated while there is something to hint at.

use super::Service;
use super::peers::PEER_WAIT;
use crate::application::api::work::{ClaimHere, Hint};
use crate::application::api::{Error, Reply, Request};
use crate::application::context::Context;
use crate::application::ownership::Node;
use crate::application::routing;
use crate::application::undelivered::UndeliveredClaims;
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The shortest time between two rounds of hints: what comes meanwhile goes with the next.
const HINT_EVERY: Duration = Duration::from_millis(5);
/// The same when nothing has changed: nobody seems to want it.
const HINT_SAME: Duration = Duration::from_millis(100);
/// How often hints are repeated.
const HINT_AGAIN: Duration = Duration::from_secs(1);

impl Service {
    /// Tells other nodes, until cancelled, what they may claim here. Ends at once for a server that is alone.
    pub async fn hint(&self, cancel: CancellationToken) {
        if self.forward.is_none() {
            return;
        }
        let _ = cancel.run_until_cancelled(self.keep_hinting()).await;
    }

    async fn keep_hinting(&self) {
        let offers = &self.app.flows.offers;
        let mut before = Vec::new();
        loop {
            // Whichever comes first.
            let _ = timeout(HINT_AGAIN, offers.unwanted_changed()).await;
            let methods = offers.unwanted();
            if methods.is_empty() {
                continue;
            }
            let me = self.app.flows.ownership().census().map(|census| census.me);
            let Some(node) = me else { continue };
            let hint = Request::Hint(Hint {
                node,
                methods: methods
                    .iter()
                    .map(|(method, many)| (method.name.clone(), *many, method.owner.clone()))
                    .collect(),
            });
            let context = self.of_this_node();
            let others = self.others();
            let told = others.iter().map(|other| self.at(&context, other, &hint));
            for told in join_all(told).await {
                if let Err(error) = told {
                    tracing::debug!(%error, "a node was not notified of tasks for its workers");
                }
            }
            sleep(if methods == before {
                HINT_SAME
            } else {
                HINT_EVERY
            })
            .await;
            before = methods;
        }
    }

    pub(super) fn of_this_node(&self) -> Context {
        Context::anonymous(Arc::from(self.app.clock.uuid().to_string()))
    }

    /// Asks the other nodes, one after the other, until one has something.
    pub(super) async fn claim_of_others(
        &self,
        context: &Context,
        here: &ClaimHere,
    ) -> UndeliveredClaims {
        for node in self.others() {
            let begun = self.claim_at(context, here, &node).await;
            if !begun.is_empty() {
                return begun;
            }
        }
        self.undelivered(context)
    }

    /// Asks the node that has given a hint.
    pub(super) async fn claim_there(
        &self,
        context: &Context,
        here: &ClaimHere,
        node: Uuid,
    ) -> UndeliveredClaims {
        let others = self.others();
        match others.iter().find(|other| other.id == node) {
            Some(node) => self.claim_at(context, here, node).await,
            None => self.undelivered(context),
        }
    }

    /// Asks a node, to the end also when whoever asks goes away meanwhile: what it has begun is given back then.
    pub(super) async fn claim_at(
        &self,
        context: &Context,
        here: &ClaimHere,
        node: &Arc<Node>,
    ) -> UndeliveredClaims {
        let Some(forward) = self.forward.clone() else {
            return self.undelivered(context);
        };
        let mut undelivered = self.undelivered(context);
        let (context, node) = (context.clone(), node.clone());
        let claim = Request::Claim(here.clone());
        let asked = async move {
            match routing::at(&*forward, &context, &node, &claim, PEER_WAIT).await {
                Ok(Reply::Claimed(begun)) => undelivered.extend(begun),
                Ok(_) => {}
                Err(error) => {
                    // What it may have begun goes to somebody else when its lease ends.
                    tracing::debug!(node.id = %node.id, %error, "a node gave no answer to a claim");
                }
            }
            Ok(undelivered)
        };
        let asked = self.to_the_end(asked).await;
        asked.unwrap_or_else(|_: Error| self.undelivered(&self.of_this_node()))
    }
}

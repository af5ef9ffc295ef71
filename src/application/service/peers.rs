//! Requests of this node to all other nodes, or to one of them.

use super::Service;
use crate::application::api::{Error, Reply, Request};
use crate::application::context::Context;
use crate::application::ownership::Node;
use crate::application::routing;
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;

/// How long another node may take for its answer.
pub(super) const PEER_WAIT: Duration = Duration::from_secs(5);

impl Service {
    /// The nodes but this one; none for a server that is alone.
    pub(super) fn others(&self) -> Vec<Arc<Node>> {
        let Some(census) = self.app.flows.ownership().census() else {
            return Vec::new();
        };
        let nodes = census.nodes.into_iter().map(|(node, _)| node);
        nodes.filter(|node| node.id != census.me).collect()
    }

    /// What a node answers.
    ///
    /// # Errors
    /// [`Error`].
    pub(super) async fn at(
        &self,
        context: &Context,
        node: &Node,
        request: &Request,
    ) -> Result<Reply, Error> {
        let Some(forward) = &self.forward else {
            return Err(Error::Elsewhere(None));
        };
        routing::at(&**forward, context, node, request, PEER_WAIT).await
    }

    /// What the other nodes answer; those that do not answer are left out.
    pub(super) async fn ask_others(&self, context: &Context, request: &Request) -> Vec<Reply> {
        let others = self.others();
        let asked = others.iter().map(|node| async {
            let answer = self.at(context, node, request).await;
            answer
                .inspect_err(|error| {
                    tracing::debug!(node.id = %node.id, %error, "a node gave no answer");
                })
                .ok()
        });
        join_all(asked).await.into_iter().flatten().collect()
    }
}

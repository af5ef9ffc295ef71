//! Passes calls from other nodes to the application. The door only carries bytes.

use crate::application::Service;
use crate::transport::jsonrpc::logged;
use axum::body::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt;
use tokio::time::Instant;

/// The port that takes calls of other nodes.
pub trait Peers: Send + Sync + fmt::Debug + 'static {
    /// Whether this is the `Authorization` of a node of the same cluster; `None` when there are no other
    /// nodes.
    fn admits(&self, authorization: &[u8]) -> Option<bool>;

    /// Carries out a call, at the latest until then; `None` when it was not taken, and nothing was done.
    fn take(&self, body: Bytes, latest: Instant) -> BoxFuture<'_, Option<Vec<u8>>>;
}

impl Peers for Service {
    fn admits(&self, authorization: &[u8]) -> Option<bool> {
        self.admits_node(authorization)
    }

    fn take(&self, body: Bytes, latest: Instant) -> BoxFuture<'_, Option<Vec<u8>>> {
        self.taken(body, latest, |failure| logged(&**self.clock(), failure))
            .boxed()
    }
}

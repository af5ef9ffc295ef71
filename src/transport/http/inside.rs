//! The handlers behind routes that are not JSON-RPC.

use super::{Peers, Readiness};
use crate::application::api::Authenticate;
use crate::application::{Context, Service as Application};
use crate::transport::jsonrpc::RpcError;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// The handlers behind the routes that are not JSON-RPC.
pub struct Inside {
    /// What probes ask.
    pub readiness: Arc<dyn Readiness>,
    /// Who takes calls of other nodes, if somebody does.
    pub peers: Option<Arc<dyn Peers>>,
    /// What monitoring asks.
    pub metrics: Option<Arc<dyn Scraped>>,
    /// Who tells whose credentials they are; `None` while authentication is off.
    pub authenticate: Option<Arc<dyn Authenticate>>,
    /// What gRPC calls are for, if they are served.
    pub broker: Option<Arc<Application>>,
}

impl From<Arc<Application>> for Inside {
    fn from(service: Arc<Application>) -> Self {
        Self {
            readiness: service.clone(),
            authenticate: None,
            broker: Some(service.clone()),
            peers: Some(service.clone()),
            metrics: Some(service),
        }
    }
}

/// The port to the metrics.
pub trait Scraped: Send + Sync + 'static {
    /// All figures as OpenMetrics text, for a caller who may see them.
    fn scrape<'a>(&'a self, caller: &'a Context) -> BoxFuture<'a, Result<String, RpcError>>;

    /// Those of the agent broker, in the older text format of Prometheus.
    fn scrape_broker<'a>(&'a self, caller: &'a Context) -> BoxFuture<'a, Result<String, RpcError>>;
}

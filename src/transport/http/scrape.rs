//! Serves the server's metrics to monitoring.

use super::call_context::context;
use super::door::Door;
use super::inside::Scraped;
use super::refusal;
use crate::application::{Context, Service};
use crate::transport::jsonrpc::{RpcError, refusals};
use axum::body::Body;
use axum::http::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use axum::response::Response;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;

pub(super) const PATH: &str = "/metrics";
const PLAIN_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Scraped for Service {
    fn scrape<'a>(&'a self, caller: &'a Context) -> BoxFuture<'a, Result<String, RpcError>> {
        let told = |error| refusals::told(&**self.clock(), error);
        async move { self.metrics(caller).await.map_err(told) }.boxed()
    }

    fn scrape_broker<'a>(&'a self, caller: &'a Context) -> BoxFuture<'a, Result<String, RpcError>> {
        let told = |error| refusals::told(&**self.clock(), error);
        async move { self.broker_metrics(caller).await.map_err(told) }.boxed()
    }
}

/// The answer to a scrape.
pub(super) async fn answer(scraped: &dyn Scraped, caller: &Context) -> Response {
    shown(scraped.scrape(caller).await, OPEN_METRICS)
}

/// The answer to a scrape of the agent broker.
pub(super) async fn answer_broker(scraped: &dyn Scraped, caller: &Context) -> Response {
    shown(scraped.scrape_broker(caller).await, PLAIN_TEXT)
}

fn shown(text: Result<String, RpcError>, content_type: &'static str) -> Response {
    let text = match text {
        Ok(text) => text,
        Err(error) => return refusal::of_call(&error),
    };
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

impl<C: Send + Sync + 'static> Door<C> {
    /// Answers `GET /metrics` on the listener of calls.
    pub(super) async fn metrics(self: Arc<Self>, request: Request<Body>) -> Response {
        let Some(scraped) = &self.metrics else {
            return refusal::not_found(PATH);
        };
        let (head, _) = request.into_parts();
        let caller = match self.admitted(&head).await {
            Ok(caller) => caller,
            Err(refusal) => return self.counted(*refusal),
        };
        let (correlation, _) = self.correlation(&head.headers);
        answer(&**scraped, &context(&head, caller, correlation)).await
    }
}

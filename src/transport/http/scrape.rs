//! The figures of the server, for monitoring.

use super::door::Door;
use super::refusal;
use crate::application::api::Error;
use crate::application::{Context, Service};
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// The path.
pub(super) const PATH: &str = "/metrics";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Where the figures come from.
pub trait Scraped: Send + Sync + 'static {
    /// All figures as OpenMetrics text, for a caller who may see them.
    fn scrape<'a>(&'a self, caller: &'a Context) -> BoxFuture<'a, Result<String, Error>>;
}

impl Scraped for Service {
    fn scrape<'a>(&'a self, caller: &'a Context) -> BoxFuture<'a, Result<String, Error>> {
        self.metrics(caller).boxed()
    }
}

/// The answer to a scrape.
pub(super) async fn answer(scraped: &dyn Scraped, caller: &Context) -> Response {
    let text = match scraped.scrape(caller).await {
        Ok(text) => text,
        Err(error) => {
            tracing::warn!(%error, "the metrics cannot be read");
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return response;
        }
    };
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

impl<C: Send + Sync + 'static> Door<C> {
    /// Answers `GET /metrics` on the listener of calls.
    pub(super) async fn metrics(self: Arc<Self>, headers: HeaderMap) -> Response {
        let Some(scraped) = &self.metrics else {
            return refusal::not_found(PATH);
        };
        let (correlation, _) = self.correlation(&headers);
        answer(&**scraped, &super::door::caller(&headers, correlation)).await
    }
}

//! Calls over HTTP.

use super::api::{Api, ApiError, keyed, request, result};
use super::target::Target;
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::Value;
use std::error::Error;
use std::iter::successors;
use std::time::Duration;

/// How long to wait for an answer: longer than any server takes to refuse a call as too slow.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// Tries of a call that could not be sent, because its connection had ended already. Over TLS 1.3 a server that wants a
/// certificate says so behind the handshake, and what it said is lost if the call is not under way then.
const TRIES_MAX: u32 = 3;

/// A server at a URL.
#[derive(Debug, Clone)]
pub struct HttpApi {
    client: reqwest::Client,
    target: Target,
}

impl HttpApi {
    /// A server at `url`, to which no credentials are shown; nothing is sent yet.
    ///
    /// # Errors
    /// [`ApiError::Connection`]: the URL makes no sense, or is neither `http://` nor `https://`.
    pub fn new(url: &str) -> Result<Self, ApiError> {
        Self::of(Target::plain(url)?)
    }

    /// This server; nothing is sent yet.
    ///
    /// # Errors
    /// [`ApiError::Connection`]: there is no TLS on this machine.
    pub(super) fn of(target: Target) -> Result<Self, ApiError> {
        let client = target.client(Some(ANSWER_TIMEOUT))?;
        Ok(Self { client, target })
    }
}

#[async_trait]
impl Api for HttpApi {
    async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
        self.answer(request(method, params)).await
    }

    async fn call_keyed(&self, method: &str, params: Value, key: &str) -> Result<Value, ApiError> {
        self.answer(keyed(method, params, key)).await
    }

    fn options(&self) -> &str {
        self.target.options()
    }
}

impl HttpApi {
    async fn answer(&self, request: Vec<u8>) -> Result<Value, ApiError> {
        let sent = self.sent(request.into()).await;
        let broken = |error: reqwest::Error| ApiError::Connection(self.target.broken(&error));
        let response = sent.map_err(broken)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(broken)?;
        result(&body).map_err(|error| self.target.no_result(status, &headers, error))
    }

    async fn sent(&self, request: Bytes) -> Result<reqwest::Response, reqwest::Error> {
        let mut tries = 1;
        loop {
            let sent = self
                .client
                .post(self.target.url().clone())
                .header("content-type", "application/json")
                .body(request.clone())
                .send()
                .await;
            match sent {
                Err(error) if tries < TRIES_MAX && is_unsent(&error) => tries += 1,
                sent => return sent,
            }
        }
    }
}

/// Whether nothing of a call was written, because its connection had ended.
fn is_unsent<'a>(error: &'a reqwest::Error) -> bool {
    let next = |error: &&'a (dyn Error + 'static)| (*error).source();
    let causes = successors(Some(error as &'a (dyn Error + 'static)), next);
    let mut causes = causes.filter_map(|cause| cause.downcast_ref::<hyper::Error>());
    causes.any(hyper::Error::is_canceled)
}

/// A URL of a server, as the command line takes it.
pub fn server_url(text: &str) -> Result<String, String> {
    let parsed = reqwest::Url::parse(text).ok();
    let known = |url: &reqwest::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    match parsed.filter(known) {
        Some(_) => Ok(text.to_owned()),
        None => Err("expected http[s]://HOST:PORT, for example http://127.0.0.1:8000".to_owned()),
    }
}

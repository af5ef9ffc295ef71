//! Calls over HTTP.

use super::api::{Api, ApiError, request, result};
use async_trait::async_trait;
use serde_json::Value;
use std::time::Duration;

/// How long to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for an answer: longer than any server takes to refuse a call as too slow.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// A server at a URL.
#[derive(Debug, Clone)]
pub struct HttpApi {
    client: reqwest::Client,
    url: String,
}

impl HttpApi {
    /// A server at `url`; nothing is sent yet.
    ///
    /// # Errors
    /// [`ApiError::Connection`]: the URL makes no sense, or is not `http://`.
    pub fn new(url: &str) -> Result<Self, ApiError> {
        let parsed = parse_url(url)?;
        let client = client(Some(ANSWER_TIMEOUT))?;
        Ok(Self {
            client,
            url: parsed.to_string(),
        })
    }
}

#[async_trait]
impl Api for HttpApi {
    async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
        let sent = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .body(request(method, params))
            .send()
            .await;
        let broken = |error: reqwest::Error| {
            ApiError::Connection(format!("cannot reach {}: {}", self.url, reason(&error)))
        };
        let response = sent.map_err(broken)?;
        let status = response.status();
        let body = response.bytes().await.map_err(broken)?;
        match result(&body) {
            Err(ApiError::Protocol(_)) => Err(ApiError::Protocol(format!(
                "{} answered {status}, but not in the protocol of a taskledger server",
                self.url
            ))),
            other => other,
        }
    }
}

/// A URL of a server, as the command line takes it.
pub(super) fn server_url(text: &str) -> Result<String, String> {
    let parsed = parse_url(text).map_err(|error| error.to_string())?;
    if !parsed.has_host() {
        return Err("expected http://HOST:PORT, for example http://127.0.0.1:8000".to_owned());
    }
    Ok(text.to_owned())
}

/// A URL of a server.
pub(super) fn parse_url(url: &str) -> Result<reqwest::Url, ApiError> {
    let parsed = reqwest::Url::parse(url)
        .map_err(|error| ApiError::Connection(format!("`{url}` is no URL: {error}")))?;
    if parsed.scheme() != "http" {
        let text = format!("cannot talk to `{url}`: only `http://` is supported");
        return Err(ApiError::Connection(text));
    }
    Ok(parsed)
}

/// What sends requests; an answer may take so long, or for ever.
pub(super) fn client(timeout: Option<Duration>) -> Result<reqwest::Client, ApiError> {
    let mut client = crate::tls::client()
        .connect_timeout(CONNECT_TIMEOUT)
        .no_proxy()
        .tcp_nodelay(true);
    if let Some(timeout) = timeout {
        client = client.timeout(timeout);
    }
    client
        .build()
        .map_err(|error| ApiError::Connection(reason(&error)))
}

/// The innermost cause, which is the one that says something.
pub(super) fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

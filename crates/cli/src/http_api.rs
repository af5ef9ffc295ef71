//! Calls over HTTP.

mod streamed;

use super::api::run_events::Begun;
use super::api::{self, Api, ApiError, keyed, request, result};
use super::clock;
use super::event_stream::{EventStream, is_event_stream};
use super::methods::is_read;
use super::patience;
use super::target::Target;
use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response};
use serde_json::Value;
use std::error::Error;
use std::iter::successors;
use std::time::Duration;
use streamed::Streamed;

/// How long to wait for an answer: longer than any server takes to refuse a call as too slow.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// Tries of a call that could not be sent, because its connection had ended already. Over TLS 1.3 a server that wants a
/// certificate says so behind the handshake, and what it said is lost if the call is not under way then.
const TRIES_MAX: u32 = 3;

/// A server at a URL.
#[derive(Debug, Clone)]
pub struct HttpApi {
    client: Client,
    target: Target,
    is_patient: bool,
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
        Ok(Self {
            client,
            target,
            is_patient: false,
        })
    }

    /// The same, whose reads wait a few seconds for a server that is too busy.
    pub(super) fn patient(self) -> Self {
        Self {
            is_patient: true,
            ..self
        }
    }

    /// The same for whoever has a pace of their own.
    pub(super) fn impatient(self) -> Self {
        Self {
            is_patient: false,
            ..self
        }
    }
}

#[async_trait]
impl Api for HttpApi {
    async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
        let body = Bytes::from(request(method, params));
        match self.is_patient && is_read(method) {
            true => patience::read(method, || self.answer(body.clone())).await,
            false => self.answer(body).await,
        }
    }

    async fn call_keyed(&self, method: &str, params: Value, key: &str) -> Result<Value, ApiError> {
        self.answer(keyed(method, params, key).into()).await
    }

    async fn begin(&self, method: &str, params: Value) -> Result<Begun, ApiError> {
        // Answers are waited for, and streams may last for ever.
        let client = self.target.client(None)?;
        let body = api::begin(method, params);
        let sent = tokio::time::timeout(ANSWER_TIMEOUT, self.sent(&client, body.into())).await;
        let late = |_| ApiError::Connection(self.target.unreachable("no answer in time"));
        let response = sent.map_err(late)?.map_err(|error| self.broken(&error))?;
        if response.status().is_success() && is_event_stream(response.headers()) {
            let stream = EventStream::begun(self.target.clone(), client, response, clock());
            return Streamed::begun(stream).await;
        }
        let read = tokio::time::timeout(ANSWER_TIMEOUT, self.read(response)).await;
        Ok(Begun {
            answer: read.map_err(late)??,
            events: None,
        })
    }

    fn options(&self) -> &str {
        self.target.options()
    }
}

impl HttpApi {
    async fn answer(&self, request: Bytes) -> Result<Value, ApiError> {
        let sent = self.sent(&self.client, request).await;
        self.read(sent.map_err(|error| self.broken(&error))?).await
    }

    async fn read(&self, response: Response) -> Result<Value, ApiError> {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await;
        result(&body.map_err(|error| self.broken(&error))?)
            .map_err(|error| self.target.no_result(status, &headers, error))
    }

    fn broken(&self, error: &reqwest::Error) -> ApiError {
        let advice = self.target.advice(error);
        ApiError::Connection(format!("{}{advice}", self.target.broken(error)))
    }

    async fn sent(&self, client: &Client, request: Bytes) -> Result<Response, reqwest::Error> {
        let mut tries = 1;
        loop {
            let sent = client
                .post(self.target.url().clone())
                .header(CONTENT_TYPE, "application/json")
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

//! Calls the agent that the user of this program has named: any address is allowed, and no redirect is followed.

use crate::CliError;
use crate::target::Target;
use async_trait::async_trait;
use bytes::Bytes;
use taskledger_a2a_client::Http;
use taskledger_a2a_client::http::{Body, Request, Response, Unanswered};
use tokio::time::timeout;

/// Requests to one agent.
pub(super) struct Direct {
    client: reqwest::Client,
    target: Target,
}

impl Direct {
    /// To this agent; nothing is sent yet.
    pub(super) fn to(target: Target) -> Result<Self, CliError> {
        let client = target.client(None)?;
        Ok(Self { client, target })
    }

    fn unanswered(&self, error: &reqwest::Error) -> Unanswered {
        let text = self.target.broken(error);
        match error.is_connect() || error.is_builder() {
            true => Unanswered::NotSent(text),
            false => Unanswered::Broken(text),
        }
    }
}

#[async_trait]
impl Http for Direct {
    async fn send(&self, request: Request) -> Result<Response, Unanswered> {
        let sending = self
            .client
            .request(request.method, request.url)
            .headers(request.headers)
            .body(request.body)
            .send();
        let response = timeout(request.within, sending).await.map_err(|_| {
            let text = format!("no answer within {} s", request.within.as_secs());
            Unanswered::Broken(text)
        })?;
        let response = response.map_err(|error| self.unanswered(&error))?;
        Ok(Response {
            status: response.status(),
            headers: response.headers().clone(),
            body: Box::new(Pieces(response)),
        })
    }
}

struct Pieces(reqwest::Response);

#[async_trait]
impl Body for Pieces {
    async fn chunk(&mut self) -> Result<Option<Bytes>, Unanswered> {
        let came = self.0.chunk().await;
        came.map_err(|error| Unanswered::Broken(format!("the answer broke off: {error}")))
    }
}

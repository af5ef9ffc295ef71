//! Implements the HTTP port of the Agent2Agent client with the server's client for outgoing requests: the guard checks
//! each URL, those of callers and those of cards.

use crate::egress::{Class, Egress, Opened, Outgoing, Target};
use async_trait::async_trait;
use axum::body::Bytes;
use std::sync::Arc;
use taskledger_a2a_client::http::{Body, Request, Response, Unanswered};
use taskledger_a2a_client::{EVENT_BYTES_MAX, Http};

pub(super) struct Guarded {
    pub(super) egress: Arc<Egress>,
}

#[async_trait]
impl Http for Guarded {
    async fn send(&self, request: Request) -> Result<Response, Unanswered> {
        let target = Target::parse(&request.url, self.egress.policy());
        let target = target.map_err(|error| Unanswered::Refused(error.to_string()))?;
        let opened = self.egress.open(Outgoing {
            target,
            method: request.method,
            headers: request.headers,
            body: request.body,
            timeout: request.within,
            // The body is read piece by piece, by whoever knows what it may have.
            response_bytes_max: EVENT_BYTES_MAX,
        });
        let opened = opened
            .await
            .map_err(|error| unanswered(error.class, error.to_string()))?;
        Ok(Response {
            status: opened.status(),
            headers: opened.headers().clone(),
            body: Box::new(Pieces(opened)),
        })
    }
}

fn unanswered(class: Class, text: String) -> Unanswered {
    match class {
        Class::BlockedAddress => Unanswered::Refused(text),
        Class::Dns | Class::Connect | Class::Tls => Unanswered::NotSent(text),
        Class::Timeout | Class::Redirect | Class::BodyTooLarge | Class::Protocol | Class::Reset => {
            Unanswered::Broken(text)
        }
    }
}

struct Pieces(Opened);

#[async_trait]
impl Body for Pieces {
    async fn chunk(&mut self) -> Result<Option<Bytes>, Unanswered> {
        let came = self.0.chunk().await;
        came.map_err(|(class, detail)| Unanswered::Broken(format!("{detail} ({class})")))
    }
}

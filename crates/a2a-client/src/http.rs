//! The port for requests. Whoever implements it decides which addresses may be called.

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use std::time::Duration;

/// An HTTP request to an agent.
#[derive(Debug, Clone)]
pub struct Request {
    /// Where to: as a card or a caller has named it.
    pub url: String,
    /// The HTTP method.
    pub method: Method,
    /// Headers; `Host` and `Content-Length` are the implementation's.
    pub headers: HeaderMap,
    /// The body; empty for requests without one.
    pub body: Bytes,
    /// How long the head of the answer may take.
    pub within: Duration,
}

/// The head of an answer, and where its body comes from.
pub struct Response {
    /// The status, whichever it is. Redirects are not followed.
    pub status: StatusCode,
    /// The headers as they were received.
    pub headers: HeaderMap,
    /// The body, which is read piece by piece.
    pub body: Box<dyn Body>,
}

/// A body that is read piece by piece; dropping it closes the connection.
#[async_trait]
pub trait Body: Send {
    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// [`Unanswered`]: it broke off.
    async fn chunk(&mut self) -> Result<Option<Bytes>, Unanswered>;
}

/// There is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// The address may not be called, or is none.
    #[error("{0}")]
    Refused(String),
    /// No connection was made: nothing has arrived there.
    #[error("{0}")]
    NotSent(String),
    /// The request may have arrived.
    #[error("{0}")]
    Broken(String),
}

/// Sends requests.
#[async_trait]
pub trait Http: Send + Sync {
    /// Sends a request once and waits for the head of its answer.
    ///
    /// # Errors
    /// [`Unanswered`].
    async fn send(&self, request: Request) -> Result<Response, Unanswered>;
}

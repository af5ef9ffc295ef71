//! Routes requests to the node that owns their flow: the typed request is sent there, and its typed reply comes back,
//! whatever door the call came in by.
//!
//! A node that gets such a request and does not own the flow says so and does nothing; it never sends it
//! on. The sender then looks anew, with pauses, until the flow has an owner: longer than a node that died
//! keeps its leases. A change that may have taken effect is not sent twice unless it carries an
//! idempotency key. How bytes get to another node is the business of whoever implements [`Forward`].

mod wire;

pub(super) use wire::{Arrived, arrived, written_outcome};
pub use wire::{PATH, WIRE_VERSION};

use super::api::{Reply, Request};
use super::context::Context;
use super::error::{Error, Failure};
use super::ownership::Node;
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a request looks for the owner of its flow: a node that died keeps its leases for 5 s, its
/// successors look for them each second.
pub const SEARCH_MAX: Duration = Duration::from_secs(10);
/// How long an answer is waited for when the caller sets no bound.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// The first pause before an owner is looked for again; each is twice the one before.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// No pause is longer.
const PAUSE_MAX: Duration = Duration::from_millis(250);
/// What a caller is told to wait when no owner was found, in milliseconds.
const RETRY_AFTER_MS: u64 = 1000;

/// The outcome of sending a request to another node.
#[derive(Debug)]
pub enum Sent {
    /// Its answer, as `wire` writes it.
    Answered(Vec<u8>),
    /// It was not carried out and will not be.
    NotTaken,
    /// The connection broke, or the node has died: nobody knows.
    Broken,
}

/// The way to other nodes.
pub trait Forward: Send + Sync + fmt::Debug + 'static {
    /// Sends a request to a node, and waits for its answer no longer than this.
    fn send<'a>(&'a self, to: &'a Node, body: Vec<u8>, wait: Duration) -> BoxFuture<'a, Sent>;

    /// Whether this is the `Authorization` of a node of the same cluster. Takes the same time for
    /// all that are not.
    fn admits(&self, authorization: &[u8]) -> bool;
}

/// Carries out a request on whichever node it belongs to; `here` carries it out on this one.
///
/// # Errors
/// [`Error`]; never `Elsewhere`.
pub(super) async fn anywhere<F>(
    forward: &dyn Forward,
    context: &Context,
    request: Request,
    here: impl Fn(Request) -> F,
) -> Result<Reply, Error>
where
    F: Future<Output = Result<Reply, Error>>,
{
    let mut call = ForwardedCall::new(forward, context, request);
    loop {
        // A copy, because the owner may turn out to be another node. Payloads are shared, not copied.
        let outcome = here((*call.request).clone()).await;
        let Err(Error::Elsewhere(owner)) = outcome else {
            return call.judged(outcome);
        };
        match call.go_on(owner.as_deref()).await {
            Next::Answer(outcome) => return outcome,
            Next::LookAgain => {}
        }
    }
}

/// Has one other node carry out a request, whoever owns what it concerns.
///
/// # Errors
/// [`Error`]; `Elsewhere` when that node did nothing.
pub(super) async fn at(
    forward: &dyn Forward,
    context: &Context,
    node: &Node,
    request: &Request,
    wait: Duration,
) -> Result<Reply, Error> {
    let body = wire::covered(context, wait, &wire::written(request));
    match forward.send(node, body, wait).await {
        Sent::Answered(answer) => wire::outcome(answer).await,
        Sent::NotTaken => Err(Error::Elsewhere(None)),
        Sent::Broken => Err(unanswered()),
    }
}

/// A request that may have to be sent to another node.
struct ForwardedCall<'a> {
    forward: &'a dyn Forward,
    context: &'a Context,
    request: Arc<Request>,
    /// Sending it again when it may have taken effect does harm.
    once: bool,
    /// It was sent, and nobody knows what became of it there.
    in_doubt: bool,
    /// The request as it is sent, but for its cover; written when it is first needed.
    written: Option<Arc<[u8]>>,
    give_up: Instant,
    pause: Duration,
}

/// What to do next.
enum Next {
    /// This is the answer.
    Answer(Result<Reply, Error>),
    /// The flow may be here now.
    LookAgain,
}

impl<'a> ForwardedCall<'a> {
    fn new(forward: &'a dyn Forward, context: &'a Context, request: Request) -> Self {
        Self {
            forward,
            context,
            once: request.changes() && context.idempotency.is_none(),
            request: Arc::new(request),
            in_doubt: false,
            written: None,
            give_up: Instant::now() + SEARCH_MAX,
            pause: PAUSE_FIRST,
        }
    }

    /// Takes the request to who is said to own its flow.
    async fn go_on(&mut self, owner: Option<&Node>) -> Next {
        if let Some(node) = owner {
            let wait = self.context.deadline.map_or(ANSWER_WAIT, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            let body = match self.written().await {
                Ok(written) => wire::covered(self.context, wait, &written),
                Err(error) => return Next::Answer(Err(error)),
            };
            match self.forward.send(node, body, wait).await {
                Sent::Answered(answer) => {
                    return Next::Answer(self.judged(wire::outcome(answer).await));
                }
                Sent::NotTaken => {}
                Sent::Broken if self.once => return Next::Answer(Err(unanswered())),
                Sent::Broken => self.in_doubt = self.request.changes(),
            }
        }
        let resume = Instant::now() + self.pause;
        if resume >= self.give_up || self.context.deadline.is_some_and(|at| resume >= at) {
            let reason = "the flow has no server at the moment; nothing was changed";
            return Next::Answer(self.judged(Err(Error::Busy {
                reason: reason.to_owned(),
                retry_after_ms: RETRY_AFTER_MS,
            })));
        }
        tokio::time::sleep_until(resume).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Next::LookAgain
    }

    /// What the caller is told. That nothing was done holds for the last try only: it is not said of a
    /// request that an earlier one may have carried out.
    fn judged(&self, outcome: Result<Reply, Error>) -> Result<Reply, Error> {
        match outcome {
            Err(
                Error::Busy { .. }
                | Error::RateLimited { .. }
                | Error::QuotaExceeded { .. }
                | Error::Elsewhere(_)
                | Error::OutcomeUnknown
                | Error::Unanswered { .. }
                | Error::OutOfTime { .. }
                | Error::Outdated(_)
                | Error::Failed(_),
            ) if self.in_doubt => Err(unanswered()),
            outcome => outcome,
        }
    }

    /// The request without its cover. Written on a thread that may be kept busy, because nobody knows
    /// its size before.
    async fn written(&mut self) -> Result<Arc<[u8]>, Error> {
        if let Some(written) = &self.written {
            return Ok(written.clone());
        }
        let request = self.request.clone();
        let written = tokio::task::spawn_blocking(move || wire::written(&request)).await;
        let written = written.map_err(|_| Error::from(Failure::ShuttingDown))?;
        Ok(self.written.insert(written).clone())
    }
}

const fn unanswered() -> Error {
    Error::Unanswered {
        retry_after_ms: RETRY_AFTER_MS,
    }
}

#[cfg(test)]
mod tests;

//! The state that all connections share, and the processing of one JSON-RPC body.

use super::a2a::{Received, names_version, reshaped};
use super::agent_card::AgentCard;
use super::body;
use super::call_context::{REQUEST_ID, RequestId, context, holder};
use super::cards::Cards;
use super::grpc::Grpc;
use super::health::Probe;
use super::hosts::Hosts;
use super::inside::{Inside, Scraped};
use super::json::{json, parse};
use super::options::Options;
use super::pacing::Pace;
use super::peers::Peers;
use super::published::Published;
use super::stream_place::{Opens, place};
use super::{early_turn, refusal, sending};
use crate::application::Service;
use crate::application::api::{Authenticate, Cut};
use crate::clock::SharedClock;
use crate::runtime::unblocking;
use crate::transport::a2a::{A2a, jsonrpc as a2a_rpc};
use crate::transport::budget::{Budget, Share};
use crate::transport::jsonrpc::working;
use crate::transport::jsonrpc::{Body as Answer, Dispatcher, answer_body};
use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderMap, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use futures_util::future::{BoxFuture, ready};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Characters of an `x-request-id` that is taken over.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// Bytes of bodies in hand at once of requests whose credentials do not hold.
const STRANGERS_BYTES_MAX: usize = 1024 * 1024;

/// Times by which a call of another node may be larger than a body: it is written anew, and numbers
/// and texts have several forms.
const FORWARDED_BODY_TIMES: usize = 2;

/// Shared by all connections.
pub(super) struct Door<C> {
    pub(super) dispatcher: Arc<Dispatcher<C>>,
    pub(super) clock: SharedClock,
    pub(super) probe: Probe,
    /// Where the metrics come from, if they are served here.
    pub(super) metrics: Option<Arc<dyn Scraped>>,
    /// Who takes calls of other nodes, if somebody does.
    pub(super) nodes: Option<Arc<dyn Peers>>,
    /// Who tells whose credentials they are; `None` while authentication is off.
    pub(super) authenticate: Option<Arc<dyn Authenticate>>,
    /// When refusals of credentials leave.
    pub(super) pace: Pace,
    /// Who tells when calls may be read.
    pub(super) service: Option<Arc<Service>>,
    /// Agent2Agent, if it is served.
    pub(super) a2a: Option<Arc<A2a>>,
    /// Its card.
    pub(super) cards: Option<Cards>,
    /// Services of gRPC, if there are any.
    pub(super) grpc: Option<Grpc>,
    pub(super) agent_card: Bytes,
    pub(super) openrpc: Published,
    /// Connections that are open.
    pub(super) connections: TaskTracker,
    /// Room for requests.
    pub(super) requests: Arc<Semaphore>,
    /// Room for calls of other nodes: of its own, so that nodes which are full of calls for each
    /// other do not stand still.
    pub(super) peers: Arc<Semaphore>,
    /// Room for streams, which do not count as requests.
    pub(super) streams: Arc<Semaphore>,
    /// The host names that are accepted, and the origins of pages.
    pub(super) hosts: Arc<Hosts>,
    pub(super) body_bytes_max: usize,
    /// Bodies of requests.
    pub(super) in_hand: Budget,
    /// Bodies of requests whose credentials do not hold, which are read for the ids that are to be answered.
    pub(super) in_hand_of_strangers: Budget,
    /// Bodies of calls of other nodes: for the reason for which these have room of their own.
    pub(super) in_hand_of_peers: Budget,
    /// Answers that are in memory until their clients have taken them, over all connections.
    pub(super) answers: Budget,
    pub(super) request_timeout: Duration,
    /// Cancelled when the server stops accepting.
    pub(super) draining: CancellationToken,
    /// Cancelled when the grace is over.
    pub(super) cut: CancellationToken,
    /// Calls that go on without their connection.
    pub(super) detached: TaskTracker,
}

impl<C: Send + Sync + 'static> Door<C> {
    pub(super) fn new(
        options: &Options,
        local_addr: SocketAddr,
        dispatcher: Arc<Dispatcher<C>>,
        inside: Inside,
        clock: SharedClock,
    ) -> Self {
        let url = options
            .public_url
            .clone()
            .unwrap_or_else(|| options.url(local_addr));
        let discovery = dispatcher.discovery(Some(&url));
        let openrpc = Published::new(discovery.text.get(), &discovery.etag);
        let card = AgentCard::new(url, dispatcher.methods(), dispatcher.streams().is_some());
        let (connections, requests) = (
            TaskTracker::new(),
            Arc::new(Semaphore::new(options.requests_max)),
        );
        let detached = TaskTracker::new();
        let authenticates = inside.authenticate.is_some();
        let figures = dispatcher.figures();
        let service = inside.broker.clone();
        let grpc = inside.broker.map(|service| {
            let a2a = A2a::new(
                service.clone(),
                clock.clone(),
                options.a2a.clone(),
                (&card.url, authenticates),
                detached.clone(),
            );
            let (a2a, doors) = (Arc::new(a2a), figures.clone());
            let grpc = Grpc::new(service, clock.clone(), doors, &options.broker, a2a.clone());
            (grpc, a2a)
        });
        let (grpc, a2a) = grpc.unzip();
        let of_agent = a2a.clone();
        let cards = of_agent.map(|a2a: Arc<A2a>| Cards::new(a2a, clock.clone()));
        figures.listens(connections.clone(), requests.clone());
        Self {
            agent_card: Bytes::from(card.to_json()),
            openrpc,
            dispatcher,
            clock,
            probe: Probe::new(inside.readiness),
            metrics: inside.metrics.filter(|_| options.metrics),
            nodes: inside.peers,
            a2a,
            cards,
            grpc,
            connections,
            requests,
            authenticate: inside.authenticate,
            pace: Pace::new(),
            service,
            peers: Arc::new(Semaphore::new(options.requests_max)),
            streams: Arc::new(Semaphore::new(options.streams_max)),
            hosts: Arc::new(Hosts::new(options, local_addr)),
            body_bytes_max: options.body_bytes_max,
            in_hand: Budget::of(options.receiving_bytes_max),
            in_hand_of_strangers: Budget::of(STRANGERS_BYTES_MAX),
            in_hand_of_peers: Budget::of(
                options
                    .receiving_bytes_max
                    .saturating_mul(FORWARDED_BODY_TIMES),
            ),
            answers: Budget::of(options.answers_bytes_max),
            request_timeout: options.request_timeout,
            draining: CancellationToken::new(),
            cut: CancellationToken::new(),
            detached,
        }
    }

    /// Answers one `POST` of a JSON-RPC body.
    pub(super) async fn call(self: Arc<Self>, request: Request<Body>) -> Response {
        let deadline = Instant::now() + self.request_timeout;
        let (head, body) = request.into_parts();
        let (correlation, echo) = self.correlation(&head.headers);
        let mut response = match self.admit(head, body, deadline, correlation).await {
            Ok(Admitted::Carried {
                answered: (answer, kept),
                stream,
            }) => self.answered(answer, kept, stream),
            Ok(Admitted::Other(response)) => *response,
            Err(response) => self.counted(*response),
        };
        response.headers_mut().insert(REQUEST_ID, echo);
        response
    }

    /// The answer's body, or the refusal of the whole HTTP request.
    async fn admit(
        self: &Arc<Self>,
        head: Parts,
        body: Body,
        deadline: Instant,
        correlation: RequestId,
    ) -> Result<Admitted, Box<Response>> {
        let headers = &head.headers;
        if let Err(refused) = refusal::unless_json(headers) {
            return Err(match &self.a2a {
                Some(a2a) if names_version(headers) => {
                    Box::new(reshaped(*refused, a2a.edition(), true))
                }
                Some(_) | None => refused,
            });
        }
        // Before anything of the body is read.
        let caller = match self.caller(&head).await {
            Ok(caller) => caller,
            Err(denied) => {
                return Err(Box::new(self.stranger(denied, &head, body, deadline).await));
            }
        };
        let Ok(permit) = Arc::clone(&self.requests).try_acquire_owned() else {
            return Err(Box::new(refusal::too_busy(
                "the server has too many requests",
            )));
        };
        let holder = holder(&head, &caller);
        let share = self.in_hand.share(holder.clone());
        let (bytes, share) =
            body::receive(share, headers, body, self.body_bytes_max, deadline).await?;
        let body_bytes = bytes.len();
        let turn = self.turn_to_read(&caller, body_bytes, deadline).await?;
        let envelope = parse(bytes).await;
        if let Some(a2a) = &self.a2a
            && a2a_rpc::is_meant(&envelope, names_version(headers), a2a.serves_v03())
        {
            let received = Received {
                caller,
                permit,
                share,
                turn,
            };
            // Boxed: calls of this server's own would hold room for it.
            let answer = self.a2a_call(a2a, &head, envelope, received, correlation);
            let answer = unblocking(body_bytes, Box::pin(answer)).await;
            return Ok(Admitted::Other(Box::new(answer)));
        }
        let deadline = deadline + working::wait(&envelope);
        let mut context = context(&head, caller, correlation).until(Some(deadline));
        context.early_turn = early_turn::kept(turn, &envelope);
        let stream = if self.dispatcher.streams_asked_for(&envelope) {
            Some((place(&self.streams)?, self.session(&head)))
        } else {
            None
        };
        let finishes_alone = self.dispatcher.finishes_alone(&envelope);
        let waiting = self.waiting(&head, &envelope);
        // Its headers are in the buffer of the connection, which holds nothing else while the call waits.
        drop(head);
        let door = Arc::clone(self);
        // Boxed at once: whoever waits for it in one of three ways would hold room for it three times.
        let work: BoxFuture<'static, Answered> = Box::pin(async move {
            let mut room = door.answers.share(holder);
            let answer = door.dispatcher.answer(envelope, context, &mut room);
            let answer = unblocking(body_bytes, answer).await;
            drop(share);
            (answer, Kept { permit, room })
        });
        if !finishes_alone {
            let answered = match waiting {
                None => work.await,
                // What it was given and not told of goes back.
                Some(waiting) => tokio::select! {
                    biased;
                    answered = work => answered,
                    refused = waiting.refused() => return Err(Box::new(refused)),
                },
            };
            return Ok(Admitted::Carried { answered, stream });
        }
        let detaching = Detaching {
            work: Some(work),
            tracker: self.detached.clone(),
            cut: self.cut.clone(),
        };
        Ok(Admitted::Carried {
            answered: detaching.await,
            stream,
        })
    }

    /// 200 with a body, 204 without one. A long answer keeps its place until it is sent; a stream has
    /// one of another kind.
    fn answered(&self, answer: Option<Answer>, kept: Kept, stream: Option<Opens>) -> Response {
        match (answer, stream) {
            (Some(Answer::Stream { id, streamed }), Some(stream)) => {
                self.streamed(&id, *streamed, stream)
            }
            (answer, _) => answered(answer, kept),
        }
    }

    /// Answers one call of another node. 404: there are no other nodes; 421: the flow is not here,
    /// nothing was done.
    pub(super) async fn forwarded(self: Arc<Self>, request: Request<Body>) -> Response {
        let (head, body) = request.into_parts();
        let shown = head.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let shown = shown.unwrap_or_default();
        let nodes = self.nodes.clone();
        let Some((nodes, admitted)) =
            nodes.and_then(|nodes| nodes.admits(shown).map(|admitted| (nodes, admitted)))
        else {
            return refusal::not_found(head.uri.path());
        };
        if !admitted {
            return refusal::not_a_node();
        }
        let Ok(permit) = Arc::clone(&self.peers).try_acquire_owned() else {
            return self.counted(refusal::too_busy(
                "the server has too many calls of other nodes",
            ));
        };
        let deadline = Instant::now() + self.request_timeout;
        let bytes_max = self.body_bytes_max.saturating_mul(FORWARDED_BODY_TIMES);
        let room = self.in_hand_of_peers.share_of_all();
        let received = body::receive(room, &head.headers, body, bytes_max, deadline).await;
        let (bytes, share) = match received {
            Ok(received) => received,
            Err(refusal) => return self.counted(*refusal),
        };
        let work = async move {
            let answer = nodes.take(bytes, deadline).await;
            drop(share);
            let room = Budget::unlimited().share_of_all();
            (answer.map(Answer::Whole), Kept { permit, room })
        };
        let (answer, kept) = Detaching {
            work: Some(Box::pin(work)),
            tracker: self.detached.clone(),
            cut: self.cut.clone(),
        }
        .await;
        match answer {
            Some(answer) => answered(Some(answer), kept),
            None => refusal::not_here(),
        }
    }

    /// A refusal of a whole request, counted.
    pub(super) fn counted(&self, refusal: Response) -> Response {
        let status = refusal.status().as_u16();
        self.dispatcher.figures().refused_with(status);
        refusal
    }

    /// The caller's own request id if it is harmless, beside one of the server, else a fresh one.
    pub(super) fn correlation(&self, headers: &HeaderMap) -> (RequestId, HeaderValue) {
        let given = headers.get(REQUEST_ID).filter(|value| {
            let bytes = value.as_bytes();
            (1..=REQUEST_ID_BYTES_MAX).contains(&bytes.len())
                && bytes
                    .iter()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_.:/+=@".contains(b))
        });
        match given.and_then(|value| Some((value.to_str().ok()?, value))) {
            Some((text, value)) => (RequestId::chosen(text, self.fresh_id().0), value.clone()),
            None => {
                let (id, value) = self.fresh_id();
                (RequestId::made(id), value)
            }
        }
    }

    fn fresh_id(&self) -> (Arc<str>, HeaderValue) {
        let id = self.clock.uuid();
        let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
        let text = id.as_hyphenated().encode_lower(&mut buffer);
        let value = HeaderValue::from_str(text).expect("a UUID is a valid header value");
        (Arc::from(&*text), value)
    }
}

/// A request that was carried out.
#[allow(clippy::large_enum_variant)] // one of them, on its way out
enum Admitted {
    /// By a method of this server.
    Carried {
        answered: Answered,
        /// For the stream, if it asked for one.
        stream: Option<Opens>,
    },
    /// By another protocol, whose answer it is.
    Other(Box<Response>),
}

/// What a request holds until its answer was sent.
struct Kept {
    /// Its place among the requests.
    permit: OwnedSemaphorePermit,
    /// Its part of the bytes of answers.
    room: Share,
}

/// An answer, if there is one, and what its request holds.
type Answered = (Option<Answer>, Kept);

/// The same without a stream.
fn answered(answer: Option<Answer>, kept: Kept) -> Response {
    match answer {
        Some(Answer::Whole(bytes)) if kept.room.is_empty() => json(StatusCode::OK, bytes),
        Some(Answer::Whole(bytes)) => {
            let length = HeaderValue::from(bytes.len());
            let Kept { permit, room } = kept;
            let mut response = json(StatusCode::OK, sending::body(bytes, room, permit));
            response.headers_mut().insert(CONTENT_LENGTH, length);
            response
        }
        Some(Answer::Limited(bytes, wait_ms)) => {
            let mut response = answered(Some(Answer::Whole(bytes)), kept);
            refusal::say_when(&mut response, wait_ms);
            response
        }
        Some(Answer::Stream { id, streamed }) => {
            json(StatusCode::OK, answer_body(&id, &streamed.result))
        }
        Some(Answer::Long { head, result, tail }) => {
            let once = |bytes| stream::once(ready(Ok::<_, Cut>(Bytes::from(bytes))));
            let pieces = once(head)
                .chain(result.map_ok(Bytes::from))
                .chain(once(tail))
                .inspect(move |_| _ = &kept.permit);
            json(StatusCode::OK, Body::from_stream(pieces))
        }
        None => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
    }
}

/// Work that changes state and therefore goes on, tracked, when the connection that waits for it
/// goes away: a caller may send a notification and leave. Costs nothing unless that happens.
struct Detaching {
    work: Option<BoxFuture<'static, Answered>>,
    tracker: TaskTracker,
    cut: CancellationToken,
}

impl Future for Detaching {
    type Output = Answered;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let work = self.work.as_mut().expect("not polled after it was ready");
        let answer = std::task::ready!(work.as_mut().poll(cx));
        self.work = None;
        Poll::Ready(answer)
    }
}

impl Drop for Detaching {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        // Outside a runtime nothing can go on; after the cut nothing may.
        if self.cut.is_cancelled() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let cut = self.cut.clone();
            self.tracker.spawn_on(
                async move {
                    tokio::select! {
                        biased;
                        () = cut.cancelled() => {}
                        _ = work => {}
                    }
                },
                &runtime,
            );
        }
    }
}

//! Agent2Agent over HTTP: authentication, limits on bodies and time, and the sending of streams. What the calls do is
//! the door's, `transport/a2a`.

mod counting;
mod received;
mod reshaped;
mod written;

pub(super) use received::Received;
pub(super) use reshaped::{names_version, reshaped, reshaped_under};

use super::call_context::{REQUEST_ID, RequestId, context, holder};
use super::connection::KeptAlive;
use super::door::Door;
use super::json::{parse, unless_too_many_values};
use super::{body, refusal, streams};
use crate::application::api::Caller;
use crate::runtime::unblocking;
use crate::transport::a2a::v03::rest as v03_rest;
use crate::transport::a2a::{A2a, Heard, Outcome, artifacts, jsonrpc, keyed, out_of_time, rest};
use crate::transport::figures::{Binding, Carrier};
use crate::transport::jsonrpc::envelope::Envelope;
use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use counting::Counting;
use std::convert::Infallible;
use std::sync::Arc;
use taskledger_a2a::operation::Call;
use taskledger_a2a::{Error, ErrorKind, Operation, headers, v03};
use tokio::time::{Instant, timeout_at};
use tokio_stream::StreamExt;
use written::{Written, failed_v03, rest_answer, rpc_error};

/// Begins all paths of the HTTP+JSON binding.
pub(super) const REST: &str = "/a2a/rest";
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// For proxies of the nginx family: nothing is to be gathered.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// What a caller is told to wait when there is no room, in milliseconds.
const RETRY_AFTER_MS: u64 = 1000;

/// What is held until the last byte of a stream was sent.
type Kept = Box<dyn std::any::Any + Send>;

impl<C: Send + Sync + 'static> Door<C> {
    /// Answers `POST /a2a`.
    pub(super) async fn a2a_rpc(self: Arc<Self>, request: Request<Body>) -> Response {
        let deadline = Instant::now() + self.request_timeout;
        let (head, body) = request.into_parts();
        let Some(a2a) = self.a2a.clone() else {
            return refusal::not_found(head.uri.path());
        };
        let (correlation, echo) = self.correlation(&head.headers);
        let caller = match refusal::unless_json(&head.headers) {
            Ok(()) => Ok(self.caller(&head).await),
            Err(refused) => Err(refused),
        };
        let refused =
            |refused: Box<Response>| reshaped(self.counted(*refused), a2a.edition(), true);
        let mut response = match caller {
            Ok(Ok(caller)) => match self.a2a_received(caller, &head, body, deadline).await {
                Ok((received, bytes)) => {
                    let body_bytes = bytes.len();
                    let envelope = parse(bytes).await;
                    let answer = self.a2a_call(&a2a, &head, envelope, received, correlation);
                    unblocking(body_bytes, answer).await
                }
                Err(it) => refused(it),
            },
            Ok(Err(denied)) => {
                let edition = a2a.edition();
                let answer = self.stranger_of_a2a(denied, &head, body, deadline, edition);
                self.counted(answer.await)
            }
            Err(it) => refused(it),
        };
        response.headers_mut().insert(REQUEST_ID, echo);
        response
    }

    /// Answers a call of a JSON-RPC body that is meant for the protocol.
    pub(super) async fn a2a_call(
        &self,
        a2a: &Arc<A2a>,
        head: &Parts,
        envelope: Envelope,
        received: Received,
        correlation: RequestId,
    ) -> Response {
        let mut counting = self.counting(a2a, Binding::A2aRpc);
        let (id, meant) = match jsonrpc::spoken(envelope, a2a.serves_v03()) {
            jsonrpc::Spoken::Fault(id, error) => {
                counting.failed(&error);
                return rpc_error(id.as_deref(), &error);
            }
            jsonrpc::Spoken::Call { id, meant } => (id, meant),
        };
        let (written, call) = match meant {
            jsonrpc::Meant::V1(operation, members) => {
                counting.is_of(operation.name());
                let served = headers::served(version(head).as_deref());
                let call = served.and_then(|()| Ok((operation, operation.read(members)?)));
                (Written::Rpc(id), call)
            }
            jsonrpc::Meant::V03(asked) => {
                counting.is_of(asked.operation.name());
                let served = v03::served(version(head).as_deref());
                let (written, operation) = (Written::RpcV03(id, asked.answering), asked.operation);
                let call = served.and_then(|()| Ok((operation, asked.read()?)));
                (written, call)
            }
        };
        let answered = match call {
            Ok(call) => {
                self.a2a_answer(a2a, head, call, received, correlation, &written)
                    .await
            }
            Err(error) => Err(error),
        };
        counting.answered(&answered);
        answered.unwrap_or_else(|error| written.failed(&error, a2a.edition()))
    }

    /// Answers a request below `/a2a/rest`.
    pub(super) async fn a2a_rest(self: Arc<Self>, request: Request<Body>) -> Response {
        let deadline = Instant::now() + self.request_timeout;
        let (head, body) = request.into_parts();
        let Some(a2a) = self.a2a.clone() else {
            return refusal::not_found(head.uri.path());
        };
        let (correlation, echo) = self.correlation(&head.headers);
        let received = match self.admitted(&head).await {
            Ok(caller) => self.a2a_received(caller, &head, body, deadline).await,
            Err(refused) => Err(refused),
        };
        let received = received.and_then(|(received, bytes)| {
            unless_too_many_values(&bytes)?;
            Ok((received, bytes))
        });
        let mut response = match received {
            Ok((received, bytes)) => {
                let mut counting = self.counting(&a2a, Binding::A2aRest);
                let counted = (&a2a, &mut counting);
                let body_bytes = bytes.len();
                let answer = self.a2a_resource(counted, &head, bytes, received, correlation);
                let answered = unblocking(body_bytes, answer).await;
                counting.answered(&answered);
                answered.unwrap_or_else(|error| Written::Rest.failed(&error, a2a.edition()))
            }
            Err(refused) => reshaped(self.counted(*refused), a2a.edition(), false),
        };
        response.headers_mut().insert(REQUEST_ID, echo);
        response
    }

    async fn a2a_resource(
        &self,
        (a2a, counting): (&Arc<A2a>, &mut Counting<'_>),
        head: &Parts,
        bytes: Bytes,
        received: Received,
        correlation: RequestId,
    ) -> Result<Response, Error> {
        let path = head.uri.path();
        let (method, path) = (
            head.method.as_str(),
            path.strip_prefix(REST).unwrap_or(path),
        );
        if let Some(task) = artifacts::asked(method, path) {
            counting.is_of(artifacts::CALL);
            let Received {
                caller,
                permit,
                share,
                turn: _,
            } = received;
            let deadline = Instant::now() + self.request_timeout;
            let heard = Heard {
                context: context(head, caller, correlation).until(Some(deadline)),
                nodes: false,
                v03: false,
                ending: self.draining.child_token(),
                last_event: None,
            };
            let asked = timeout_at(deadline, a2a.artifacts(&heard, &task, head.uri.query())).await;
            let page = asked.unwrap_or_else(|_| Err(out_of_time()));
            drop((permit, share));
            return Ok(rest_answer(
                StatusCode::OK,
                page?.to_string(),
                a2a.edition(),
            ));
        }
        let asked_version = version(head);
        let is_v03 = v03::served(asked_version.as_deref()).is_ok();
        if a2a.serves_v03() && is_v03 && v03_rest::is_meant(path) {
            let asked = (a2a, counting);
            let answer = self.a2a_resource_v03(asked, head, path, bytes, received, correlation);
            return Ok(Box::pin(answer).await);
        }
        let asked = rest::asked(method, path)?;
        counting.is_of(asked.operation.name());
        headers::served(asked_version.as_deref())?;
        if !bytes.is_empty() {
            unless_json(&head.headers)?;
        }
        let members = asked.members(head.uri.query(), &bytes)?;
        // An answer may take as long as a run: the body is not held meanwhile.
        drop(bytes);
        let call = asked.operation.read(members)?;
        self.a2a_answer(
            a2a,
            head,
            (asked.operation, call),
            received,
            correlation,
            &Written::Rest,
        )
        .await
    }

    /// Answers a request below the root of version 0.3.
    async fn a2a_resource_v03(
        &self,
        (a2a, counting): (&Arc<A2a>, &mut Counting<'_>),
        head: &Parts,
        path: &str,
        bytes: Bytes,
        received: Received,
        correlation: RequestId,
    ) -> Response {
        let known = match bytes.is_empty() {
            true => Ok(()),
            false => unless_json(&head.headers),
        };
        let query = head.uri.query();
        let asked = known.and_then(|()| v03_rest::asked(head.method.as_str(), path, query, &bytes));
        // An answer may take as long as a run: the body is not held meanwhile.
        drop(bytes);
        let asked = match asked {
            Ok(asked) => asked,
            Err(error) => {
                counting.failed(&error);
                return failed_v03(&error);
            }
        };
        counting.is_of(asked.operation.name());
        let (written, operation) = (Written::RestV03(asked.answering), asked.operation);
        let answered = match (asked.read(), v03_rest::card(a2a, operation)) {
            (Ok(_), Some(card)) => written.answer(&card, a2a.edition()),
            (Ok(call), None) => {
                let call = (operation, call);
                self.a2a_answer(a2a, head, call, received, correlation, &written)
                    .await
            }
            (Err(faults), _) => Err(faults.into()),
        };
        counting.answered(&answered);
        answered.unwrap_or_else(|error| written.failed(&error, a2a.edition()))
    }

    /// The body of a request of this caller.
    async fn a2a_received(
        &self,
        caller: Arc<Caller>,
        head: &Parts,
        body: Body,
        deadline: Instant,
    ) -> Result<(Received, Bytes), Box<Response>> {
        let Ok(permit) = Arc::clone(&self.requests).try_acquire_owned() else {
            return Err(Box::new(refusal::too_busy(
                "the server has too many requests",
            )));
        };
        let bytes_max = self.body_bytes_max;
        let share = self.in_hand.share(holder(head, &caller));
        let (bytes, share) = body::receive(share, &head.headers, body, bytes_max, deadline).await?;
        let turn = self.turn_to_read(&caller, bytes.len(), deadline).await?;
        let received = Received {
            caller,
            permit,
            share,
            turn,
        };
        Ok((received, bytes))
    }

    async fn a2a_answer(
        &self,
        a2a: &Arc<A2a>,
        head: &Parts,
        (operation, call): (Operation, Call),
        received: Received,
        correlation: RequestId,
        written: &Written,
    ) -> Result<Response, Error> {
        let Received {
            caller,
            permit,
            share,
            turn,
        } = received;
        // It was read.
        drop(turn);
        // The version was checked before.
        let agreed = a2a.activated(written.announced(&head.headers).into_iter())?;
        let text = |name: &HeaderName| {
            let value = head.headers.get(name);
            value.and_then(|it| it.to_str().ok())
        };
        let ending = self.draining.child_token();
        let context = keyed(context(head, caller, correlation), text(&IDEMPOTENCY_KEY))?;
        let mut heard = Heard {
            context,
            nodes: agreed.nodes,
            v03: written.is_v03(),
            ending: ending.clone(),
            last_event: text(&LAST_EVENT_ID).map(Arc::from),
        };
        // It may take longer than other calls.
        let outcome = if operation.streams() || call.waits() {
            let place = streams::place(&self.streams).map_err(|_| too_many_streams())?;
            let session = self.session(head);
            let watched = session.map(|session| streams::watched(session, ending.clone()));
            // It has a place among the streams instead, and its body was read: it may wait for as long as a run.
            drop((permit, share));
            let outcome = a2a.call(&heard, call).await?;
            match outcome {
                Outcome::Stream(followed) => {
                    let counted = self.dispatcher.figures().stream(Carrier::Sse);
                    let alive = KeptAlive::default();
                    let kept: Kept = Box::new((place, watched, alive.clone(), counted));
                    let told = followed.told(ending);
                    let lines = written.clone();
                    let edition = a2a.edition();
                    let bytes = told.map(move |told| {
                        let _kept = &kept;
                        Ok::<_, Infallible>(lines.line(told, edition))
                    });
                    let mut response = Response::new(Body::from_stream(bytes));
                    response.extensions_mut().insert(alive);
                    stream_headers(response.headers_mut());
                    written.echoed(response.headers_mut(), &agreed);
                    return Ok(response);
                }
                outcome @ Outcome::Answer(_) => outcome,
            }
        } else {
            let deadline = Instant::now() + self.request_timeout;
            heard.context = heard.context.until(Some(deadline));
            let asked = timeout_at(deadline, a2a.call(&heard, call)).await;
            let outcome = asked.unwrap_or_else(|_| Err(out_of_time()));
            drop((permit, share));
            outcome?
        };
        let Outcome::Answer(answer) = outcome else {
            return Err(Error::new(ErrorKind::Internal, "an answer of another kind"));
        };
        let mut response = written.answer(&answer, a2a.edition())?;
        written.echoed(response.headers_mut(), &agreed);
        Ok(response)
    }
}

/// The version, which a header or the query names.
fn version(head: &Parts) -> Option<String> {
    let header = head.headers.get(headers::VERSION);
    let header = header.and_then(|it| it.to_str().ok()).map(str::to_owned);
    let given = header.filter(|it| !it.is_empty());
    given.or_else(|| rest::version(head.uri.query()))
}

/// Refuses bodies that are announced as something else.
fn unless_json(headers: &HeaderMap) -> Result<(), Error> {
    let given = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let essence = given.and_then(|it| it.split(';').next()).map(str::trim);
    let known = ["application/json", "application/a2a+json"];
    let is_known = |it: &str| known.iter().any(|known| known.eq_ignore_ascii_case(it));
    if essence.is_some_and(is_known) {
        return Ok(());
    }
    let reason = "the body must be `application/a2a+json` or `application/json`";
    Err(Error::new(ErrorKind::ContentTypeNotSupported, reason))
}

fn too_many_streams() -> Error {
    let reason = "the server has too many streams";
    Error::new(ErrorKind::ResourceExhausted, reason).after(RETRY_AFTER_MS)
}

fn stream_headers(headers: &mut HeaderMap) {
    let fixed = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache, no-transform"),
        (ACCEL_BUFFERING, "no"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

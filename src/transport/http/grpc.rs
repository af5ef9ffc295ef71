//! gRPC calls on the listener of all other calls: authentication, the size of messages, and the lifetime of streams.
//! What the services do is theirs.

mod calls;
mod held;
mod services;

use super::call_context::{context, holder};
use super::connection::KeptAlive;
use super::door::Door;
use super::{body, streams};
use crate::application::api::{Denied, EarlyTurn, Error as Failed};
use crate::runtime::unblocking;
use crate::transport::a2a::{A2a, grpc as a2a};
use crate::transport::eventbus::{Came, undecodable};
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::Response;
use calls::{Lasting, unknown_call};
use held::held;
use services::{A2A_MESSAGE_BYTES_MAX, Served};
pub(super) use services::{Grpc, Of, paths};
use std::sync::Arc;
use std::time::Duration;
use taskledger_a2a::grpc as a2a_wire;
use taskledger_a2a::{Edition, Error, ErrorKind};
use taskledger_eventbus::status_with_retry;
use tokio::time::Instant;
use tonic::{Code, Status};
use tower::{Service, ServiceExt};

/// Bytes before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

impl<C: Send + Sync + 'static> Door<C> {
    /// Answers one gRPC call.
    pub(super) async fn grpc(self: Arc<Self>, of: Of, request: Request<Body>) -> Response {
        let served = self.grpc.as_ref().and_then(|it| Some((it, it.of(of)?)));
        let Some((grpc, mut service)) = served else {
            if self.grpc.is_some() && is_grpc(request.headers()) {
                return refused(&Status::unimplemented("this service is not served here"));
            }
            return super::refusal::not_found(request.uri().path());
        };
        if !is_grpc(request.headers()) {
            let mut response = Response::new(Body::from(
                "a gRPC call has content-type application/grpc\n",
            ));
            *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return response;
        }
        let prepared = match of {
            // Probes have no credentials.
            Of::Health => Ok(request),
            Of::Reflection | Of::ReflectionAlpha => self.known(request).await,
            Of::Bus => {
                let bytes_max = grpc.message_bytes_max;
                return self.counted_call(of, service, request, bytes_max).await;
            }
            Of::A2a | Of::A2aV03 => {
                let bytes_max = A2A_MESSAGE_BYTES_MAX;
                return self.counted_call(of, service, request, bytes_max).await;
            }
        };
        match prepared {
            Ok(request) => answered(&mut service, request).await,
            Err(status) => refused(&status),
        }
    }

    async fn known(&self, request: Request<Body>) -> Result<Request<Body>, Status> {
        let (head, body) = request.into_parts();
        self.caller(&head)
            .await
            .map_err(|denied| unauthenticated(&denied))?;
        Ok(Request::from_parts(head, body))
    }

    /// Answers a call, and counts it with the code of its answer; one that is answered with a stream when that begins.
    async fn counted_call(
        &self,
        of: Of,
        service: Served,
        request: Request<Body>,
        message_bytes_max: usize,
    ) -> Response {
        let begun = Instant::now();
        let call = request.uri().path().rsplit('/').next();
        let (binding, method) = calls::counted_as(of, call.unwrap_or_default());
        let answer = self.of_calls(of, service, request, message_bytes_max).await;
        // An answer with a message has its code behind it.
        let status = answer.headers().get("grpc-status");
        let code = status.map_or(Code::Ok, |it| Code::from_bytes(it.as_bytes()));
        let figures = self.dispatcher.figures();
        figures.call_of_binding(method, code, binding, begun.elapsed());
        answer
    }

    async fn of_calls(
        &self,
        of: Of,
        mut service: Served,
        request: Request<Body>,
        message_bytes_max: usize,
    ) -> Response {
        let (mut head, body) = request.into_parts();
        let call = head.uri.path().rsplit('/').next();
        let call = call.unwrap_or_default().to_owned();
        let lasting = Lasting::of(of, &call);
        let refused = |status: &Status| refused_by(of, self.a2a.as_deref(), status);
        let caller = match self.caller(&head).await {
            Ok(caller) => caller,
            Err(denied) => return refused(&unauthenticated(&denied)),
        };
        if let Some(status) = unknown_call(of, &call) {
            return refused(&status);
        }
        let Ok(permit) = Arc::clone(&self.requests).try_acquire_owned() else {
            return refused(&Status::unavailable("the server has too many requests"));
        };
        let arrived = Instant::now();
        let given = given_timeout(&head);
        let allowed = given.map_or(self.request_timeout, |it| it.min(self.request_timeout));
        let deadline = arrived + allowed;
        // What lasts is cut off only by who calls. One that is too far away to be a time is none.
        let cut_off = given.and_then(|it| arrived.checked_add(it));
        let bytes_max = message_bytes_max + PREFIX_BYTES;
        let share = self.in_hand.share(holder(&head, &caller));
        let received = body::receive(share, &head.headers, body, bytes_max, deadline).await;
        let (bytes, share) = match received {
            Ok(received) => received,
            Err(refusal) => return refused(&unreceived(refusal.status(), message_bytes_max)),
        };
        let body_bytes = bytes.len();
        let turn = match self.turn(&caller, body_bytes, deadline).await {
            Ok(turn) => turn.map(EarlyTurn::of).unwrap_or_default(),
            Err(error) => return refused(&turned_away(&error)),
        };
        if cut_off.is_some_and(|it| it <= Instant::now()) {
            let late = "the call ran out of time before it started";
            return refused(&Status::deadline_exceeded(late));
        }
        // Only calls of the bus are told what is wrong with what they have sent.
        let sent = match of {
            Of::Bus => bytes.clone(),
            Of::A2a | Of::A2aV03 | Of::Health | Of::Reflection | Of::ReflectionAlpha => {
                Bytes::new()
            }
        };
        let edition = self.a2a.as_deref().map(A2a::edition);
        let explained = move |answer: Response| match (of, edition) {
            (Of::A2a | Of::A2aV03, Some(edition)) => told_by_a2a(answer, edition),
            (Of::A2a | Of::A2aV03, None)
            | (Of::Bus | Of::Health | Of::Reflection | Of::ReflectionAlpha, _) => {
                told(answer, &call, &sent)
            }
        };
        let (correlation, _) = self.correlation(&head.headers);
        let ending = self.draining.child_token();
        let mut came = Came {
            context: context(&head, caller, correlation),
            ending: ending.clone(),
            stopping: self.draining.clone(),
            turn,
        };
        if lasting == Lasting::Call {
            came.context = came.context.until(Some(deadline));
            head.extensions.insert(came);
            let request = Request::from_parts(head, Body::from(bytes));
            let answer = tokio::time::timeout_at(
                deadline,
                unblocking(body_bytes, answered(&mut service, request)),
            )
            .await;
            drop((permit, share));
            let answer = answer.map(explained);
            return answer.unwrap_or_else(|_| {
                refused(&Status::deadline_exceeded(
                    "the call took too long; its outcome is unknown",
                ))
            });
        }
        let Ok(place) = streams::place(&self.streams) else {
            return refused(&Status::resource_exhausted(
                "the server has too many streams",
            ));
        };
        let watched = self
            .session(&head)
            .map(|session| streams::watched(session, ending.clone()));
        head.extensions.insert(came);
        head.extensions.insert(a2a::Within(deadline));
        let request = Request::from_parts(head, Body::from(bytes));
        if lasting == Lasting::Waits {
            // It waits for as long as a run: what it has sent is not counted meanwhile, and dropped once it is decoded.
            drop((permit, share));
            let answer = unblocking(body_bytes, answered(&mut service, request));
            let response = match cut_off {
                None => explained(answer.await),
                Some(cut_off) => match tokio::time::timeout_at(cut_off, answer).await {
                    Ok(response) => explained(response),
                    Err(_) => refused(&Status::deadline_exceeded(
                        "the call ran out of time; the run that it started continues, and can be read and followed",
                    )),
                },
            };
            drop((place, watched));
            return response;
        }
        let begun = unblocking(body_bytes, answered(&mut service, request));
        let begun = match cut_off {
            None => Ok(begun.await),
            Some(cut_off) => tokio::time::timeout_at(cut_off, begun).await,
        };
        drop((permit, share));
        let Ok(response) = begun.map(explained) else {
            let late = "the stream did not start in time; a run may have started";
            return refused(&Status::deadline_exceeded(late));
        };
        let alive = KeptAlive::default();
        // Until the last byte is sent, or the client goes away.
        let kept = (place, watched, alive.clone(), ending.drop_guard());
        let mut response = held(response, cut_off, kept);
        response.extensions_mut().insert(alive);
        response
    }
}

async fn answered(service: &mut Served, request: Request<Body>) -> Response {
    match service.ready().await {
        Ok(service) => match service.call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        },
        Err(never) => match never {},
    }
}

/// The same of Agent2Agent: a status without details is not the service's, which has read the message then.
fn told_by_a2a(answer: Response, edition: Edition) -> Response {
    let status = answer.headers().get("grpc-status");
    let is_internal = status.is_some_and(|it| Code::from_bytes(it.as_bytes()) == Code::Internal);
    if !is_internal || answer.headers().contains_key("grpc-status-details-bin") {
        return answer;
    }
    let reason = "the message is not a valid request of this method";
    let error = Error::new(ErrorKind::Parse, reason);
    refused(&a2a_wire::status::of(&error, edition))
}

/// An answer as it is, unless it says that the message could not be read: then with what is wrong with the message.
fn told(answer: Response, call: &str, sent: &[u8]) -> Response {
    let status = answer.headers().get("grpc-status");
    let is_internal = status.is_some_and(|it| Code::from_bytes(it.as_bytes()) == Code::Internal);
    match is_internal.then(|| undecodable(call, sent)).flatten() {
        Some(status) => refused(&status),
        None => answer,
    }
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let given = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    given.is_some_and(|it| {
        it == "application/grpc"
            || it.starts_with("application/grpc+proto")
            || it.starts_with("application/grpc;")
    })
}

/// A refusal of a whole call, in the words of its protocol.
fn refused_by(of: Of, a2a: Option<&A2a>, status: &Status) -> Response {
    let (Of::A2a | Of::A2aV03, Some(a2a)) = (of, a2a) else {
        return refused(status);
    };
    let known = [
        (Code::Unauthenticated, ErrorKind::Unauthenticated),
        (Code::ResourceExhausted, ErrorKind::ResourceExhausted),
        (Code::Unavailable, ErrorKind::Unavailable),
        (Code::Unimplemented, ErrorKind::MethodNotFound),
    ];
    let found = known.into_iter().find(|(code, _)| *code == status.code());
    let Some((_, kind)) = found else {
        return refused(status);
    };
    let error = Error::new(kind, status.message());
    refused(&a2a_wire::status::of(&error, a2a.edition()))
}

/// How long the caller waits: `grpc-timeout`.
fn given_timeout(head: &Parts) -> Option<Duration> {
    let given = head
        .headers
        .get("grpc-timeout")
        .and_then(|value| value.to_str().ok());
    given.and_then(|text| {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let number: u64 = number.parse().ok()?;
        Some(match unit {
            "H" => Duration::from_secs(number.saturating_mul(3600)),
            "M" => Duration::from_secs(number.saturating_mul(60)),
            "S" => Duration::from_secs(number),
            "m" => Duration::from_millis(number),
            "u" => Duration::from_micros(number),
            "n" => Duration::from_nanos(number),
            _ => return None,
        })
    })
}

/// A refusal of a whole call.
fn refused(status: &Status) -> Response {
    status.clone().into_http::<Body>()
}

fn unauthenticated(denied: &Denied) -> Status {
    match denied {
        Denied::Limited { retry_after_ms } => {
            let message = format!("{denied}; make the same call again after {retry_after_ms} ms");
            let after = Duration::from_millis(*retry_after_ms);
            status_with_retry(Code::ResourceExhausted, &message, after)
        }
        Denied::Unavailable => Status::unavailable(denied.to_string()),
        Denied::Missing
        | Denied::Malformed
        | Denied::Unknown
        | Denied::Expired
        | Denied::Revoked => Status::unauthenticated(denied.to_string()),
    }
}

/// A call that is not read now.
fn turned_away(error: &Failed) -> Status {
    if let Failed::Busy { retry_after_ms, .. } = error {
        let after = Duration::from_millis(*retry_after_ms);
        return status_with_retry(Code::Unavailable, &error.to_string(), after);
    }
    Status::unavailable(error.to_string())
}

fn unreceived(status: StatusCode, message_bytes_max: usize) -> Status {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => Status::resource_exhausted(format!(
            "the message is larger than {message_bytes_max} bytes"
        )),
        StatusCode::REQUEST_TIMEOUT => {
            Status::deadline_exceeded("the message did not arrive in time")
        }
        StatusCode::SERVICE_UNAVAILABLE => Status::unavailable("the server is receiving too much"),
        _ => Status::cancelled("the message was cut off"),
    }
}

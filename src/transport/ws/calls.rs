//! The calls of one socket.

use super::outbox::{ANSWERS_BYTES_MAX, Outbox};
use super::params::{Subscribe, Unsubscribe};
use super::subscriptions::{Place, Subscriptions};
use super::{MESSAGE_BYTES_MAX, Sockets};
use crate::application::Context;
use crate::application::api::{Pieces, Watching};
use crate::subscription::stream::{Notices, Reset};
use crate::transport::budget::{Full, Share};
use crate::transport::figures::{Entrance, Reason};
use crate::transport::jsonrpc::envelope::{self, Element, Envelope, Params, Request};
use crate::transport::jsonrpc::reader::Parameters;
use crate::transport::jsonrpc::{Body, RpcError, answer_body, failure_body};
use axum::extract::ws::Utf8Bytes;
use futures_util::TryStreamExt;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::sync::Arc;
use taskledger_domain::Violation;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

/// Calls of one socket that run at once; the next message is read when one of them has ended.
const CALLS_MAX: usize = 8;
/// Bytes of an answer that is made at once, a batch's together: of lists of large tasks; POST takes more.
/// As many as calls may be in memory before they share the room of [`Outbox`].
const WHOLE_ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What a caller is told to wait when the server has as many requests as it takes, in milliseconds.
const RETRY_AFTER_MS: u64 = 1000;

const _: () = assert!(
    MESSAGE_BYTES_MAX <= envelope::INLINE_PARSE_BYTES_MAX,
    "messages are parsed where they arrive"
);

/// A stream that a call has opened.
pub(super) struct Opened {
    /// The id of the call.
    pub(super) id: Box<RawValue>,
    /// Its result; `None` for `subscribe`, whose result is the subscription.
    pub(super) result: Option<Box<RawValue>>,
    pub(super) stream: Notices,
    pub(super) reset: Option<Reset>,
    /// Its place among the subscriptions.
    pub(super) place: Place,
}

/// Carries out the calls of one socket, several at once; dropping it cancels none.
pub(super) struct Calls<C> {
    sockets: Arc<Sockets<C>>,
    out: Outbox,
    opened: mpsc::Sender<Opened>,
    room: Arc<Semaphore>,
}

impl<C> Sockets<C> {
    /// What a use case knows of one call of a socket.
    fn context(&self) -> Context {
        let correlation = Arc::from(self.clock.uuid().to_string());
        let mut context = Context::of(self.caller.clone(), correlation);
        context.address = self.address;
        context
    }
}

impl<C: Send + Sync + 'static> Calls<C> {
    pub(super) fn new(sockets: Arc<Sockets<C>>, out: Outbox, opened: mpsc::Sender<Opened>) -> Self {
        Self {
            sockets,
            out,
            opened,
            room: Arc::new(Semaphore::new(CALLS_MAX)),
        }
    }

    /// Whether as many run as may.
    pub(super) fn is_full(&self) -> bool {
        self.room.available_permits() == 0
    }

    /// Waits until one more may run.
    pub(super) async fn room(&self) {
        // Never closed.
        let _ = self.room.acquire().await;
    }

    /// Begins what a message asks for. To be called when there is room.
    pub(super) async fn begin(&mut self, text: Utf8Bytes, subscriptions: &mut Subscriptions<'_>) {
        let room = self.room.clone().try_acquire_owned();
        let room = room.expect("only this socket takes room, one message after the other");
        let envelope = envelope::parse(text.as_bytes());
        let envelope = match own(envelope) {
            Own::Not(envelope) => envelope,
            Own::Unsubscribe(id, params) => {
                let begun = Instant::now();
                let ended = unsubscribe(params, subscriptions);
                let code = ended.as_ref().err().map(|error| error.code);
                let dispatcher = &self.sockets.dispatcher;
                dispatcher.count_own("unsubscribe", code, begun);
                let answer = match ended {
                    Ok(result) => answer_body(&id, &result),
                    Err(error) => failure_body(&id, &error),
                };
                return self.out.answer(answer).await;
            }
            Own::Subscribe(id, params) => {
                let asked = read(params).and_then(|asked| Ok((asked, subscriptions.place()?)));
                return match asked {
                    Ok((asked, place)) => self.subscribe(id, asked, place, room),
                    Err(error) => {
                        let dispatcher = &self.sockets.dispatcher;
                        dispatcher.count_own("subscribe", Some(error.code), Instant::now());
                        self.out.answer(failure_body(&id, &error)).await;
                    }
                };
            }
        };
        let streams = self.sockets.dispatcher.streams_asked_for(&envelope);
        match streams.then(|| subscriptions.place()).transpose() {
            Ok(place) => self.call(envelope, place, room),
            Err(error) => {
                for answer in refused(&envelope, &error) {
                    self.out.answer(answer).await;
                }
            }
        }
    }

    /// Carries out a call, or a batch, to its end, even if the socket is closed meanwhile.
    fn call(&self, envelope: Envelope, place: Option<Place>, room: OwnedSemaphorePermit) {
        let sockets = self.sockets.clone();
        let (out, opened) = (self.out.clone(), self.opened.clone());
        let cut = sockets.cut.clone();
        let tracker = sockets.tracker.clone();
        let calling = async move {
            let Ok(_place) = sockets.requests.clone().try_acquire_owned() else {
                sockets.dispatcher.figures().refused(Reason::Busy);
                let busy = RpcError::busy("the server has too many requests", RETRY_AFTER_MS);
                for answer in refused(&envelope, &busy) {
                    out.answer(answer).await;
                }
                return;
            };
            let id = envelope.requests().next();
            let id = id.and_then(|request| request.id.clone());
            let deadline = Instant::now() + sockets.request_timeout;
            let context = sockets.context().until(Some(deadline));
            let max = WHOLE_ANSWER_BYTES_MAX;
            let mut counted = sockets.answers.share();
            let dispatcher = &sockets.dispatcher;
            let answer =
                dispatcher.answer_within(envelope, context, Entrance::Socket, max, &mut counted);
            match (answer.await, place) {
                (None, _) => {}
                (Some(Body::Whole(answer)), _) => out.answer_counted(answer, counted).await,
                (Some(Body::Long { head, result, tail }), _) => {
                    let share = out.room().await;
                    match (whole(head, result, tail, &mut counted).await, id) {
                        (Ok(answer), _) => {
                            out.answer_gathered(answer, share, counted).await;
                        }
                        (Err(error), Some(id)) => {
                            out.answer_with(failure_body(&id, &error), share).await;
                        }
                        // Only what has an id is answered.
                        (Err(_), None) => {}
                    }
                }
                (Some(Body::Stream { id, streamed }), Some(place)) => {
                    let begun = Opened {
                        id,
                        result: Some(streamed.result),
                        stream: streamed.stream,
                        reset: None,
                        place,
                    };
                    // A socket that is gone wants no events.
                    let _ = opened.send(begun).await;
                }
                (Some(Body::Stream { id, streamed }), None) => {
                    out.answer(answer_body(&id, &streamed.result)).await;
                }
            }
        };
        tracker.spawn(async move {
            tokio::select! {
                () = cut.cancelled() => {}
                () = calling => {}
            }
            drop(room);
        });
    }

    fn subscribe(
        &self,
        id: Box<RawValue>,
        asked: Subscribe,
        place: Place,
        room: OwnedSemaphorePermit,
    ) {
        let sockets = self.sockets.clone();
        let (out, opened) = (self.out.clone(), self.opened.clone());
        let cut = sockets.cut.clone();
        let tracker = sockets.tracker.clone();
        let subscribing = async move {
            let Some(streams) = sockets.dispatcher.streams() else {
                return;
            };
            let context = sockets.context();
            let begun = Instant::now();
            let watched = streams.watch(&context, asked.watch, asked.from).await;
            let code = watched.as_ref().err().map(|error| error.code);
            sockets.dispatcher.count_own("subscribe", code, begun);
            match watched {
                Err(error) => out.answer(failure_body(&id, &error)).await,
                Ok(Watching { stream, reset }) => {
                    let begun = Opened {
                        id,
                        result: None,
                        stream,
                        reset: asked.reset.or(reset),
                        place,
                    };
                    let _ = opened.send(begun).await;
                }
            }
        };
        tracker.spawn(async move {
            tokio::select! {
                () = cut.cancelled() => {}
                () = subscribing => {}
            }
            drop(room);
        });
    }
}

/// What a socket does itself.
enum Own {
    Subscribe(Box<RawValue>, Params),
    Unsubscribe(Box<RawValue>, Params),
    /// The dispatcher does it.
    Not(Envelope),
}

fn own(envelope: Envelope) -> Own {
    let Envelope::Single(Element::Request(request)) = envelope else {
        return Own::Not(envelope);
    };
    let Request {
        id: Some(_),
        method,
        ..
    } = &*request
    else {
        return Own::Not(Envelope::Single(Element::Request(request)));
    };
    let (subscribes, unsubscribes) = (method == "subscribe", method == "unsubscribe");
    let request = match (*request, subscribes || unsubscribes) {
        (
            Request {
                id: Some(id),
                params,
                ..
            },
            true,
        ) => {
            return if subscribes {
                Own::Subscribe(id, params)
            } else {
                Own::Unsubscribe(id, params)
            };
        }
        (request, _) => request,
    };
    Own::Not(Envelope::Single(Element::Request(Box::new(request))))
}

/// Parameters of the socket's own methods have names.
fn named(params: Params) -> Result<Map<String, Value>, RpcError> {
    match params {
        Params::Named(map) => Ok(map),
        Params::Positional(values) if values.is_empty() => Ok(Map::new()),
        Params::Positional(values) => {
            let count = values.len().into();
            let fault = Violation::of("params", "not by name", "an object", &count);
            Err(vec![fault].into())
        }
    }
}

fn read(params: Params) -> Result<Subscribe, RpcError> {
    Ok(Subscribe::read(&named(params)?)?)
}

fn unsubscribe(
    params: Params,
    subscriptions: &mut Subscriptions<'_>,
) -> Result<Box<RawValue>, RpcError> {
    let Unsubscribe { subscription } = Unsubscribe::read(&named(params)?)?;
    if subscriptions.close(&subscription) {
        let text = RawValue::from_string(r#"{"success":true}"#.to_owned());
        return Ok(text.expect("it is JSON"));
    }
    let reason = "no such subscription";
    let expected = "a subscription of this socket that has not ended";
    let fault = Violation::of("subscription", reason, expected, &subscription.into());
    Err(vec![fault].into())
}

/// One answer for each call of the envelope that gets one.
fn refused(envelope: &Envelope, error: &RpcError) -> Vec<Vec<u8>> {
    let ids = envelope
        .requests()
        .filter_map(|request| request.id.as_ref());
    ids.map(|id| failure_body(id, error)).collect()
}

/// A long answer in one piece.
///
/// # Errors
/// It is too large for a socket, or was cut off.
async fn whole(
    mut head: Vec<u8>,
    mut result: Pieces,
    mut tail: Vec<u8>,
    counted: &mut Share,
) -> Result<Vec<u8>, RpcError> {
    let cut_off = |_| RpcError::internal_answer("the answer was cut off");
    while let Some(piece) = result.try_next().await.map_err(cut_off)? {
        if head.len() + piece.len() + tail.len() > ANSWERS_BYTES_MAX {
            let reason = "the answer is too large for a socket, ask over POST";
            let error = RpcError::internal_answer(reason);
            return Err(error.with("limit_bytes", ANSWERS_BYTES_MAX));
        }
        counted.take(piece.len()).map_err(|Full| {
            let reason = "too many answers wait to be read by their clients";
            RpcError::busy(reason, RETRY_AFTER_MS)
        })?;
        head.extend(piece);
    }
    head.append(&mut tail);
    Ok(head)
}

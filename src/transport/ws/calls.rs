//! The calls of one socket.

use super::begun::{Asked, Begun, Opened, Place};
use super::outbox::{ANSWERS_BYTES_MAX, Outbox, Unwritten};
use super::params::{Subscribe, Unsubscribe, Work};
use super::sockets::{MESSAGE_BYTES_MAX, Sockets};
use super::subscriptions::Subscriptions;
use super::waiting::Read;
use super::work::{self, Windows};
use crate::application::Context;
use crate::application::api::work::Release;
use crate::application::api::{Pieces, Watching};
use crate::transport::budget::Share;
use crate::transport::figures::{Entrance, Reason};
use crate::transport::jsonrpc::envelope::{self, Element, Envelope, Params};
use crate::transport::jsonrpc::reader::Parameters;
use crate::transport::jsonrpc::stream_request::WORK;
use crate::transport::jsonrpc::working;
use crate::transport::jsonrpc::{Answer, Body, ErrorKind, RpcError, answer_body, failure_body};
use futures_util::TryStreamExt;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::sync::Arc;
use taskledger_domain::Violation;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Calls of one socket that run at once; the next message is read when one of them has ended. As many as one append to
/// the log may well hold, for whoever makes all of its calls over one socket. Bytes of their answers are bounded beside
/// ([`Outbox`], and those of all connections).
const CALLS_MAX: usize = 64;
/// Calls of workers of one socket that run at once: as many outcomes as one append to the log may well hold.
const WORKERS_CALLS_MAX: usize = 128;
/// Bytes of an answer that is made at once, a batch's together: of lists of large tasks; POST takes more.
/// As many as calls may be in memory before they share the room of [`Outbox`].
const WHOLE_ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What a caller is told to wait when the server has as many requests as it takes, in milliseconds.
const RETRY_AFTER_MS: u64 = 1000;

const _: () = assert!(
    MESSAGE_BYTES_MAX <= envelope::INLINE_PARSE_BYTES_MAX,
    "messages are parsed where they arrive"
);

/// Carries out the calls of one socket, several at once. Dropping it cancels those that wait for work, and no other:
/// nobody is left to do it.
pub(super) struct Calls<C> {
    sockets: Arc<Sockets<C>>,
    out: Outbox,
    opened: mpsc::Sender<Begun>,
    windows: Windows,
    room: Arc<Semaphore>,
    /// For calls that workers make all the time: short ones, and waits for work.
    workers_room: Arc<Semaphore>,
    /// Cancelled when the socket is closed, or all are cut.
    gone: CancellationToken,
    _gone: DropGuard,
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

impl<C: Send + Sync + 'static> Sockets<C> {
    /// Gives back what a call has claimed, if its answer is not written.
    fn undelivered(&self, claimed: Vec<Release>) -> Option<Unwritten> {
        let work = self.dispatcher.work().filter(|_| !claimed.is_empty())?;
        Some(work::gives_back(work, &self.context(), claimed))
    }
}

impl<C: Send + Sync + 'static> Calls<C> {
    pub(super) fn new(
        sockets: Arc<Sockets<C>>,
        out: Outbox,
        opened: mpsc::Sender<Begun>,
        windows: Windows,
    ) -> Self {
        let gone = sockets.cut.child_token();
        Self {
            sockets,
            out,
            opened,
            windows,
            room: Arc::new(Semaphore::new(CALLS_MAX)),
            workers_room: Arc::new(Semaphore::new(WORKERS_CALLS_MAX)),
            _gone: gone.clone().drop_guard(),
            gone,
        }
    }

    /// Whether as many run as may, of one kind or the other: which one comes next is not known before.
    pub(super) fn is_full(&self) -> bool {
        self.room.available_permits() == 0 || self.workers_room.available_permits() == 0
    }

    /// Waits until one more may run, of each kind.
    pub(super) async fn room(&self) {
        // Never closed.
        let _ = tokio::join!(self.room.acquire(), self.workers_room.acquire());
    }

    /// The place of a message that waits before it is read. To be called when there is room.
    pub(super) fn place(&self) -> OwnedSemaphorePermit {
        taken(&self.room)
    }

    /// Begins what a message asks for. To be called when there is room.
    pub(super) async fn begin(&mut self, message: Read, subscriptions: &mut Subscriptions<'_>) {
        let envelope = envelope::parse(message.text.as_bytes());
        let room = message.room.unwrap_or_else(|| {
            if working::is_of_worker(&envelope) {
                taken(&self.workers_room)
            } else {
                taken(&self.room)
            }
        });
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
            Own::Work(id, params) => {
                let asked = named(params).and_then(|params| Ok(Work::read(&params)?));
                let asked = asked.and_then(|asked| Ok((asked, subscriptions.place()?)));
                return match asked {
                    Ok((asked, place)) => self.work(id, asked, place, room),
                    Err(error) => {
                        let dispatcher = &self.sockets.dispatcher;
                        dispatcher.count_own(WORK, Some(error.code), Instant::now());
                        self.out.answer(failure_body(&id, &error)).await;
                    }
                };
            }
        };
        let streams = self.sockets.dispatcher.streams_asked_for(&envelope);
        match streams.then(|| subscriptions.place()).transpose() {
            Ok(place) => self.call(envelope, message.arrived, place, room),
            Err(error) => self.refuse(&envelope, &error).await,
        }
    }

    async fn refuse(&self, envelope: &Envelope, error: &RpcError) {
        for answer in refused(envelope, error) {
            self.out.answer(answer).await;
        }
    }

    /// Carries out a call, or a batch, to its end, even if the socket is closed meanwhile; only a claim ends with it.
    fn call(
        &self,
        envelope: Envelope,
        arrived: Instant,
        place: Option<Place>,
        room: OwnedSemaphorePermit,
    ) {
        let sockets = self.sockets.clone();
        let (out, opened) = (self.out.clone(), self.opened.clone());
        let windows = self.windows.clone();
        let cut = sockets.cut.clone();
        let gone = self.gone.clone();
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
            let deadline = arrived + sockets.request_timeout + working::wait(&envelope);
            let claim = working::ended(&envelope);
            let renewal = working::renewed(&envelope);
            let is_claim = working::is_claim(&envelope);
            let context = sockets.context().until(Some(deadline));
            let max = WHOLE_ANSWER_BYTES_MAX;
            let mut counted = sockets.answers.share(sockets.holder());
            let dispatcher = &sockets.dispatcher;
            let answer =
                dispatcher.answer_within(envelope, context, Entrance::Socket, max, &mut counted);
            let answer = if is_claim {
                tokio::select! {
                    // What it has begun is given back.
                    () = gone.cancelled() => return,
                    answer = answer => answer,
                }
            } else {
                answer.await
            };
            let Some(Answer {
                body,
                claimed,
                refused,
            }) = answer
            else {
                return;
            };
            match (body, place) {
                (Body::Whole(answer) | Body::Limited(answer, _), _) => {
                    if let Some((task, lease)) = claim.filter(|_| ends_claim(refused)) {
                        windows.finished(task, lease);
                    }
                    if let Some((task, lease)) = renewal.filter(|_| refused.is_none()) {
                        windows.renewed(task, lease);
                    }
                    let undelivered = sockets.undelivered(claimed);
                    out.answer_counted(answer, counted, undelivered).await;
                }
                (Body::Long { head, result, tail }, _) => {
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
                (Body::Stream { id, streamed }, Some(place)) => {
                    let begun = Opened {
                        id,
                        result: Some(streamed.result),
                        stream: streamed.stream,
                        reset: None,
                        place,
                    };
                    // A socket that is gone wants no events.
                    let _ = opened.send(Begun::Stream(Box::new(begun))).await;
                }
                (Body::Stream { id, streamed }, None) => {
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

    /// Claims for the first time, and opens the subscription that goes on with it.
    fn work(&self, id: Box<RawValue>, asked: Work, place: Place, room: OwnedSemaphorePermit) {
        let sockets = self.sockets.clone();
        let (out, opened) = (self.out.clone(), self.opened.clone());
        let cut = sockets.cut.clone();
        let tracker = sockets.tracker.clone();
        let asking = async move {
            let Some(source) = sockets.dispatcher.work().cloned() else {
                let fault =
                    Violation::of("method", "not supported by this server", "", &WORK.into());
                return out.answer(failure_body(&id, &vec![fault].into())).await;
            };
            let begun = Instant::now();
            let contexts = sockets.clone();
            let context = Box::new(move || contexts.context());
            let worker = work::begun(source, context, sockets.heard.clone(), asked).await;
            let code = worker.as_ref().err().map(|error| error.code);
            sockets.dispatcher.count_own(WORK, code, begun);
            match worker {
                Err(error) => out.answer(failure_body(&id, &error)).await,
                Ok(worker) => {
                    let asked = Asked { id, worker, place };
                    // A socket that is gone does no work: what it was to be told of is given back.
                    let _ = opened.send(Begun::Work(Box::new(asked))).await;
                }
            }
        };
        tracker.spawn(async move {
            tokio::select! {
                () = cut.cancelled() => {}
                () = asking => {}
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
                    let _ = opened.send(Begun::Stream(Box::new(begun))).await;
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

/// A place of one message; to be called when there is room.
fn taken(room: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    let taken = room.clone().try_acquire_owned();
    taken.expect("only this socket takes room, one message after the other")
}

/// What a socket does itself.
enum Own {
    Subscribe(Box<RawValue>, Params),
    Unsubscribe(Box<RawValue>, Params),
    Work(Box<RawValue>, Params),
    /// The dispatcher does it.
    Not(Envelope),
}

fn own(envelope: Envelope) -> Own {
    let Envelope::Single(Element::Request(mut request)) = envelope else {
        return Own::Not(envelope);
    };
    let of_socket: fn(_, _) -> Own = match request.method.as_str() {
        "subscribe" => Own::Subscribe,
        "unsubscribe" => Own::Unsubscribe,
        WORK => Own::Work,
        _ => return Own::Not(Envelope::Single(Element::Request(request))),
    };
    match request.id.take() {
        Some(id) => of_socket(id, request.params),
        None => Own::Not(Envelope::Single(Element::Request(request))),
    }
}

/// Whether a claim has ended with a call that was refused for this, or not at all: the call has ended it, or was told
/// that it is not held any more.
fn ends_claim(refused: Option<ErrorKind>) -> bool {
    refused.is_none_or(|kind| kind == ErrorKind::LeaseNotHeld)
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
        counted
            .take(piece.len())
            .map_err(|full| RpcError::busy(full.reason_for_answers(), RETRY_AFTER_MS))?;
        head.extend(piece);
    }
    head.append(&mut tail);
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::envelope::parse;

    #[test]
    fn only_calls_that_get_an_answer_are_the_sockets_own() {
        let call = |text: &str| own(parse(text.as_bytes()));
        let work = r#"{"jsonrpc":"2.0","id":1,"method":"work","params":{}}"#;
        assert!(matches!(call(work), Own::Work(..)));
        let silent = r#"{"jsonrpc":"2.0","method":"subscribe","params":{}}"#;
        assert!(matches!(call(silent), Own::Not(_)));
        let other = r#"{"jsonrpc":"2.0","id":1,"method":"tasks.get","params":{}}"#;
        assert!(matches!(call(other), Own::Not(Envelope::Single(_))));
    }
}

//! JSON-RPC over a WebSocket: calls as on POST, and subscriptions whose events are notifications.
//!
//! Owns: one socket from its upgrade to its close: which frames are taken, pings, close codes, the
//! calls that run at once, the queue of what is written. Calls go through the dispatcher; events come
//! from `subscription` and are encoded as one line of JSON. May not touch: the log, the meaning of methods.

mod begun;
mod calls;
mod names;
mod notification;
mod outbox;
mod params;
mod sockets;
mod subscriptions;
mod waiting;
mod work;
mod writer;

use crate::meters::Population;
use crate::transport::figures::StreamEnd;
use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use begun::Begun;
use calls::Calls;
use futures_util::StreamExt;
use futures_util::stream::SplitStream;
pub(crate) use names::{PATH, RESET};
use outbox::Outbox;
pub(crate) use params::{Subscribe, Unsubscribe, Work};
pub(crate) use sockets::{Heard, MESSAGE_BYTES_MAX, Sockets};
use std::sync::Arc;
use std::time::Duration;
use subscriptions::Subscriptions;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};
use waiting::Waiting;
use work::Windows;
use writer::Written;

/// How often a peer is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(25);
/// How long it may take to answer that.
const PONG_WAIT: Duration = Duration::from_secs(10);
/// The code with which a socket is closed whose credentials do not hold any more.
const CLOSE_UNAUTHORIZED: u16 = 4401;
/// Bytes of [`Overhead`](crate::transport::overhead::Overhead) that a control frame costs beside its own.
const CONTROL_FRAME_BYTES: u32 = 256;
/// Times by which a message may be larger in transfer than its text: in fragments, each with a header.
const FRAGMENTS_TIMES: u32 = 2;
/// What a peer gets to take the last messages and to close its side.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Why a socket ends.
enum End {
    /// We close it, with this code and reason.
    Close(u16, &'static str),
    /// The peer has closed it, or is gone.
    Gone,
}

impl<C: Send + Sync + 'static> Sockets<C> {
    /// Serves one socket to its end.
    pub(crate) async fn serve(self: Arc<Self>, socket: WebSocket) {
        self.overhead.count_bytes();
        let (sink, mut incoming) = socket.split();
        let (out, outgoing) = Outbox::new();
        let figures = self.dispatcher.figures();
        let subscriptions = Population::default();
        let mut writing = std::pin::pin!(async {
            if writer::write(sink, outgoing).await == Written::Untaken {
                figures.stream_ended(StreamEnd::Slow, subscriptions.get());
            }
        });
        let cut = self.cut.child_token();
        let end = tokio::select! {
            () = &mut writing => End::Gone,
            () = cut.cancelled() => End::Gone,
            end = self.converse(&mut incoming, &subscriptions, out.clone()) => end,
        };
        let End::Close(code, reason) = end else {
            return;
        };
        let closing = async {
            let frame = CloseFrame {
                code,
                reason: reason.into(),
            };
            // The writer ends with it.
            let sent = out.tell(Message::Close(Some(frame)));
            let (_, ()) = tokio::join!(sent, &mut writing);
            // What is thrown away unread could take the close frame along.
            while let Some(Ok(_)) = incoming.next().await {}
        };
        tokio::select! {
            () = cut.cancelled() => {}
            _ = timeout(CLOSE_WAIT, closing) => {}
        }
    }

    /// Waits until the credentials do not hold any more.
    async fn revoked(&self) {
        match &self.session {
            Some(session) => _ = session.ended().await,
            None => std::future::pending().await,
        }
    }

    /// Takes messages and tells events until one side has had enough.
    async fn converse(
        self: &Arc<Self>,
        incoming: &mut SplitStream<WebSocket>,
        own: &Population,
        out: Outbox,
    ) -> End {
        let figures = self.dispatcher.figures();
        let draining = self.draining.child_token();
        let mut revoked = std::pin::pin!(self.revoked());
        let (opened, mut opening) = mpsc::channel::<Begun>(1);
        let windows = Windows::default();
        let mut waiting = Waiting::new();
        let mut calls = Calls::new(self.clone(), out.clone(), opened, windows.clone());
        let mut subscriptions = Subscriptions::new(figures.clone(), own, out.clone(), windows);
        let mut pings = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A ping that is not written yet, and until when it must be answered then.
        let mut ping: Option<oneshot::Receiver<()>> = None;
        let mut pong_by: Option<Instant> = None;
        loop {
            tokio::select! {
                biased;
                () = draining.cancelled() => {
                    figures.stream_ended(StreamEnd::Drained, own.get());
                    return End::Close(close_code::AWAY, "the server is stopping");
                }
                () = &mut revoked => {
                    figures.stream_ended(StreamEnd::Revoked, own.get());
                    return End::Close(CLOSE_UNAUTHORIZED, "the credentials do not hold any more");
                }
                () = self.overhead.exhausted() => {
                    let reason = "too many control frames or fragments";
                    return End::Close(close_code::POLICY, reason);
                }
                message = incoming.next(), if !calls.is_full() => {
                    pong_by = None;
                    self.heard.now();
                    let text = match message {
                        None => return End::Gone,
                        Some(Ok(Message::Close(_))) => return End::Close(close_code::NORMAL, ""),
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                            // Once it is exhausted, the socket is closed above.
                            let _ = self.overhead.spend(CONTROL_FRAME_BYTES);
                            continue;
                        }
                        Some(Ok(Message::Binary(_))) => {
                            return End::Close(close_code::UNSUPPORTED, "text messages only");
                        }
                        Some(Ok(Message::Text(text))) => text,
                        Some(Err(error)) => return of_error(&error),
                    };
                    let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
                    let earned = CONTROL_FRAME_BYTES.saturating_add(bytes.saturating_mul(FRAGMENTS_TIMES));
                    self.overhead.earn(earned);
                    if let Some(read) = self.read(text, &waiting, || calls.place()) {
                        calls.begin(read, &mut subscriptions).await;
                    }
                }
                Some(read) = waiting.next(), if !waiting.is_empty() => {
                    calls.begin(read, &mut subscriptions).await;
                }
                () = calls.room(), if calls.is_full() => {}
                Some(begun) = opening.recv() => match begun {
                    Begun::Stream(opened) => subscriptions.open(*opened).await,
                    Begun::Work(asked) => subscriptions.work(*asked).await,
                },
                () = subscriptions.ended() => {}
                // Whoever does not answer gets no work, and is not given up for it.
                () = self.heard.asked() => {
                    let _ = out.try_ping();
                }
                _ = pings.tick() => {
                    // Written behind what waits; a peer that takes nothing is given up by the writer.
                    if pong_by.is_none() && ping.is_none() {
                        ping = out.try_ping();
                    }
                }
                () = ended(&mut ping), if ping.is_some() => {
                    ping = None;
                    pong_by = Some(Instant::now() + PONG_WAIT);
                }
                () = sleep_until(pong_by.unwrap_or_else(Instant::now)), if pong_by.is_some() && !calls.is_full() => {
                    return End::Gone;
                }
            }
        }
    }
}

/// Waits until the ping was written.
async fn ended(ping: &mut Option<oneshot::Receiver<()>>) {
    if let Some(ping) = ping {
        // Nothing is sent: the other end is dropped.
        let _ = ping.await;
    }
}

/// How the socket is closed after a message that could not be read. The library that found the fault
/// tells it as text only.
fn of_error(error: &axum::Error) -> End {
    let text = error.to_string();
    if text.contains("Message too long") {
        End::Close(close_code::SIZE, "messages have 64 KiB at most")
    } else if text.contains("UTF-8") {
        End::Close(close_code::INVALID, "text is UTF-8")
    } else if text.contains("without closing handshake") {
        End::Gone
    } else if text.contains("protocol error") {
        End::Close(close_code::PROTOCOL, "a frame breaks the protocol")
    } else {
        End::Gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::Service;

    /// Bytes of a socket beside its buffers: thousands are open at once.
    const SOCKET_BYTES_MAX: usize = 8 * 1024;

    fn size<F>(_: impl FnOnce(Arc<Sockets<Service>>, WebSocket) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_socket_is_small() {
        let bytes = size(Sockets::serve);
        assert!(bytes <= SOCKET_BYTES_MAX, "{bytes} bytes");
    }
}

//! One stream as the body of an answer.
//!
//! Waits for two things: the next item of the stream, and the end of the server. Encoded notices are shared with
//! all other bodies and not copied. What the peer does not take stays in the log: the next batch is asked
//! for when the last one was written.

use super::encoding::{encoded, one_line};
use crate::meters::Presence;
use crate::subscription::cursor::Cursor;
use crate::subscription::stream::{Batch, Item, Notices, Reset};
use crate::transport::figures::{Carrier, Figures, StreamEnd};
use axum::body::{Body, Bytes};
use futures_util::stream::unfold;
use serde_json::json;
use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_stream::StreamExt;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// What a client is told to wait before it comes back, in milliseconds: each another time, so that those
/// of a server that was started anew do not come at the same moment.
const RETRY_MS: RangeInclusive<u32> = 1000..=3000;
/// Pause after the log could not be read.
const PAUSE: Duration = Duration::from_secs(1);
/// Failures to read the log, one after the other, after which the stream ends; its client comes back.
const FAILURES_MAX: u32 = 30;

/// A client that is cut off after it has left bytes untaken for so long was too slow. The connection is cut
/// after 30 s of that; the bytes may have been handed over a while after it began.
const UNTAKEN_MIN: Duration = Duration::from_secs(20);

/// What stands before the events.
pub(crate) enum Opening {
    /// The JSON-RPC answer to a call.
    Answer(Vec<u8>),
    /// Something at once, so that the client sees the stream open, and knows its place before the first
    /// event has come; and why it does not begin where it
    /// was asked to, if so.
    Greeting {
        /// The reason.
        reset: Option<Reset>,
        /// In milliseconds, see [`retry_ms`].
        retry: u32,
    },
}

/// What one client is told to wait before it comes back, in milliseconds; `random` is any number.
pub(crate) fn retry_ms(random: u128) -> u32 {
    let spread = RETRY_MS.end() - RETRY_MS.start() + 1;
    let part = u32::try_from(random % u128::from(spread)).expect("it is below the spread");
    RETRY_MS.start() + part
}

impl Opening {
    fn written(self, place: Cursor) -> Bytes {
        match self {
            Self::Answer(mut answer) => {
                one_line(&mut answer);
                let mut message = b"data: ".to_vec();
                message.append(&mut answer);
                message.extend_from_slice(b"\n\n");
                message.into()
            }
            Self::Greeting { reset, retry } => {
                let mut text = format!("id: {place}\nretry: {retry}\n: taskledger\n\n");
                if let Some(reset) = reset {
                    text.push_str(&told_reset(place, reset));
                }
                text.into()
            }
        }
    }
}

/// The event `reset`: the stream does not show all that has happened.
fn told_reset(place: Cursor, reset: Reset) -> String {
    let data = json!({"reason": reset.as_str(), "cursor": place.to_string()});
    format!("id: {place}\nevent: reset\ndata: {data}\n\n")
}

/// A stream that is being told.
pub(crate) struct Telling<K> {
    stream: Notices,
    opening: Option<Bytes>,
    /// The place that the client knows.
    told: Cursor,
    ending: Pin<Box<WaitForCancellationFutureOwned>>,
    failures: u32,
    watched: Watched,
    /// Held until the body is dropped.
    _kept: K,
}

/// A body that is counted while it lives, and why it ends.
struct Watched {
    figures: Arc<Figures>,
    /// Why the stream ends when it is told to: its own end, unless the server's has come.
    draining: CancellationToken,
    /// When the bytes were handed over that the client has not taken yet; `None` while it waits for more.
    handed_over: Option<Instant>,
    _counted: Presence,
}

impl Watched {
    fn told_to_end(&self) {
        let reason = match self.draining.is_cancelled() {
            true => StreamEnd::Drained,
            false => StreamEnd::Revoked,
        };
        self.figures.stream_ended(reason, 1);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Whoever goes away by itself does so within moments of taking the last bytes.
        if self
            .handed_over
            .is_some_and(|at| at.elapsed() >= UNTAKEN_MIN)
        {
            self.figures.stream_ended(StreamEnd::Slow, 1);
        }
    }
}

impl<K: Send + 'static> Telling<K> {
    /// `ending`: cancelled when this stream is to end; `draining`: when all are. `kept`: dropped with the body.
    pub(crate) fn body(
        stream: Notices,
        opening: Opening,
        ending: &CancellationToken,
        (figures, draining): (Arc<Figures>, &CancellationToken),
        kept: K,
    ) -> Body {
        let place = stream.place();
        let telling = Self {
            opening: Some(opening.written(place)),
            told: place,
            stream,
            // A token of its own, so that streams do not meet at one lock each time they wake up.
            ending: Box::pin(ending.child_token().cancelled_owned()),
            failures: 0,
            watched: Watched {
                _counted: figures.stream(Carrier::Sse),
                figures,
                draining: draining.clone(),
                handed_over: None,
            },
            _kept: kept,
        };
        Body::from_stream(unfold(telling, Self::next))
    }

    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        self.watched.handed_over = None;
        let bytes = match self.opening.take() {
            Some(opening) => opening,
            None => self.news().await?,
        };
        self.watched.handed_over = Some(Instant::now());
        Some((Ok(bytes), self))
    }

    /// The next bytes to send; `None` at the end.
    async fn news(&mut self) -> Option<Bytes> {
        loop {
            let item = tokio::select! {
                biased;
                () = &mut self.ending => {
                    self.watched.told_to_end();
                    return None;
                }
                item = self.stream.next() => item?,
            };
            let item = match item {
                Ok(item) => item,
                Err(error) => {
                    tracing::warn!(%error, "a stream waits for the log");
                    self.failures += 1;
                    if self.failures >= FAILURES_MAX {
                        return None;
                    }
                    tokio::select! {
                        () = &mut self.ending => return None,
                        () = sleep(PAUSE) => {}
                    }
                    continue;
                }
            };
            match item {
                // The log may still not answer.
                Item::Silence => return Some(self.heartbeat()),
                Item::Batch(batch) => {
                    self.failures = 0;
                    match batch {
                        Batch::Passed => {}
                        Batch::Reset(reset) => {
                            self.told = self.stream.place();
                            return Some(told_reset(self.told, reset).into());
                        }
                        Batch::Whole(_) | Batch::Notices(_) => {
                            self.told = self.stream.place();
                            let notices = batch.notices().len();
                            self.watched.figures.noticed(Carrier::Sse, notices);
                            return Some(encoded(&batch));
                        }
                    }
                }
            }
        }
    }

    /// A comment; or the new place, when only events of others have passed, so that a client that comes
    /// back does not pass them again. It is no event, because it has no data.
    fn heartbeat(&mut self) -> Bytes {
        let place = self.stream.place();
        if place == self.told {
            return Bytes::from_static(b":\n\n");
        }
        self.told = place;
        format!("id: {place}\n\n").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::store::memory::MemoryStore;
    use crate::subscription::stream::HEARTBEAT;
    use crate::subscription::testing::{append, of_failures};
    use axum::body::BodyDataStream;
    use taskledger_domain::testing::START;

    async fn next(body: &mut BodyDataStream) -> String {
        let bytes = body.next().await.expect("it goes on").unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn clients_are_told_to_come_back_at_different_times() {
        assert_eq!(
            (retry_ms(0), retry_ms(2000), retry_ms(2001)),
            (1000, 3000, 1000)
        );
        assert!(RETRY_MS.contains(&retry_ms(u128::MAX)));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_broken_and_tells_how_far_foreign_events_have_come() {
        // given: a stream of what does not happen
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::at(START))));
        let ending = CancellationToken::new();
        let stream = of_failures(&store, &ending).await;
        let begins = stream.place();
        let opening = Opening::Greeting {
            reset: None,
            retry: 2000,
        };
        let figures = Arc::new(Figures::new([]));
        let mut body =
            Telling::body(stream, opening, &ending, (figures, &ending), ()).into_data_stream();
        // then
        let greeting = format!("id: {begins}\nretry: 2000\n: taskledger\n\n");
        assert_eq!(next(&mut body).await, greeting);
        let begun = Instant::now();
        assert_eq!(next(&mut body).await, ":\n\n");
        assert_eq!(begun.elapsed(), HEARTBEAT);
        // when: others are told something
        append(&store, 0).await;
        append(&store, 1).await;
        // then: the place moves without an event, once
        let moved = next(&mut body).await;
        let place = moved
            .strip_prefix("id: ")
            .and_then(|m| m.strip_suffix("\n\n"));
        assert_eq!(Cursor::parse(place.unwrap()).unwrap().position, 2);
        assert_eq!(next(&mut body).await, ":\n\n");
        // when
        ending.cancel();
        // then
        assert!(body.next().await.is_none());
    }
}

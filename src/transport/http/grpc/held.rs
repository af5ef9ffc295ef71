//! The body of a gRPC stream: it holds what belongs to the stream until it was sent, and ends at the caller's deadline.

use crate::transport::eventbus::Polled;
use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::response::Response;
use http_body::Frame;
use std::any::Any;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

/// An answer whose body holds something until it was sent; trailers go through. At `cut_off` the stream ends with
/// `DEADLINE_EXCEEDED`, and what it held is free, whether its client still reads or not.
pub(super) fn held(
    response: Response,
    cut_off: Option<Instant>,
    kept: impl Send + 'static,
) -> Response {
    let polled = response.extensions().get::<Polled>().cloned();
    response.map(|body| {
        let shared = Arc::new(Shared(Mutex::new(State {
            sending: Some(Sending {
                body,
                polled,
                _kept: Box::new(kept),
            }),
            waits: None,
        })));
        let timer = cut_off.map(|at| {
            let shared = shared.clone();
            AbortOnDropHandle::new(tokio::spawn(async move {
                sleep_until(at).await;
                shared.cut();
            }))
        });
        Body::new(Held {
            shared,
            is_over: false,
            _timer: timer,
        })
    })
}

struct Held {
    shared: Arc<Shared>,
    /// The trailers of a stream that was cut off are sent.
    is_over: bool,
    _timer: Option<AbortOnDropHandle<()>>,
}

struct Shared(Mutex<State>);

struct State {
    /// `None`: it was cut off.
    sending: Option<Sending>,
    /// Whoever waits for the next frame.
    waits: Option<Waker>,
}

struct Sending {
    body: Body,
    polled: Option<Polled>,
    _kept: Box<dyn Any + Send>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // What a panic left of a stream is not polled again.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cut(&self) {
        let mut state = self.state();
        let (sending, waits) = (state.sending.take(), state.waits.take());
        drop(state);
        drop(sending);
        if let Some(waits) = waits {
            waits.wake();
        }
    }
}

/// The trailers of a stream that was cut off.
fn out_of_time() -> Option<Frame<Bytes>> {
    let mut trailers = HeaderMap::new();
    let status = Status::deadline_exceeded("the stream has lasted as long as `grpc-timeout` says");
    // A text without details is always a header.
    status.add_header(&mut trailers).ok()?;
    Some(Frame::trailers(trailers))
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let held = &mut *self;
        if held.is_over {
            return Poll::Ready(None);
        }
        let mut state = held.shared.state();
        let Some(sending) = &mut state.sending else {
            held.is_over = true;
            return Poll::Ready(out_of_time().map(Ok));
        };
        // HTTP/2 asks for more only when the client's window has room beyond what it was given.
        if let Some(polled) = &sending.polled {
            polled.again();
        }
        let polled = Pin::new(&mut sending.body).poll_frame(cx);
        if polled.is_pending() {
            state.waits = Some(cx.waker().clone());
        }
        polled
    }

    // A refusal has headers and nothing else: clients look for its status in the frame that ends the stream.
    fn is_end_stream(&self) -> bool {
        let state = self.shared.state();
        let sending = state.sending.as_ref();
        self.is_over || sending.is_some_and(|sending| sending.body.is_end_stream())
    }

    fn size_hint(&self) -> http_body::SizeHint {
        let state = self.shared.state();
        let sending = state.sending.as_ref();
        sending.map_or_else(Default::default, |sending| sending.body.size_hint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Body as _;
    use std::future::poll_fn;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_nobody_reads_is_cut_off_and_says_so_later() {
        let (kept, stream) = (
            Arc::new(()),
            futures_util::stream::pending::<Result<Bytes, axum::Error>>(),
        );
        let response = Response::new(Body::from_stream(stream));
        let cut_off = Instant::now() + Duration::from_secs(1);
        let mut body = held(response, Some(cut_off), kept.clone()).into_body();
        tokio::time::sleep(Duration::from_millis(900)).await;
        assert_eq!(Arc::strong_count(&kept), 2);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(Arc::strong_count(&kept), 1);
        assert!(!body.is_end_stream());
        let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        let trailers = frame.expect("a frame").expect("no error").into_trailers();
        assert_eq!(trailers.expect("trailers")["grpc-status"], "4");
        assert!(
            poll_fn(|cx| Pin::new(&mut body).poll_frame(cx))
                .await
                .is_none()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_told_of_the_end() {
        let stream = futures_util::stream::pending::<Result<Bytes, axum::Error>>();
        let response = Response::new(Body::from_stream(stream));
        let cut_off = Instant::now() + Duration::from_secs(1);
        let mut body = held(response, Some(cut_off), ()).into_body();
        let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        assert!(frame.expect("a frame").expect("no error").is_trailers());
        assert!(Instant::now() >= cut_off);
    }
}

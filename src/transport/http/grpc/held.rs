//! The body of a stream: what is held for it until it was sent, and the time at which its caller wants it to end.

use crate::transport::eventbus::Polled;
use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::response::Response;
use http_body::Frame;
use std::any::Any;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::Status;

/// An answer whose body holds something until it was sent; trailers go through. At `cut_off` the stream ends with
/// `DEADLINE_EXCEEDED`, and what it held is free.
pub(super) fn held(
    response: Response,
    cut_off: Option<Instant>,
    kept: impl Send + 'static,
) -> Response {
    let polled = response.extensions().get::<Polled>().cloned();
    response.map(|body| {
        Body::new(Held {
            sending: Some(Sending {
                body,
                polled,
                _kept: Box::new(kept),
            }),
            cut_off: cut_off.map(|at| Box::pin(sleep_until(at))),
        })
    })
}

struct Held {
    /// `None`: it was cut off.
    sending: Option<Sending>,
    cut_off: Option<Pin<Box<Sleep>>>,
}

struct Sending {
    body: Body,
    polled: Option<Polled>,
    _kept: Box<dyn Any + Send>,
}

impl Held {
    /// The trailers of a stream that is cut off now.
    fn cut(&mut self) -> Option<Frame<Bytes>> {
        self.sending.take()?;
        let mut trailers = HeaderMap::new();
        let status =
            Status::deadline_exceeded("the stream has lasted as long as `grpc-timeout` says");
        // A text without details is always a header.
        status.add_header(&mut trailers).ok()?;
        Some(Frame::trailers(trailers))
    }
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let held = &mut *self;
        let Some(sending) = &mut held.sending else {
            return Poll::Ready(None);
        };
        // First, because what always has more would never end.
        if let Some(cut_off) = &mut held.cut_off
            && cut_off.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(held.cut().map(Ok));
        }
        // HTTP/2 asks for more only when the client's window has room beyond what it was given.
        if let Some(polled) = &sending.polled {
            polled.again();
        }
        Pin::new(&mut sending.body).poll_frame(cx)
    }

    // A refusal has headers and nothing else: clients look for its status in the frame that ends the stream.
    fn is_end_stream(&self) -> bool {
        self.sending
            .as_ref()
            .is_none_or(|sending| sending.body.is_end_stream())
    }

    fn size_hint(&self) -> http_body::SizeHint {
        let sending = self.sending.as_ref();
        sending.map_or_else(Default::default, |sending| sending.body.size_hint())
    }
}

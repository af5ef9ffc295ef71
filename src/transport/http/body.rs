//! Receives request bodies within limits.

use super::refusal;
use crate::transport::budget::{Full, Share};
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, EXPECT, HeaderMap};
use axum::response::Response;
use futures_util::StreamExt;
use tokio::time::Instant;

/// Bytes of a refused body that are still read and dropped, so that a client that only reads after
/// it has written everything sees the refusal and not a broken connection.
const DRAIN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes reserved on the word of a `content-length`; the rest is reserved as it arrives.
const RESERVE_BYTES_MAX: usize = 1024 * 1024;

/// Why no body could be received.
enum Trouble {
    TooLarge,
    NoRoom(Full),
    Broken,
}

/// The whole body, of at most `bytes_max`, and its part of the bytes in hand, which begins as `share` and is to be kept
/// until the request is answered. A body that arrives in one piece is not copied.
///
/// # Errors
/// The refusal: 413, 503 (too much is being received), 408 (deadline), 400 (broken transfer).
pub(super) async fn receive(
    mut share: Share,
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
    deadline: Instant,
) -> Result<(Bytes, Share), Box<Response>> {
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse::<usize>().ok());
    let waits_for_permission = headers.contains_key(EXPECT);
    let mut stream = body.into_data_stream();
    if announced.is_some_and(|bytes| bytes > bytes_max) {
        if !waits_for_permission {
            drain(stream, deadline);
        }
        return Err(Box::new(refusal::too_large(bytes_max)));
    }
    let collected = collect(&mut stream, &mut share, bytes_max, announced);
    let trouble = match tokio::time::timeout_at(deadline, collected).await {
        Ok(Ok(bytes)) => return Ok((bytes, share)),
        Ok(Err(trouble)) => trouble,
        Err(_) => return Err(Box::new(refusal::too_slow())),
    };
    drop(share);
    Err(Box::new(match trouble {
        Trouble::TooLarge => {
            drain(stream, deadline);
            refusal::too_large(bytes_max)
        }
        Trouble::NoRoom(Full::All) => refusal::too_busy("the server is receiving too much"),
        Trouble::NoRoom(Full::Holder) => {
            refusal::too_busy("the server is receiving as much of this caller as it takes at once")
        }
        Trouble::Broken => refusal::broken(),
    }))
}

async fn collect(
    stream: &mut axum::body::BodyDataStream,
    share: &mut Share,
    bytes_max: usize,
    announced: Option<usize>,
) -> Result<Bytes, Trouble> {
    let mut first = Bytes::new();
    let mut all: Vec<u8> = Vec::new();
    while let Some(piece) = stream.next().await {
        let piece = piece.map_err(|_| Trouble::Broken)?;
        let received = first.len().max(all.len()) + piece.len();
        if received > bytes_max {
            return Err(Trouble::TooLarge);
        }
        share.take(piece.len()).map_err(Trouble::NoRoom)?;
        if first.is_empty() && all.is_empty() {
            first = piece;
            continue;
        }
        if all.is_empty() {
            all.reserve(
                announced
                    .unwrap_or(received)
                    .clamp(received, RESERVE_BYTES_MAX.max(received)),
            );
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&piece);
    }
    Ok(if all.is_empty() { first } else { all.into() })
}

/// Reads and drops what a client goes on sending, while the refusal is on its way to it. Ends at the
/// deadline of the request, and with the connection.
fn drain(mut stream: axum::body::BodyDataStream, deadline: Instant) {
    let dropped = async move {
        let mut bytes = 0;
        while let Some(Ok(piece)) = stream.next().await {
            bytes += piece.len();
            if bytes > DRAIN_BYTES_MAX {
                break;
            }
        }
    };
    // Nobody waits for it: it holds one piece at a time, and the connection ends with it or before.
    drop(tokio::spawn(tokio::time::timeout_at(deadline, dropped)));
}

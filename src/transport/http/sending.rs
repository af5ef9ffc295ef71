//! Large answers on their way to their clients.
//!
//! An answer is in memory until its client has taken it. A client that stops reading loses it after
//! [`PIECE_TIME_MAX`]: the connection breaks off before the announced length, and what is left is freed.

use crate::application::api::Cut;
use crate::transport::budget::Share;
use axum::body::{Body, Bytes};
use futures_util::stream::unfold;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::time::{Instant, timeout_at};

/// Bytes that are handed over at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// Pieces that are handed over before the client has taken them.
const PIECES_AHEAD: usize = 2;
/// How long a client may take for one piece.
pub(super) const PIECE_TIME_MAX: Duration = Duration::from_secs(5);
/// How long it may take for all of them.
const SENDING_TIME_MAX: Duration = Duration::from_secs(120);

/// A body that gives `answer` piece by piece and holds `share` and `kept` until the client has taken it,
/// or has stopped to.
pub(super) fn body<K: Send + 'static>(answer: Vec<u8>, share: Share, kept: K) -> Body {
    let (pieces, taken) = mpsc::channel(PIECES_AHEAD);
    tokio::spawn(async move {
        let _held = (share, kept);
        let bytes_len = answer.len();
        if !hand_over(answer.into(), &pieces).await {
            tracing::warn!(
                answer.bytes = bytes_len,
                "a client does not take its answer, which is cut off"
            );
        }
    });
    Body::from_stream(unfold(Some(taken), |taken| async move {
        let mut taken = taken?;
        match taken.recv().await {
            Some(Piece::Bytes(bytes)) => Some((Ok(bytes), Some(taken))),
            Some(Piece::End) => None,
            None => Some((Err(Cut), None)),
        }
    }))
}

enum Piece {
    Bytes(Bytes),
    End,
}

/// Whether the client took all of it, or is gone.
async fn hand_over(mut answer: Bytes, pieces: &mpsc::Sender<Piece>) -> bool {
    let until = Instant::now() + SENDING_TIME_MAX;
    loop {
        let piece = if answer.is_empty() {
            Piece::End
        } else {
            // A copy, so that what was handed over does not keep the rest in memory.
            let piece = answer.split_to(PIECE_BYTES.min(answer.len()));
            Piece::Bytes(Bytes::copy_from_slice(&piece))
        };
        let is_last = matches!(piece, Piece::End);
        let sending = pieces.send_timeout(piece, PIECE_TIME_MAX);
        match timeout_at(until, sending).await {
            Ok(Ok(())) if is_last => return true,
            Ok(Ok(())) => {}
            Ok(Err(SendTimeoutError::Closed(_))) => return true,
            Ok(Err(SendTimeoutError::Timeout(_))) | Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::budget::{Budget, Full};
    use futures_util::StreamExt;

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_read_arrives_whole_and_gives_back_its_share() {
        let budget = Budget::of(1 << 20);
        let mut share = budget.share();
        share.take(1 << 20).expect("all of it");
        let answer: Vec<u8> = (0..300_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let mut body = body(answer.clone(), share, ()).into_data_stream();
        let mut got = Vec::new();
        while let Some(piece) = body.next().await {
            got.extend_from_slice(&piece.expect("it is not cut off"));
        }
        assert!(got == answer);
        tokio::task::yield_now().await;
        assert_eq!(budget.share().take(1 << 20), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_is_freed_and_cut_off() {
        let budget = Budget::of(1 << 20);
        let mut share = budget.share();
        share.take(1 << 20).expect("all of it");
        let mut body = body(vec![b'1'; 1 << 20], share, ()).into_data_stream();
        assert!(body.next().await.expect("a first piece").is_ok());
        assert_eq!(budget.share().take(1), Err(Full));
        tokio::time::sleep(PIECE_TIME_MAX + Duration::from_millis(1)).await;
        assert_eq!(budget.share().take(1 << 20), Ok(()));
        let mut pieces = Vec::new();
        while let Some(piece) = body.next().await {
            pieces.push(piece.is_ok());
        }
        assert_eq!(pieces, [true, true, false]);
    }
}

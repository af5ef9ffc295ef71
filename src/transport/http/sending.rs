//! Sends large answers to their clients.
//!
//! An answer is in memory until its client has taken it. A client that stops reading loses it after
//! [`PIECE_TIME_MAX`](crate::application::api::PIECE_TIME_MAX): the connection breaks off before the announced length,
//! and what is left is freed.

use crate::application::api::{in_time, pieces};
use crate::transport::budget::Share;
use axum::body::Body;

/// Bytes that are handed over at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// A body that gives `answer` piece by piece and holds `share` and `kept` until the client has taken it,
/// or has stopped to.
pub(super) fn body<K: Send + 'static>(answer: Vec<u8>, share: Share, kept: K) -> Body {
    let (sender, pieces) = pieces();
    tokio::spawn(async move {
        let _held = (share, kept);
        let sending = async {
            for piece in answer.chunks(PIECE_BYTES) {
                // A copy, so that what was handed over does not keep the rest in memory.
                sender.send(piece.to_vec()).await?;
            }
            sender.end().await
        };
        if !in_time(sending).await {
            tracing::warn!(
                answer.bytes = answer.len(),
                "a client does not take its answer, which is cut off"
            );
        }
    });
    Body::from_stream(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::api::PIECE_TIME_MAX;
    use crate::transport::budget::{Budget, Full};
    use futures_util::StreamExt;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_read_arrives_whole_and_gives_back_its_share() {
        let budget = Budget::of(1 << 20);
        let mut share = budget.share_of_all();
        share.take(1 << 20).expect("all of it");
        let answer: Vec<u8> = (0..300_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let mut body = body(answer.clone(), share, ()).into_data_stream();
        let mut got = Vec::new();
        while let Some(piece) = body.next().await {
            got.extend_from_slice(&piece.expect("it is not cut off"));
        }
        assert!(got == answer);
        tokio::task::yield_now().await;
        assert_eq!(budget.share_of_all().take(1 << 20), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_is_freed_and_cut_off() {
        let budget = Budget::of(1 << 20);
        let mut share = budget.share_of_all();
        share.take(1 << 20).expect("all of it");
        let mut body = body(vec![b'1'; 1 << 20], share, ()).into_data_stream();
        assert!(body.next().await.expect("a first piece").is_ok());
        assert_eq!(budget.share_of_all().take(1), Err(Full::All));
        tokio::time::sleep(PIECE_TIME_MAX + Duration::from_millis(1)).await;
        assert_eq!(budget.share_of_all().take(1 << 20), Ok(()));
        let mut pieces = Vec::new();
        while let Some(piece) = body.next().await {
            pieces.push(piece.is_ok());
        }
        assert_eq!(pieces, [true, true, false]);
    }
}

//! Channels for answers that are sent piece by piece to receivers that may be slow or stop reading.
//!
//! Owns how far the sender of an answer may be ahead, and how long its receiver may take.

use futures_util::Stream;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::time::timeout;

/// Pieces that are handed over before the receiver has taken them.
const PIECES_AHEAD: usize = 2;
/// How long a receiver may take for one piece: whoever stops reading must not keep a place.
pub const PIECE_TIME_MAX: Duration = Duration::from_secs(5);
/// How long one answer may take to be received: a long one keeps the database from tidying up behind it.
/// The slowest receiver that gets an answer of 256 MiB takes 2 MiB/s.
const SENDING_TIME_MAX: Duration = Duration::from_secs(120);

/// The answer stopped before its end: what was received is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer was cut off")]
pub struct Cut;

/// The pieces of an answer, in order. Dropping them ends the sending.
#[derive(Debug)]
pub struct Pieces {
    receiver: mpsc::Receiver<Piece>,
    ended: bool,
}

#[derive(Debug)]
enum Piece {
    Bytes(Vec<u8>),
    End,
}

impl Stream for Pieces {
    type Item = Result<Vec<u8>, Cut>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let piece = std::task::ready!(self.receiver.poll_recv(cx));
        self.ended = !matches!(piece, Some(Piece::Bytes(_)));
        Poll::Ready(match piece {
            Some(Piece::Bytes(bytes)) => Some(Ok(bytes)),
            Some(Piece::End) => None,
            None => Some(Err(Cut)),
        })
    }
}

/// Hands over the pieces of one answer. Dropped before [`PieceSender::end`], it cuts the answer off.
#[derive(Debug)]
pub struct PieceSender(mpsc::Sender<Piece>);

/// An answer is not sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsent {
    /// Its receiver is gone.
    Gone,
    /// Its receiver did not take a piece in time.
    TooSlow,
}

/// The two ends of an answer.
#[must_use]
pub fn pieces() -> (PieceSender, Pieces) {
    let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
    let ended = false;
    (PieceSender(sender), Pieces { receiver, ended })
}

impl PieceSender {
    /// Hands over the next piece, as soon as the receiver has room for it.
    ///
    /// # Errors
    /// [`Unsent`].
    pub async fn send(&self, bytes: Vec<u8>) -> Result<(), Unsent> {
        self.hand_over(Piece::Bytes(bytes)).await
    }

    /// The answer is whole.
    ///
    /// # Errors
    /// [`Unsent`].
    pub async fn end(self) -> Result<(), Unsent> {
        self.hand_over(Piece::End).await
    }

    async fn hand_over(&self, piece: Piece) -> Result<(), Unsent> {
        let sent = self.0.send_timeout(piece, PIECE_TIME_MAX).await;
        sent.map_err(|error| match error {
            SendTimeoutError::Closed(_) => Unsent::Gone,
            SendTimeoutError::Timeout(_) => Unsent::TooSlow,
        })
    }
}

/// Carries out `sending`, for as long as an answer may take to be received. Whether its receiver took
/// it in time, or is gone.
pub async fn in_time(sending: impl Future<Output = Result<(), Unsent>>) -> bool {
    let sent = timeout(SENDING_TIME_MAX, sending).await;
    matches!(sent, Ok(Ok(()) | Err(Unsent::Gone)))
}

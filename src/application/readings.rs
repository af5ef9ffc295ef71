//! Long answers, which are produced while they are sent, in bounded memory.
//!
//! Owns the tasks that read ahead of the door, and how many of them there may be, because each
//! holds a connection to the read models, or a flow that was rebuilt as it was. An answer of one
//! piece is not long; from the read models it needs no place.

use super::encoder::{Moment, TreeEncoder};
use super::error::{Error, Failure};
use super::pieces::{Pieces, in_time, pieces};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use taskledger_projections::{self as projections, Node, Reading};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Long answers that are sent at once, and never more than half of the connections to the read models,
/// so that short reads always find one.
const READINGS_MAX: usize = 2;
/// Flows that are rebuilt as they were at once, until their answers are sent: each may hold a state
/// of 100,000 tasks.
pub const REBUILDS_MAX: usize = 2;
/// Bytes of one long answer: some four times a tree of 100,000 usual tasks.
pub const READING_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How long a read waits for a place, and for the read models, before it is answered `Busy`.
pub(super) const READ_WAIT: Duration = Duration::from_secs(2);
/// Milliseconds after which a place for a long answer may be free.
const RETRY_AFTER_MS: u64 = 500;

/// A long answer, in the words of the door that asked for it.
#[derive(Debug)]
pub enum Encoded {
    /// All of it.
    Whole(Vec<u8>),
    /// Piece by piece.
    Pieces(Pieces),
}

/// The source of a long answer.
pub(super) trait Source: Send + 'static {
    /// The next tasks; none after the last.
    fn next(&mut self) -> impl Future<Output = Result<Vec<Node>, Error>> + Send;
    /// Whether all tasks were given.
    fn is_ended(&self) -> bool;
    /// What the answer shows when it is about the past.
    fn as_of(&self) -> Option<Moment>;
}

impl Source for Reading {
    async fn next(&mut self) -> Result<Vec<Node>, Error> {
        self.next().await.map_err(failed)
    }
    fn is_ended(&self) -> bool {
        self.is_ended()
    }
    fn as_of(&self) -> Option<Moment> {
        None
    }
}

/// An answer that is being made of a source's tasks.
struct Encoding<S, E> {
    source: S,
    /// Gone when the last piece was given.
    encoder: Option<E>,
    bytes: u64,
}

impl<S: Source, E: TreeEncoder> Encoding<S, E> {
    /// The next piece; `None` after the last one.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if self.encoder.is_none() {
            return Ok(None);
        }
        let nodes = self.source.next().await?;
        self.encode(&nodes)
    }

    /// The piece that shows the source's last `nodes`.
    fn encode(&mut self, nodes: &[Node]) -> Result<Option<Vec<u8>>, Error> {
        let Some(mut encoder) = self.encoder.take() else {
            return Ok(None);
        };
        for node in nodes {
            encoder.task(node.depth, &node.task);
        }
        let piece = if self.source.is_ended() {
            encoder.finish(self.source.as_of())
        } else {
            let piece = encoder.take();
            self.encoder = Some(encoder);
            piece
        };
        self.bytes += piece.len() as u64;
        if self.bytes > READING_BYTES_MAX {
            let reason = format!("the answer is larger than {READING_BYTES_MAX} bytes");
            return Err(Failure::ReadModel(reason).into());
        }
        Ok(Some(piece))
    }
}

/// Reads long answers. One per server.
pub struct Readings {
    room: Arc<Semaphore>,
    room_max: usize,
    rebuilds: Arc<Semaphore>,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl fmt::Debug for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readings").finish_non_exhaustive()
    }
}

impl Readings {
    /// Nothing is read yet; the read models have so many connections for queries.
    #[must_use]
    pub fn of(connections: u32) -> Self {
        let half = usize::try_from(connections / 2).unwrap_or(usize::MAX);
        let room_max = half.clamp(1, READINGS_MAX);
        Self {
            room: Arc::new(Semaphore::new(room_max)),
            room_max,
            rebuilds: Arc::new(Semaphore::new(REBUILDS_MAX)),
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }
}

impl Readings {
    /// What `open` opens, written by `encoder`; `None` when it opens nothing. Returns with the first
    /// piece, so that errors up to there are errors of the call.
    ///
    /// # Errors
    /// Those of `open` and of reading the first piece; `Busy` when the places for long answers
    /// stay taken.
    pub(super) async fn read<F>(
        &self,
        open: impl Fn() -> F,
        encoder: impl TreeEncoder,
    ) -> Result<Option<Encoded>, Error>
    where
        F: Future<Output = Result<Option<Reading>, projections::Error>>,
    {
        let mut place = None;
        let (source, nodes) = loop {
            let Some(mut reading) = open().await.map_err(failed)? else {
                return Ok(None);
            };
            let nodes = reading.next().await.map_err(failed)?;
            if !reading.is_ended() {
                place = place.or_else(|| self.room.clone().try_acquire_owned().ok());
            }
            if reading.is_ended() || place.is_some() {
                break (reading, nodes);
            }
            // Whoever waits must not hold a connection; what it has read may be old by then.
            drop((reading, nodes));
            place = Some(self.place().await?);
        };
        self.encoded(source, nodes, encoder, place).map(Some)
    }

    async fn place(&self) -> Result<OwnedSemaphorePermit, Error> {
        let reason = || format!("{} long answers are being sent", self.room_max);
        permit(&self.room, reason).await
    }

    /// The right to rebuild a flow as it was, until it is dropped.
    ///
    /// # Errors
    /// `Busy` when all are taken and stay so.
    pub async fn begin_rebuild(&self) -> Result<OwnedSemaphorePermit, Error> {
        let reason = || format!("{REBUILDS_MAX} flows are being rebuilt as they were");
        permit(&self.rebuilds, reason).await
    }

    /// Everything that `source` gives, while it keeps `place`. Returns with the first piece.
    ///
    /// # Errors
    /// Those of reading the first piece.
    pub(super) async fn all(
        &self,
        mut source: impl Source,
        encoder: impl TreeEncoder,
        place: OwnedSemaphorePermit,
    ) -> Result<Encoded, Error> {
        let nodes = source.next().await?;
        self.encoded(source, nodes, encoder, Some(place))
    }

    /// The answer that begins with `nodes`, the first of the source. What is longer keeps `place`.
    fn encoded(
        &self,
        source: impl Source,
        nodes: Vec<Node>,
        encoder: impl TreeEncoder,
        place: Option<OwnedSemaphorePermit>,
    ) -> Result<Encoded, Error> {
        let mut encoding = Encoding {
            source,
            encoder: Some(encoder),
            bytes: 0,
        };
        let first = encoding.encode(&nodes)?.unwrap_or_default();
        if encoding.encoder.is_none() {
            return Ok(Encoded::Whole(first));
        }
        Ok(Encoded::Pieces(self.send(encoding, first, place)))
    }

    fn send<S: Source, E: TreeEncoder>(
        &self,
        mut encoding: Encoding<S, E>,
        first: Vec<u8>,
        place: Option<OwnedSemaphorePermit>,
    ) -> Pieces {
        let (sender, pieces) = pieces();
        let stop = self.stop.clone();
        let sending = async move {
            let mut next = Some(first);
            while let Some(bytes) = next {
                sender.send(bytes).await?;
                next = match encoding.next().await {
                    Ok(next) => next,
                    Err(error) => {
                        tracing::error!(error = %error, "a long answer is cut off");
                        return Ok(());
                    }
                };
            }
            sender.end().await
        };
        self.tracker.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                in_time = in_time(sending) => if !in_time {
                    tracing::warn!("a long answer was not received in time and is cut off");
                },
            }
            drop(place);
        });
        pieces
    }

    /// Cuts off what is being sent and waits until nothing is read any more.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

async fn permit(
    room: &Arc<Semaphore>,
    reason: impl FnOnce() -> String,
) -> Result<OwnedSemaphorePermit, Error> {
    match timeout(READ_WAIT, room.clone().acquire_owned()).await {
        Ok(place) => Ok(place.expect("the places for long answers are never closed")),
        Err(_) => Err(Error::Busy {
            reason: reason(),
            retry_after_ms: RETRY_AFTER_MS,
        }),
    }
}

/// A read that did not succeed: "not now" where waiting helps, else a fault of ours.
pub(super) fn failed(error: projections::Error) -> Error {
    if error.is_passing() {
        return Error::Busy {
            reason: error.to_string(),
            retry_after_ms: RETRY_AFTER_MS,
        };
    }
    Failure::ReadModel(error.to_string()).into()
}

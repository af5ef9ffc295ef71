//! A watcher's stream as doors consume it: a [`Stream`] of items, with the place behind the last one.

use super::{BATCH_BYTES_MAX, Batch, Reader, Source, Until};
use crate::cursor::Cursor;
use crate::live::Published;
use futures_util::stream::unfold;
use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use taskledger_log::Error;
use tokio::time::{Instant, Sleep, sleep, timeout_at};
use tokio_stream::Stream;

/// Silence after which a stream yields [`Item::Silence`], so that a door can show proxies and clients that
/// it lives.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// A stream that ends with a run gives no more than one item in this time, but for its end: its reader, who waits for
/// that, is not woken for each step of a run whose steps take less.
const PACE: Duration = Duration::from_millis(10);

/// An item of a stream.
#[derive(Debug)]
pub enum Item {
    /// Notices, or news of the stream itself.
    Batch(Batch),
    /// For [`HEARTBEAT`] there was nothing to tell. The place may have moved, because what is not for this
    /// watcher has passed.
    Silence,
}

type Items = dyn Stream<Item = (Cursor, Result<Item, Error>)> + Send;

/// The notices that one watcher gets, in order, without a gap or a repetition.
///
/// An error says that the log cannot be read; polling again goes on at the same place. While a poll is
/// pending, the stream may hold one of the few turns to read history: who has begun to poll it polls on
/// until there is an item, or drops it.
pub struct Notices {
    items: Pin<Box<Items>>,
    place: Cursor,
    held: Option<Held>,
}

/// What a stream keeps for whoever opened it.
type Held = Box<dyn Any + Send>;

impl Notices {
    /// Behind everything that was yielded, or had passed when the last item was.
    #[must_use]
    pub const fn place(&self) -> Cursor {
        self.place
    }

    /// Keeps something until the stream is dropped, such as a place among those that one user may have open.
    pub fn hold(&mut self, what: impl Any + Send) {
        self.held = Some(Box::new(what));
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices")
            .field("place", &self.place)
            .field("held", &self.held.is_some())
            .finish_non_exhaustive()
    }
}

impl Stream for Notices {
    type Item = Result<Item, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.items.as_mut().poll_next(context));
        Poll::Ready(next.map(|(place, item)| {
            self.place = place;
            item
        }))
    }
}

impl From<Reader> for Notices {
    /// Silence counts from now on.
    fn from(reader: Reader) -> Self {
        let place = reader.place();
        let listening = Box::new(Listening {
            reader,
            read: None,
            spoken: Instant::now(),
            silence: Box::pin(sleep(HEARTBEAT)),
        });
        Self {
            items: Box::pin(unfold(listening, Listening::next)),
            place,
            held: None,
        }
    }
}

/// A reader, and since when it has had nothing to tell. Boxed, because it moves with each item.
struct Listening {
    reader: Reader,
    /// What the reader gave behind the last item.
    read: Option<Result<Option<Batch>, Error>>,
    spoken: Instant,
    silence: Pin<Box<Sleep>>,
}

impl Listening {
    async fn next(mut self: Box<Self>) -> Option<((Cursor, Result<Item, Error>), Box<Self>)> {
        let item = self.item().await.transpose()?;
        Some(((self.reader.place(), item), self))
    }

    async fn item(&mut self) -> Result<Option<Item>, Error> {
        loop {
            tokio::select! {
                biased;
                batch = next(&mut self.read, &mut self.reader) => {
                    let batch = match batch? {
                        Some(Batch::Notices(notices)) => Some(self.gathered(notices).await),
                        batch @ (None | Some(Batch::Whole(_) | Batch::Passed | Batch::Reset(_))) => batch,
                    };
                    if !matches!(batch, Some(Batch::Passed)) {
                        self.spoken = Instant::now();
                    }
                    return Ok(batch.map(Item::Batch));
                }
                // Set anew when it ends, not with each item: that would cost more than the item.
                () = &mut self.silence => {
                    let now = Instant::now();
                    let is_due = self.spoken + HEARTBEAT <= now;
                    if is_due {
                        self.spoken = now;
                    }
                    self.silence.as_mut().reset(self.spoken + HEARTBEAT);
                    if is_due {
                        return Ok(Some(Item::Silence));
                    }
                }
            }
        }
    }
}

/// What comes next; first what was read behind the last item.
async fn next(
    read: &mut Option<Result<Option<Batch>, Error>>,
    reader: &mut Reader,
) -> Result<Option<Batch>, Error> {
    match read.take() {
        Some(read) => read,
        None => reader.next().await,
    }
}

impl Listening {
    /// These notices and those that come until the next item is due, or the stream ends.
    async fn gathered(&mut self, mut notices: Vec<Arc<Published>>) -> Batch {
        let due = self.spoken + PACE;
        let mut bytes: usize = notices.iter().map(|it| it.notice.weight()).sum();
        // A page of the log that was begun and dropped would be read again.
        while self.reader.until != Until::Forever
            && self.reader.source == Source::Live
            && !self.reader.ended
            && bytes < BATCH_BYTES_MAX
            && Instant::now() < due
        {
            match timeout_at(due, self.reader.next()).await {
                Ok(Ok(Some(Batch::Notices(more)))) => {
                    bytes += more.iter().map(|it| it.notice.weight()).sum::<usize>();
                    notices.extend(more);
                }
                Ok(other) => {
                    self.read = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        Batch::Notices(notices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Live;
    use crate::stream::Filter;
    use crate::testing::{Immediate, append};
    use futures_util::FutureExt;
    use taskledger_clock::ManualClock;
    use taskledger_domain::testing::{START, id};
    use taskledger_log::memory::MemoryStore;
    use tokio_stream::StreamExt;
    use tokio_util::sync::CancellationToken;

    async fn all(store: &Arc<MemoryStore>) -> Notices {
        let (service, live) = Live::new(store.clone(), Arc::new(Immediate));
        tokio::spawn(service.run(CancellationToken::new()));
        let from = crate::stream::From::Now;
        let begun = Reader::begin(live, Filter::default(), from, Until::Forever).await;
        begun.expect("the log in memory can be read").0.into()
    }

    fn store() -> Arc<MemoryStore> {
        Arc::new(MemoryStore::new(Arc::new(ManualClock::at(START))))
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stops_waiting_for_an_item_misses_none() {
        // given
        let store = store();
        let mut stream = all(&store).await;
        let mut positions = Vec::new();
        let mut take = |item: Option<Result<Item, Error>>| {
            let Some(Ok(Item::Batch(batch))) = item else {
                panic!("{item:?}");
            };
            positions.extend(batch.notices().iter().map(|p| p.cursor.position));
        };
        for version in 0..5 {
            // when: it is polled until there is nothing, and given up
            while let Some(item) = stream.next().now_or_never() {
                take(item);
            }
            append(&store, version).await;
        }
        while stream.place().position < 5 {
            take(stream.next().await);
        }
        // then
        assert_eq!(positions, [1, 2, 3, 4, 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_counts_from_the_last_notice() {
        // given
        let store = store();
        let mut stream = all(&store).await;
        let begun = Instant::now();
        tokio::time::sleep(HEARTBEAT / 2).await;
        // when
        append(&store, 0).await;
        // then
        while !matches!(stream.next().await, Some(Ok(Item::Silence))) {
            assert_eq!(begun.elapsed(), HEARTBEAT / 2);
        }
        assert_eq!(begun.elapsed(), HEARTBEAT + HEARTBEAT / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_ends_with_a_run_gathers_what_comes_within_its_pace() {
        // given: the stream of a flow, and one event long after it was opened
        let store = store();
        let (service, live) = Live::new(store.clone(), Arc::new(Immediate));
        tokio::spawn(service.run(CancellationToken::new()));
        let filter = Filter {
            flow: Some(id("task").as_flow()),
            ..Filter::default()
        };
        let from = crate::stream::From::Now;
        let begun = Reader::begin(live, filter, from, Until::NothingRuns).await;
        let mut stream: Notices = begun.expect("the log in memory can be read").0.into();
        let mut positions = async || match stream.next().await {
            Some(Ok(Item::Batch(batch))) => {
                let notices = batch.notices().iter();
                notices.map(|it| it.cursor.position).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        tokio::time::sleep(10 * PACE).await;
        let begun = Instant::now();
        // when
        append(&store, 0).await;
        let first = positions().await;
        append(&store, 1).await;
        let (rest, ()) = tokio::join!(positions(), async {
            tokio::time::sleep(PACE / 2).await;
            append(&store, 2).await;
        });
        // then: the first one came at once, the others together
        assert_eq!((first, rest), (vec![1], vec![2, 3]));
        assert_eq!(begun.elapsed(), PACE);
    }
}

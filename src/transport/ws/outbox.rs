//! The queue to the writer of one socket: a bounded number of messages, and a bounded number of bytes of answers.
//!
//! A socket takes an answer whole, so an answer is in memory until its peer has taken it. Those of one
//! socket share their bytes: a peer that asks much and takes nothing stops its own calls.

use crate::transport::budget::Share as Counted;
use axum::body::Bytes;
use axum::extract::ws::Message;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// Messages that wait to be written, of all subscriptions and calls of a socket. Who produces more
/// waits; what happens meanwhile stays in the log.
const MESSAGES_MAX: usize = 32;
/// Bytes of answers of a socket that wait to be written, and of one long answer: a tree of 100,000 tasks.
pub(super) const ANSWERS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes in which answers are counted.
const UNIT_BYTES: usize = 1024;
const UNITS: usize = ANSWERS_BYTES_MAX / UNIT_BYTES;

/// What happens if a message is not written. Dropping this does it.
pub(super) struct Unwritten(Option<Box<dyn FnOnce() + Send>>);

impl Unwritten {
    /// Does this.
    pub(super) fn then(unwritten: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(unwritten)))
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        if let Some(unwritten) = self.0.take() {
            unwritten();
        }
    }
}

/// A message and its part of the bytes, given back when it was written.
pub(super) struct Outgoing {
    pub(super) message: Message,
    unwritten: Option<Unwritten>,
    _share: Option<OwnedSemaphorePermit>,
    /// Its part of the bytes of all connections.
    _counted: Option<Counted>,
    /// Dropped when the message was written and flushed.
    _flushed: Option<oneshot::Sender<()>>,
}

impl Outgoing {
    /// It is on its way to its peer.
    pub(super) fn written(&mut self) {
        if let Some(mut unwritten) = self.unwritten.take() {
            unwritten.0 = None;
        }
    }
}

/// A message in the queue. Behind a pointer: the queue keeps room for 32 from its beginning, and each socket has one.
pub(super) type InQueue = Box<Outgoing>;

/// Bytes for a long answer.
pub(super) struct Share(OwnedSemaphorePermit);

/// Where everything that one socket is sent goes through. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    queue: mpsc::Sender<InQueue>,
    units: Arc<Semaphore>,
}

/// Nobody writes any more.
pub(super) struct Closed;

impl Outbox {
    /// A way, and its other end.
    pub(super) fn new() -> (Self, mpsc::Receiver<InQueue>) {
        let (queue, outgoing) = mpsc::channel(MESSAGES_MAX);
        let units = Arc::new(Semaphore::new(UNITS));
        (Self { queue, units }, outgoing)
    }

    /// Hands over a message that is no answer, when there is room.
    ///
    /// # Errors
    /// [`Closed`].
    pub(super) async fn tell(&self, message: Message) -> Result<(), Closed> {
        self.put(message, None, (None, None)).await
    }

    /// The same for a message that must not be lost.
    ///
    /// # Errors
    /// [`Closed`].
    pub(super) async fn tell_or(
        &self,
        message: Message,
        unwritten: Unwritten,
    ) -> Result<(), Closed> {
        self.put(message, Some(unwritten), (None, None)).await
    }

    /// Hands over a ping if there is room at once. The result ends when the ping was written, or cannot be.
    pub(super) fn try_ping(&self) -> Option<oneshot::Receiver<()>> {
        let (flushed, on_flushed) = oneshot::channel();
        let outgoing = Outgoing {
            message: Message::Ping(Bytes::new()),
            unwritten: None,
            _share: None,
            _counted: None,
            _flushed: Some(flushed),
        };
        let sent = self.queue.try_send(Box::new(outgoing));
        sent.is_ok().then_some(on_flushed)
    }

    /// Hands over an answer, when there is room. A socket that is gone gets none.
    pub(super) async fn answer(&self, answer: Vec<u8>) {
        let share = self.share(answer.len()).await;
        self.answer_with(answer, share).await;
    }

    /// The same for an answer that takes a part of the bytes of all connections until it was written, and that may
    /// hold what must not be lost.
    pub(super) async fn answer_counted(
        &self,
        answer: Vec<u8>,
        counted: Counted,
        unwritten: Option<Unwritten>,
    ) {
        let share = self.share(answer.len()).await;
        self.put_answer(answer, unwritten, (share, Some(counted)))
            .await;
    }

    /// The same for one that was gathered in its share.
    pub(super) async fn answer_gathered(&self, answer: Vec<u8>, share: Share, counted: Counted) {
        self.put_answer(answer, None, (share, Some(counted))).await;
    }

    /// Waits until a long answer may be gathered.
    pub(super) async fn room(&self) -> Share {
        self.share(ANSWERS_BYTES_MAX).await
    }

    /// Hands over an answer that was gathered in its share.
    pub(super) async fn answer_with(&self, answer: Vec<u8>, share: Share) {
        self.put_answer(answer, None, (share, None)).await;
    }

    async fn put_answer(
        &self,
        answer: Vec<u8>,
        unwritten: Option<Unwritten>,
        (mut share, counted): (Share, Option<Counted>),
    ) {
        let needed = units(answer.len());
        let surplus = share.0.num_permits().saturating_sub(needed);
        drop(share.0.split(surplus));
        let text = String::from_utf8(answer).expect("answers are JSON texts");
        let shares = (Some(share.0), counted);
        let _ = self.put(Message::text(text), unwritten, shares).await;
    }

    async fn share(&self, bytes: usize) -> Share {
        let count = u32::try_from(units(bytes)).expect("the units fit");
        let share = self.units.clone().acquire_many_owned(count).await;
        Share(share.expect("the semaphore is never closed"))
    }

    async fn put(
        &self,
        message: Message,
        unwritten: Option<Unwritten>,
        (share, counted): (Option<OwnedSemaphorePermit>, Option<Counted>),
    ) -> Result<(), Closed> {
        let outgoing = Outgoing {
            message,
            unwritten,
            _share: share,
            _counted: counted,
            _flushed: None,
        };
        let sent = self.queue.send(Box::new(outgoing)).await;
        sent.map_err(|_| Closed)
    }
}

/// Never more than there are: an answer that is too large waits for all of them.
fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT_BYTES).clamp(1, UNITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// Bytes that the queue of a socket with nothing to say keeps, and what is written at once: thousands are open.
    const QUEUE_BYTES_MAX: usize = 512;

    #[test]
    fn an_empty_queue_is_small() {
        let bytes = MESSAGES_MAX * size_of::<InQueue>();
        assert!(bytes <= QUEUE_BYTES_MAX, "{bytes} bytes");
    }

    #[tokio::test]
    async fn answers_that_nobody_takes_leave_no_room_for_others() {
        // given: a peer that takes nothing
        let (out, mut outgoing) = Outbox::new();
        out.answer(vec![b'1'; ANSWERS_BYTES_MAX - UNIT_BYTES]).await;
        let mut cx = Context::from_waker(Waker::noop());
        // when
        let mut second = pin!(out.answer(vec![b'2'; 2 * UNIT_BYTES]));
        assert_eq!(second.as_mut().poll(&mut cx), Poll::Pending);
        // then: what is no answer goes on
        assert!(out.tell(Message::text("event")).await.is_ok());
        // when the first one was written
        drop(outgoing.recv().await);
        // then
        second.await;
        assert_eq!(out.units.available_permits(), UNITS - 2);
    }

    #[tokio::test]
    async fn what_must_not_be_lost_is_noticed_wherever_its_message_ends() {
        let lost = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let unwritten = || {
            let lost = lost.clone();
            Unwritten::then(move || _ = lost.fetch_add(1, std::sync::atomic::Ordering::SeqCst))
        };
        let count = || lost.load(std::sync::atomic::Ordering::SeqCst);
        let (out, mut outgoing) = Outbox::new();
        let told = out.tell_or(Message::text("written"), unwritten()).await;
        assert!(told.is_ok());
        outgoing.recv().await.unwrap().written();
        assert_eq!(count(), 0);
        assert!(
            out.tell_or(Message::text("taken"), unwritten())
                .await
                .is_ok()
        );
        drop(outgoing.recv().await);
        assert_eq!(count(), 1);
        assert!(
            out.tell_or(Message::text("queued"), unwritten())
                .await
                .is_ok()
        );
        drop(outgoing);
        assert_eq!(count(), 2);
        assert!(
            out.tell_or(Message::text("late"), unwritten())
                .await
                .is_err()
        );
        assert_eq!(count(), 3);
    }

    #[tokio::test]
    async fn what_a_long_answer_did_not_need_is_given_back() {
        let (out, mut outgoing) = Outbox::new();
        let share = out.room().await;
        assert_eq!(out.units.available_permits(), 0);
        out.answer_with(b"short".to_vec(), share).await;
        assert_eq!(out.units.available_permits(), UNITS - 1);
        drop(outgoing.recv().await);
        assert_eq!(out.units.available_permits(), UNITS);
    }
}

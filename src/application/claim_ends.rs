//! Tells sockets when claims of their workers end: one reader of the log for all sockets of the node, which reads while
//! there are any. A socket that holds nothing is told of nothing, however much happens.
//!
//! Ends are read from the log, so they count whichever door or node they came through.

use super::error::Error;
use crate::subscription::live::{Live, Published};
use crate::subscription::notice::{Kind, TakenBack};
use crate::subscription::stream::{Filter, From, Item, Notices, Reader, Until};
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use taskledger_domain::TaskId;
use taskledger_domain::task::Status;
use tokio::sync::{self, Notify, mpsc};
use tokio::time::sleep;
use tokio_stream::StreamExt;

/// Ends that are remembered, in case their claims are still on their way to a socket: those of about two seconds of
/// a server that does nothing else. About 60 bytes each.
const RECENT_MAX: usize = 16_384;
/// Pause after the log could not be read.
const PAUSE: Duration = Duration::from_secs(1);

/// A task and the number of an attempt.
type Attempt = (TaskId, u32);

/// The end of an attempt that somebody has claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimEnd {
    /// The task that its worker holds no more.
    pub task: TaskId,
    /// Number of the attempt that has ended, from 1.
    pub attempt: u32,
    /// Why it was taken from its worker, if it was.
    pub taken_back: Option<TakenBack>,
}

/// Tells sockets which of their claims have ended.
#[derive(Debug)]
pub(super) struct ClaimEnds {
    live: Arc<Live>,
    inner: Mutex<Inner>,
    /// Held by whoever has the reader begin.
    beginning: sync::Mutex<()>,
    /// Told when the last watcher has gone.
    left: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    is_read: bool,
    /// Who is told, by number. What waits there is at most one end for each claim that is held.
    watchers: HashMap<u64, mpsc::UnboundedSender<ClaimEnd>>,
    last: u64,
    /// Which watcher holds a claim, until that ends.
    held: HashMap<Attempt, u64>,
    /// Who is told of the end of a claim beside the one that holds it.
    followed: HashMap<Attempt, Vec<u64>>,
    recent: HashMap<Attempt, ClaimEnd>,
    /// The same, the latest last.
    order: VecDeque<Attempt>,
}

impl Inner {
    fn ended(&mut self, end: ClaimEnd) {
        let attempt = (end.task, end.attempt);
        for watcher in self.followed.remove(&attempt).unwrap_or_default() {
            self.tell(watcher, end);
        }
        if let Some(watcher) = self.held.remove(&attempt) {
            self.tell(watcher, end);
        } else if self.recent.insert(attempt, end).is_none() {
            self.order.push_back(attempt);
            if self.order.len() > RECENT_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.recent.remove(&oldest);
            }
        }
    }

    fn hold(&mut self, watcher: u64, attempt: Attempt) {
        match self.recent.get(&attempt) {
            Some(end) => self.tell(watcher, *end),
            None => drop(self.held.insert(attempt, watcher)),
        }
    }

    fn follow(&mut self, watcher: u64, attempt: Attempt) {
        if let Some(end) = self.recent.get(&attempt) {
            return self.tell(watcher, *end);
        }
        let watchers = &self.watchers;
        let followers = self.followed.entry(attempt).or_default();
        followers.retain(|other| *other != watcher && watchers.contains_key(other));
        followers.push(watcher);
    }

    /// Nobody reads any more, and whoever watches is told so.
    fn clear(&mut self) {
        let last = self.last;
        *self = Self {
            last,
            ..Self::default()
        };
    }

    fn tell(&self, watcher: u64, end: ClaimEnd) {
        if let Some(tell) = self.watchers.get(&watcher) {
            // One that is gone holds nothing any more.
            let _ = tell.send(end);
        }
    }
}

impl ClaimEnds {
    pub(super) fn of(live: Arc<Live>) -> Arc<Self> {
        Arc::new(Self {
            live,
            inner: Mutex::default(),
            beginning: sync::Mutex::default(),
            left: Notify::new(),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner
            .lock()
            .expect("no code panics while it holds the ends of claims")
    }

    /// A watcher, whose claims may begin from now on.
    pub(super) async fn watch(
        self: &Arc<Self>,
        place: Box<dyn Any + Send + Sync>,
    ) -> Result<ClaimWatch, Error> {
        let _beginning = self.beginning.lock().await;
        let (tell, ends) = mpsc::unbounded_channel();
        let (id, is_read) = {
            let mut inner = self.inner();
            inner.last += 1;
            let id = inner.last;
            inner.watchers.insert(id, tell);
            (id, inner.is_read)
        };
        let held = HeldClaims {
            ends: self.clone(),
            id,
            _place: place,
        };
        if !is_read {
            let live = self.live.clone();
            let (reader, _) =
                Reader::begin(live, Filter::default(), From::Now, Until::Forever).await?;
            self.inner().is_read = true;
            tokio::spawn(self.clone().read(reader.into()));
        }
        Ok(ClaimWatch { held, ends })
    }

    /// Reads the log until nobody watches, or the log ends.
    async fn read(self: Arc<Self>, mut notices: Notices) {
        loop {
            tokio::select! {
                item = notices.next() => match item {
                    Some(Ok(Item::Batch(batch))) => self.happened(batch.notices()),
                    Some(Ok(Item::Silence)) => {}
                    Some(Err(error)) => {
                        tracing::warn!(%error, "subscriptions for work wait for the log");
                        sleep(PAUSE).await;
                    }
                    None => {
                        self.inner().clear();
                        return;
                    }
                },
                () = self.left.notified() => {
                    let mut inner = self.inner();
                    if inner.watchers.is_empty() {
                        inner.clear();
                        return;
                    }
                }
            }
        }
    }

    fn happened(&self, notices: &[Arc<Published>]) {
        let mut inner = self.inner();
        for notice in notices.iter().map(|published| &published.notice) {
            let ends = match notice.kind {
                Kind::StatusUpdate => notice.status != Status::InProgress,
                Kind::Suspended => true,
                Kind::ProgressUpdate
                | Kind::OutputAppended
                | Kind::Completed
                | Kind::Failed
                | Kind::Cancelled
                | Kind::SuspensionReminder
                | Kind::SuspensionEnded
                | Kind::ClaimRejected
                | Kind::CompletionRejected
                | Kind::RunCompleted
                | Kind::RunFailed
                | Kind::RunCancelled => false,
            };
            if let (true, Some(attempt)) = (ends, notice.attempt) {
                inner.ended(ClaimEnd {
                    task: notice.task_id,
                    attempt,
                    taken_back: notice.taken_back,
                });
            }
        }
    }
}

/// What a socket learns of the claims of one subscription. When `ends` gives nothing more, the log has ended.
#[derive(Debug)]
pub struct ClaimWatch {
    /// To say what is held.
    pub held: HeldClaims,
    /// What has ended of that.
    pub ends: mpsc::UnboundedReceiver<ClaimEnd>,
}

/// The claims of one subscription; dropping it ends the watch.
pub struct HeldClaims {
    ends: Arc<ClaimEnds>,
    id: u64,
    /// Among the streams that one user may have open.
    _place: Box<dyn Any + Send + Sync>,
}

impl fmt::Debug for HeldClaims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldClaims").finish_non_exhaustive()
    }
}

impl HeldClaims {
    /// From now on the end of this attempt is told; at once if it has ended already.
    pub fn hold(&self, task: TaskId, attempt: u32) {
        self.ends.inner().hold(self.id, (task, attempt));
    }

    /// The same for an attempt that others may hold too.
    pub fn follow(&self, task: TaskId, attempt: u32) {
        self.ends.inner().follow(self.id, (task, attempt));
    }
}

impl Drop for HeldClaims {
    fn drop(&mut self) {
        let mut inner = self.ends.inner();
        inner.watchers.remove(&self.id);
        if inner.watchers.is_empty() {
            drop(inner);
            self.ends.left.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_domain::testing::id;

    fn end(name: &str, attempt: u32, taken_back: Option<TakenBack>) -> ClaimEnd {
        ClaimEnd {
            task: id(name),
            attempt,
            taken_back,
        }
    }

    fn watcher(inner: &mut Inner, number: u64) -> mpsc::UnboundedReceiver<ClaimEnd> {
        let (tell, ends) = mpsc::unbounded_channel();
        inner.watchers.insert(number, tell);
        ends
    }

    #[test]
    fn an_end_is_told_to_whoever_holds_the_claim_and_to_nobody_else() {
        let mut inner = Inner::default();
        let (mut first, mut second) = (watcher(&mut inner, 1), watcher(&mut inner, 2));
        inner.hold(1, (id("a"), 1));
        inner.hold(2, (id("b"), 1));
        let cancelled = end("a", 1, Some(TakenBack::Cancelled));
        inner.ended(end("a", 2, None));
        inner.ended(cancelled);
        inner.ended(cancelled);
        assert_eq!(first.try_recv(), Ok(cancelled));
        assert!(first.try_recv().is_err() && second.try_recv().is_err());
        assert_eq!(inner.held.len(), 1);
    }

    #[test]
    fn an_end_that_overtakes_its_claim_is_told_when_that_is_held() {
        let mut inner = Inner::default();
        let mut ends = watcher(&mut inner, 1);
        let lost = end("a", 1, Some(TakenBack::Lost));
        inner.ended(lost);
        inner.hold(1, (id("a"), 1));
        assert_eq!(ends.try_recv(), Ok(lost));
    }

    #[test]
    fn the_ends_that_are_remembered_have_a_limit() {
        let mut inner = Inner::default();
        for attempt in 0..2 * u32::try_from(RECENT_MAX).unwrap() {
            inner.ended(end("a", attempt, None));
        }
        assert_eq!(inner.order.len(), RECENT_MAX);
        assert_eq!(inner.recent.len(), RECENT_MAX);
    }
}

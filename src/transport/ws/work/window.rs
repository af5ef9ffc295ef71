//! The unfinished claims of a subscription, and how many more it may have.

use crate::subscription::notice::TakenBack;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use taskledger_domain::{LeaseId, TaskId};
use tokio::sync::Notify;

/// Claims of other sockets that a subscription follows, and those that are to be looked up.
const FOLLOWED_MAX: usize = 1000;

/// The unfinished claims of one subscription.
#[derive(Debug)]
pub(in crate::transport::ws) struct Window {
    size: usize,
    inner: Mutex<Inner>,
    /// Told when one has ended.
    freed: Notify,
    /// Told when a claim of another socket was renewed.
    renewed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    held: HashMap<TaskId, Held>,
    /// Claims of other sockets that were renewed through this one, with their attempt; `None` for those that are not
    /// of the worker of this subscription. They take no room.
    followed: HashMap<TaskId, (LeaseId, Option<u32>)>,
    /// Those that were not looked up yet.
    unknown: VecDeque<(TaskId, LeaseId)>,
}

#[derive(Debug)]
struct Held {
    attempt: u32,
    lease: LeaseId,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The worker does not know of it yet.
    Undelivered,
    /// The worker has it.
    Told,
    /// It ended before the worker was told of it.
    Ended(Option<TakenBack>),
}

impl Window {
    /// Room for so many.
    pub(in crate::transport::ws) fn of(size: usize) -> Self {
        Self {
            size,
            inner: Mutex::default(),
            freed: Notify::new(),
            renewed: Notify::new(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner
            .lock()
            .expect("no code panics while it holds a window")
    }

    /// How many more there may be; waits until there may be one.
    pub(super) async fn room(&self) -> usize {
        loop {
            // Made before the look, so that no end is missed.
            let freed = self.freed.notified();
            let room = self.size.saturating_sub(self.inner().held.len());
            if room > 0 {
                return room;
            }
            freed.await;
        }
    }

    /// From now on the claim takes room. To be called before its worker is told of it.
    pub(super) fn hold(&self, task: TaskId, attempt: u32, lease: LeaseId) {
        let mut inner = self.inner();
        let held = Held {
            attempt,
            lease,
            state: State::Undelivered,
        };
        inner.held.insert(task, held);
    }

    /// The worker was told of the claim. If it has ended meanwhile it takes no room any more; why it was taken
    /// back, if it was.
    pub(super) fn told(&self, task: TaskId, lease: LeaseId) -> Option<TakenBack> {
        let mut inner = self.inner();
        let Entry::Occupied(mut entry) = inner.held.entry(task) else {
            return None;
        };
        if entry.get().lease != lease {
            return None;
        }
        match entry.get().state {
            State::Undelivered => {
                entry.get_mut().state = State::Told;
                None
            }
            State::Told => None,
            State::Ended(reason) => {
                entry.remove();
                drop(inner);
                self.freed.notify_one();
                reason
            }
        }
    }

    /// An attempt has ended, as the log says. What the worker must be told, if anything.
    pub(super) fn ended(
        &self,
        task: TaskId,
        attempt: u32,
        reason: Option<TakenBack>,
    ) -> Option<(LeaseId, TakenBack)> {
        let mut inner = self.inner();
        let followed = inner.followed.get(&task).copied();
        if let Some((lease, _)) = followed.filter(|(_, followed)| *followed == Some(attempt)) {
            inner.followed.remove(&task);
            return Some((lease, reason?));
        }
        let held = inner.held.get_mut(&task);
        let held = held.filter(|held| held.attempt == attempt)?;
        if held.state != State::Told {
            held.state = State::Ended(reason);
            return None;
        }
        let lease = held.lease;
        inner.held.remove(&task);
        drop(inner);
        self.freed.notify_one();
        Some((lease, reason?))
    }

    /// The worker has ended the claim itself, or knows that it does not hold it.
    fn finished(&self, task: TaskId, lease: LeaseId) {
        let mut inner = self.inner();
        if inner.followed.get(&task).is_some_and(|it| it.0 == lease) {
            inner.followed.remove(&task);
        }
        if inner
            .held
            .get(&task)
            .is_some_and(|held| held.lease == lease)
        {
            inner.held.remove(&task);
            drop(inner);
            self.freed.notify_one();
        }
    }
}

impl Window {
    /// The worker of this socket has renewed a claim.
    fn renewed(&self, task: TaskId, lease: LeaseId) {
        let mut inner = self.inner();
        let is_held = inner.held.get(&task).is_some_and(|it| it.lease == lease);
        let is_followed = inner.followed.get(&task).is_some_and(|it| it.0 == lease);
        let is_known = is_held || is_followed || inner.unknown.contains(&(task, lease));
        if !is_known && inner.followed.len() + inner.unknown.len() < FOLLOWED_MAX {
            inner.unknown.push_back((task, lease));
            drop(inner);
            self.renewed.notify_one();
        }
    }

    /// A claim of another socket that was renewed through this one; waits until there is one.
    pub(super) async fn renewed_elsewhere(&self) -> (TaskId, LeaseId) {
        loop {
            // Made before the look, so that no renewal is missed.
            let renewed = self.renewed.notified();
            if let Some(claim) = self.inner().unknown.pop_front() {
                return claim;
            }
            renewed.await;
        }
    }

    /// From now on the end of such a claim is told; `None`: it is not this worker's.
    pub(super) fn follow(&self, task: TaskId, lease: LeaseId, attempt: Option<u32>) {
        self.inner().followed.insert(task, (lease, attempt));
    }
}

/// The windows of one socket. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(in crate::transport::ws) struct Windows(Arc<Mutex<Vec<Weak<Window>>>>);

impl Windows {
    fn all(&self) -> MutexGuard<'_, Vec<Weak<Window>>> {
        self.0
            .lock()
            .expect("no code panics while it holds the windows")
    }

    /// A window of this socket, as long as somebody keeps it.
    pub(in crate::transport::ws) fn open(&self, size: usize) -> Arc<Window> {
        let window = Arc::new(Window::of(size));
        let mut all = self.all();
        all.retain(|window| window.strong_count() > 0);
        all.push(Arc::downgrade(&window));
        window
    }

    /// A call of this socket has ended a claim, or was told that it is not held.
    pub(in crate::transport::ws) fn finished(&self, task: TaskId, lease: LeaseId) {
        for window in self.all().iter().filter_map(Weak::upgrade) {
            window.finished(task, lease);
        }
    }

    /// A call of this socket has renewed a claim.
    pub(in crate::transport::ws) fn renewed(&self, task: TaskId, lease: LeaseId) {
        for window in self.all().iter().filter_map(Weak::upgrade) {
            window.renewed(task, lease);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use taskledger_domain::testing::id;

    fn lease(name: &str) -> LeaseId {
        LeaseId(id(name).0)
    }

    fn held(window: &Window, name: &str) -> (TaskId, LeaseId) {
        let (task, lease) = (id(name), lease(name));
        window.hold(task, 1, lease);
        assert_eq!(window.told(task, lease), None);
        (task, lease)
    }

    fn room(window: &Window) -> Option<usize> {
        window.room().now_or_never()
    }

    #[test]
    fn a_full_window_has_room_when_a_claim_ends_through_this_socket_or_another() {
        let windows = Windows::default();
        let window = windows.open(2);
        assert_eq!(room(&window), Some(2));
        let (a, of_a) = held(&window, "a");
        let (b, _) = held(&window, "b");
        assert_eq!(room(&window), None);
        windows.finished(a, of_a);
        assert_eq!(room(&window), Some(1));
        // The log says the same later.
        assert_eq!(window.ended(a, 1, None), None);
        assert_eq!(window.ended(b, 1, None), None);
        assert_eq!(room(&window), Some(2));
    }

    #[test]
    fn a_claim_that_was_taken_back_is_told_once_and_takes_no_room() {
        let window = Window::of(1);
        let (task, lease) = held(&window, "a");
        let reason = Some(TakenBack::Cancelled);
        assert_eq!(
            window.ended(task, 1, reason),
            Some((lease, TakenBack::Cancelled))
        );
        assert_eq!(window.ended(task, 1, reason), None);
        assert_eq!(room(&window), Some(1));
    }

    #[test]
    fn an_end_while_the_claim_is_told_is_told_behind_it() {
        let window = Window::of(1);
        let (task, lease) = (id("a"), lease("a"));
        let lost = Some(TakenBack::Lost);
        window.hold(task, 1, lease);
        assert_eq!(window.ended(task, 1, lost), None);
        assert_eq!(window.told(task, lease), Some(TakenBack::Lost));
        assert_eq!(room(&window), Some(1));
    }

    #[test]
    fn a_claim_of_another_socket_is_followed_when_it_is_renewed_and_takes_no_room() {
        let windows = Windows::default();
        let window = windows.open(1);
        let (task, of_task) = (id("a"), lease("a"));
        windows.renewed(task, of_task);
        windows.renewed(task, of_task);
        let elsewhere = || window.renewed_elsewhere().now_or_never();
        assert_eq!(elsewhere(), Some((task, of_task)));
        window.follow(task, of_task, Some(3));
        windows.renewed(task, of_task);
        assert_eq!((elsewhere(), room(&window)), (None, Some(1)));
        let lost = Some(TakenBack::Lost);
        assert_eq!(window.ended(task, 2, lost), None);
        assert_eq!(
            window.ended(task, 3, lost),
            Some((of_task, TakenBack::Lost))
        );
        assert_eq!(window.ended(task, 3, lost), None);
    }

    #[test]
    fn an_end_of_another_attempt_or_under_another_lease_changes_nothing() {
        let windows = Windows::default();
        let window = windows.open(1);
        let (task, _) = held(&window, "a");
        assert_eq!(window.ended(task, 2, Some(TakenBack::Lost)), None);
        windows.finished(task, lease("b"));
        assert_eq!(room(&window), None);
    }
}

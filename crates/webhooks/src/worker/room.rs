//! Limits on concurrent attempts: in all, and to one host.
//!
//! Whoever waits for a host holds no place of the others, so hosts that do not answer take up their own
//! places only. Places are given in the order in which they were asked for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
pub(super) struct Room {
    all: Arc<Semaphore>,
    hosts: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
    per_host: usize,
    /// Endpoints that wait for their host.
    parked: AtomicUsize,
}

/// A host, while somebody has to do with it.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: Arc<str>,
    places: Arc<Semaphore>,
}

/// The right to one attempt.
#[derive(Debug)]
pub(super) struct Place {
    _all: OwnedSemaphorePermit,
    _host: OwnedSemaphorePermit,
}

impl Room {
    pub(super) fn new(all: usize, per_host: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all.max(1))),
            hosts: Mutex::default(),
            per_host: per_host.max(1),
            parked: AtomicUsize::new(0),
        }
    }

    fn hosts(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, Arc<Semaphore>>> {
        self.hosts
            .lock()
            .expect("no code panics while it holds the hosts")
    }

    /// The host of a URL.
    pub(super) fn host(&self, url: &str) -> Host {
        let parsed = url::Url::parse(url).ok();
        let name = parsed
            .as_ref()
            .and_then(url::Url::host_str)
            .unwrap_or_default();
        let name: Arc<str> = Arc::from(name);
        let new = || Arc::new(Semaphore::new(self.per_host));
        let places = self.hosts().entry(name.clone()).or_insert_with(new).clone();
        Host { name, places }
    }

    /// Forgets a host when nobody else has to do with it.
    pub(super) fn leave(&self, host: Host) {
        let mut hosts = self.hosts();
        let Host { name, places } = host;
        drop(places);
        if hosts
            .get(&name)
            .is_some_and(|places| Arc::strong_count(places) == 1)
        {
            hosts.remove(&name);
        }
    }

    /// Waits for a place. Who gives up waiting loses its place in the queue.
    pub(super) async fn enter(&self, host: &Host) -> Place {
        const OPEN: &str = "places are never closed";
        let of_host = match host.places.clone().try_acquire_owned() {
            Ok(place) => place,
            Err(_) => {
                let _parked = Parked::new(&self.parked);
                host.places.clone().acquire_owned().await.expect(OPEN)
            }
        };
        let of_all = self.all.clone().acquire_owned().await.expect(OPEN);
        Place {
            _all: of_all,
            _host: of_host,
        }
    }

    /// Endpoints that wait for their host.
    pub(super) fn parked(&self) -> usize {
        self.parked.load(Ordering::Relaxed)
    }
}

struct Parked<'a>(&'a AtomicUsize);

impl<'a> Parked<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn who_waits_for_a_host_leaves_room_for_others() {
        let room = Room::new(3, 1);
        let (slow, other) = (
            room.host("https://Slow.example/a"),
            room.host("http://other"),
        );
        let same = room.host("http://slow.example:8080/b");
        let _first = room.enter(&slow).await;

        let mut waiting = Box::pin(room.enter(&same));
        assert!((&mut waiting).now_or_never().is_none());
        assert_eq!(room.parked(), 1);
        let _second = room.enter(&other).now_or_never().expect("there is room");
        drop(waiting);
        assert_eq!(room.parked(), 0);
    }

    #[tokio::test]
    async fn a_host_is_forgotten_with_its_last_endpoint() {
        let room = Room::new(1, 1);
        let (one, two) = (room.host("http://a"), room.host("http://a"));
        room.leave(one);
        assert_eq!(room.hosts().len(), 1);
        room.leave(two);
        assert_eq!(room.hosts().len(), 0);
    }
}

//! Workers on simulated time, over deliveries in memory, towards receivers that do what a test says.

mod endpoints;
mod faults;
mod owners;
mod several;
mod sharing;

use super::*;
use crate::delivery::{Cause, DeliveryId};
use crate::endpoint::EndpointId;
use crate::memory::{Delivery, MemoryDeliveries, MemoryOwners, State};
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use taskledger_clock::Clock;
use taskledger_domain::{TaskId, Timestamp};
use taskledger_net::egress::{self, Class, Incoming};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

const START: Timestamp = Timestamp(1_767_225_600_000_000);

/// Goes with tokio's time, and can be set like a machine's.
#[derive(Debug)]
struct Simulated {
    began: Instant,
    skew_ms: AtomicI64,
    /// The clock of a server never goes back.
    latest: AtomicI64,
}

impl Clock for Simulated {
    fn now(&self) -> Timestamp {
        let now = self.wall().0;
        Timestamp(self.latest.fetch_max(now, Ordering::Relaxed).max(now))
    }
    fn wall(&self) -> Timestamp {
        let ms = i64::try_from(self.began.elapsed().as_millis()).unwrap();
        Timestamp(START.0 + (ms + self.skew_ms.load(Ordering::Relaxed)) * 1000)
    }
    fn uuid(&self) -> Uuid {
        Uuid::from_u128(1)
    }
}

/// What a receiver does with a request.
#[derive(Debug, Clone, Copy)]
enum Does {
    /// Answers with a status.
    Answers(u16),
    /// Answers with a status and `Retry-After`.
    Asks(u16, &'static str),
    /// Answers after a while.
    After(Duration, u16),
    /// Never answers.
    Hangs,
    /// The attempt breaks.
    Panics,
}

type Rule = Box<dyn Fn(usize) -> Does + Send + Sync>;

/// A request as a receiver saw it.
#[derive(Debug, Clone)]
struct Seen {
    host: String,
    at: Instant,
    id: String,
    timestamp: i64,
    delivery: DeliveryId,
}

/// All receivers.
#[derive(Default)]
struct Receivers {
    rules: Mutex<HashMap<String, Rule>>,
    seen: Mutex<Vec<Seen>>,
    /// Requests under way, and the most there were: in all, for each host and for each delivery.
    open: Mutex<HashMap<String, (usize, usize)>>,
}

impl std::fmt::Debug for Receivers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Receivers")
    }
}

struct Open<'a>(&'a Receivers, [String; 3]);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        for key in &self.1 {
            self.0.open.lock().unwrap().get_mut(key).unwrap().0 -= 1;
        }
    }
}

impl Receivers {
    fn open(&self, keys: [String; 3]) -> Open<'_> {
        let mut open = self.open.lock().unwrap();
        for key in &keys {
            let (now, most) = open.entry(key.clone()).or_default();
            *now += 1;
            *most = (*most).max(*now);
        }
        Open(self, keys)
    }

    fn most(&self, key: &str) -> usize {
        self.open
            .lock()
            .unwrap()
            .get(key)
            .map_or(0, |(_, most)| *most)
    }

    fn under_way(&self) -> usize {
        self.open
            .lock()
            .unwrap()
            .get("all")
            .map_or(0, |(now, _)| *now)
    }
}

#[async_trait]
impl Sender for Receivers {
    async fn send(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
        limit: Duration,
    ) -> Result<Incoming, egress::Error> {
        let url = url::Url::parse(url).unwrap();
        let host = url.host_str().unwrap().to_owned();
        let delivery = std::str::from_utf8(&body).unwrap().to_owned();
        let text = |name: &str| headers[name].to_str().unwrap().to_owned();
        let _open = self.open(["all".to_owned(), host.clone(), format!("#{delivery}")]);
        let nth = {
            let mut seen = self.seen.lock().unwrap();
            seen.push(Seen {
                host: host.clone(),
                at: Instant::now(),
                id: text("webhook-id"),
                timestamp: text("webhook-timestamp").parse().unwrap(),
                delivery: DeliveryId(delivery.parse().unwrap()),
            });
            seen.iter().filter(|s| s.host == host).count()
        };
        let does = self
            .rules
            .lock()
            .unwrap()
            .get(&host)
            .map_or(Does::Answers(200), |r| r(nth));
        let begun = Instant::now();
        let (status, asks, after) = match does {
            Does::Answers(status) => (status, None, Duration::from_millis(10)),
            Does::Asks(status, asks) => (status, Some(asks), Duration::from_millis(10)),
            Does::After(after, status) => (status, None, after),
            Does::Hangs => (200, None, Duration::MAX),
            Does::Panics => panic!("the receiver of a test breaks the attempt"),
        };
        if timeout(limit, sleep(after)).await.is_err() {
            return Err(egress::Error {
                class: Class::Timeout,
                detail: String::new(),
                remote: None,
                duration: begun.elapsed(),
            });
        }
        let mut headers = HeaderMap::new();
        if let Some(asks) = asks {
            headers.insert("retry-after", HeaderValue::from_static(asks));
        }
        Ok(Incoming {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: Bytes::new(),
            truncated: false,
            cut: false,
            remote: None,
            duration: begun.elapsed(),
        })
    }
}

/// A running worker.
struct Running {
    handle: Handle,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

struct World {
    store: Arc<MemoryDeliveries>,
    owners: Arc<MemoryOwners>,
    receivers: Arc<Receivers>,
    clock: Arc<Simulated>,
    workers: Vec<Running>,
}

impl World {
    /// One worker, as it is by default.
    fn new() -> Self {
        let mut world = Self::idle();
        world.start(Options::default());
        world
    }

    /// Nobody works.
    fn idle() -> Self {
        let clock = Simulated {
            began: Instant::now(),
            skew_ms: AtomicI64::new(0),
            latest: AtomicI64::new(0),
        };
        Self {
            store: Arc::default(),
            owners: Arc::default(),
            receivers: Arc::default(),
            clock: Arc::new(clock),
            workers: Vec::new(),
        }
    }

    fn start(&mut self, options: Options) {
        let parts = Parts {
            deliveries: self.store.clone(),
            owners: self.owners.clone(),
            sender: self.receivers.clone(),
            clock: self.clock.clone(),
        };
        let (service, handle) = Service::new(parts, options);
        let stop = CancellationToken::new();
        let task = tokio::spawn(service.run(stop.clone()));
        self.workers.push(Running { handle, stop, task });
    }

    /// Stops the worker that began first; how long that took.
    async fn stop(&mut self) -> Duration {
        let worker = self.workers.remove(0);
        let begun = Instant::now();
        worker.stop.cancel();
        worker.task.await.expect("the worker does not panic");
        begun.elapsed()
    }

    /// An endpoint at `http://{host}/`, whose requests the rule answers by their number.
    fn endpoint(
        &self,
        n: u128,
        host: &str,
        rule: impl Fn(usize) -> Does + Send + Sync + 'static,
    ) -> EndpointId {
        let id = EndpointId(Uuid::from_u128(n));
        self.store
            .add_endpoint(id, &format!("http://{host}/"), Vec::new());
        self.receivers
            .rules
            .lock()
            .unwrap()
            .insert(host.to_owned(), Box::new(rule));
        id
    }

    /// A message about nothing in particular, due now.
    fn message(&self, endpoint: EndpointId) -> DeliveryId {
        self.store.add_message(endpoint, None, self.clock.now())
    }

    fn about(&self, endpoint: EndpointId, task: u128) -> DeliveryId {
        let task = TaskId(Uuid::from_u128(task));
        self.store
            .add_message(endpoint, Some(task), self.clock.now())
    }

    /// Waits until something holds, for `bound` of simulated time.
    async fn until(&self, bound: Duration, what: &str, holds: impl Fn(&Self) -> bool) {
        let step = Duration::from_millis(5).max(bound / 20_000);
        let waiting = async {
            while !holds(self) {
                sleep(step).await;
            }
        };
        if timeout(bound, waiting).await.is_err() {
            panic!("within {bound:?}: {what}");
        }
    }

    /// Waits until a delivery is in a state.
    async fn ends(&self, id: DeliveryId, state: State, bound: Duration) -> Delivery {
        let what = format!("{id:?} is {state:?}");
        self.until(bound, &what, |w| w.store.delivery(id).state == state)
            .await;
        self.store.delivery(id)
    }

    /// Waits until nothing is held, and nothing recorded is still to come.
    async fn idles(&self) {
        self.until(SECOND * 60, "nobody holds anything", |w| {
            w.store.held() == 0
        })
        .await;
    }

    fn seen(&self) -> Vec<Seen> {
        self.receivers.seen.lock().unwrap().clone()
    }

    fn seen_by(&self, host: &str) -> usize {
        self.seen().iter().filter(|s| s.host == host).count()
    }

    fn counts(&self) -> Counts {
        self.workers[0].handle.counts()
    }
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn arrives(_: usize) -> Does {
    Does::Answers(200)
}

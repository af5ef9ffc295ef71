//! The read models follow the log: catching up, living, failing, being rebuilt.
#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

use async_trait::async_trait;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taskledger::store::{Append, ClaimKey, Error, EventStore, Outcome, Page, Resolution, Snapshot};
use taskledger::subscription::feed::{BATCH_EVENTS_MAX, Feed};
use taskledger::subscription::rebuild::rebuild;
use taskledger::subscription::runner::{Handle, Lagging, Options, Service, State};
use taskledger_domain::flow::{Event, Specification, TaskCreated, TaskDeleted, TaskRenamed};
use taskledger_domain::task::Priority;
use taskledger_domain::{
    EventId, FlowId, Metadata, Payload, Position, Recorded, TaskId, Timestamp, Version,
};
use taskledger_projections::ReadModels;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Long enough never to be waited out by a test that passes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A log in memory that only reads; events are put in by the test.
#[derive(Debug)]
struct Log {
    events: Mutex<Vec<Arc<Recorded>>>,
    head: watch::Sender<Position>,
    /// Reads that fail before the next one succeeds.
    failures: AtomicUsize,
    /// Reads so far.
    reads: AtomicUsize,
    corrupt_at: Option<Position>,
}

impl Log {
    fn new(corrupt_at: Option<Position>) -> Arc<Self> {
        Arc::new(Self {
            events: Mutex::new(Vec::new()),
            head: watch::channel(0).0,
            failures: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            corrupt_at,
        })
    }

    fn push(&self, flow: FlowId, event: Event) -> Position {
        let mut events = self.events.lock().unwrap();
        let position = events.len() as u64 + 1;
        let time = Timestamp(1_700_000_000_000_000 + position as i64);
        events.push(Arc::new(Recorded {
            position,
            flow,
            version: position,
            id: EventId(id(1_000_000 + position)),
            time,
            recorded_at: time,
            metadata: Metadata {
                actor: "test".into(),
                correlation: "test".into(),
                causation: None,
                trace: None,
            },
            event: Arc::new(event),
        }));
        drop(events);
        self.head.send_replace(position);
        position
    }

    /// A flow of one task.
    fn create(&self, n: u64, inputs: Payload) -> Position {
        let task_id = TaskId(id(n));
        let specification = Specification {
            inputs,
            schemas: None,
            params: None,
            method: None,
            retry: None,
            timeout_ms: None,
            deadline: None,
        };
        let event = Event::TaskCreated(TaskCreated {
            task_id,
            ordinal: 0,
            parent_id: None,
            name: format!("task {n}"),
            user_id: None,
            priority: Priority::NORMAL,
            dependencies: Vec::new(),
            specification,
            copied_from: None,
            run_id: None,
        });
        self.push(task_id.as_flow(), event)
    }

    fn rename(&self, n: u64) -> Position {
        let task_id = TaskId(id(n));
        let name = "renamed".to_owned();
        self.push(
            task_id.as_flow(),
            Event::TaskRenamed(TaskRenamed { task_id, name }),
        )
    }
}

fn id(n: u64) -> Uuid {
    uuid::Builder::from_random_bytes(u128::from(n).to_be_bytes()).into_uuid()
}

#[async_trait]
impl EventStore for Log {
    async fn append(&self, _: Append) -> Result<Outcome, Error> {
        Err(Error::Unavailable("this log only reads".to_owned()))
    }
    async fn resolve(&self, _: FlowId, _: &[EventId]) -> Result<Resolution, Error> {
        Err(Error::Unavailable("this log only reads".to_owned()))
    }
    async fn read_stream(
        &self,
        _: FlowId,
        _: Version,
        _: usize,
        _: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        Err(Error::Unavailable("this log has no streams".to_owned()))
    }
    async fn read_stream_back(
        &self,
        _: FlowId,
        _: Version,
        _: usize,
        _: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        Err(Error::Unavailable("this log has no streams".to_owned()))
    }
    async fn read_versions_within(
        &self,
        _: FlowId,
        _: &[Version],
        _: usize,
    ) -> Result<Vec<Arc<Recorded>>, Error> {
        Err(Error::Unavailable("this log has no streams".to_owned()))
    }
    async fn read_all(&self, after: Position, limit: usize) -> Result<Page, Error> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let fails = |n: usize| n.checked_sub(1);
        if self
            .failures
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails)
            .is_ok()
        {
            return Err(Error::Unavailable("not now".to_owned()));
        }
        if let Some(position) = self.corrupt_at.filter(|p| *p == after + 1) {
            let reason = "checksum".to_owned();
            return Err(Error::Corrupt { position, reason });
        }
        let all = self.events.lock().unwrap();
        let end = self
            .corrupt_at
            .map_or(all.len(), |p| p as usize - 1)
            .min(all.len());
        let events: Vec<_> = all[..end]
            .iter()
            .skip(after as usize)
            .take(limit)
            .cloned()
            .collect();
        Ok(Page {
            next: events.last().map_or(after, |e| e.position),
            at_end: after as usize + events.len() == all.len(),
            events,
        })
    }
    async fn head(&self) -> Result<Position, Error> {
        Ok(self.events.lock().unwrap().len() as u64)
    }
    async fn stream_head(&self, _: FlowId) -> Result<Option<(Version, Position)>, Error> {
        Ok(None)
    }
    fn watch(&self) -> watch::Receiver<Position> {
        self.head.subscribe()
    }
    async fn claims(
        &self,
        keys: &[ClaimKey],
        _: Timestamp,
    ) -> Result<Vec<Option<Arc<str>>>, Error> {
        Ok(vec![None; keys.len()])
    }
    async fn raise_fence(&self, _: &str) -> Result<u64, Error> {
        Err(Error::Unavailable("this log only reads".to_owned()))
    }
    async fn load_snapshot(&self, _: FlowId, _: u32) -> Result<Option<Snapshot>, Error> {
        Ok(None)
    }
    async fn save_snapshot(&self, _: FlowId, _: Snapshot) -> Result<(), Error> {
        Ok(())
    }
}

struct Running {
    models: Arc<ReadModels>,
    handle: Handle,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    async fn stop(self) -> Arc<ReadModels> {
        self.stop.cancel();
        self.task.await.unwrap();
        self.models
    }
}

async fn models(folder: &tempfile::TempDir) -> Arc<ReadModels> {
    let path = folder.path().join("read_models.db");
    let options = taskledger_projections::Options::new(path);
    Arc::new(ReadModels::open(&options).await.unwrap().0)
}

async fn start(log: &Arc<Log>, models: Arc<ReadModels>) -> Running {
    let options = Options {
        retry_first: Duration::from_millis(1),
        retry_max: Duration::from_millis(4),
        gather: Duration::ZERO,
    };
    let store: Arc<dyn EventStore> = Arc::clone(log) as _;
    let (service, handle) = Service::new(store, Arc::clone(&models), options)
        .await
        .unwrap();
    let stop = CancellationToken::new();
    let task = tokio::spawn(service.run(stop.clone()));
    Running {
        models,
        handle,
        stop,
        task,
    }
}

#[tokio::test]
async fn rows_follow_the_log_from_its_beginning_and_as_it_grows() {
    let log = Log::new(None);
    for n in 1..=5000 {
        log.create(n, Payload::empty());
    }
    let folder = tempfile::tempdir().unwrap();
    let running = start(&log, models(&folder).await).await;
    running.handle.wait_for(5000, PATIENCE).await.unwrap();
    for n in 1..=20 {
        let position = log.rename(n);
        running.handle.wait_for(position, PATIENCE).await.unwrap();
        let view = running.models.get(TaskId(id(n))).await.unwrap().unwrap();
        assert_eq!(&*view.row.name, "renamed");
    }
    assert_eq!(running.handle.lag(), 0);
    assert_eq!(running.handle.state(), State::Running);
    let models = running.stop().await;

    // What was written meanwhile is caught up by the next start.
    log.rename(21);
    let running = start(&log, models).await;
    running.handle.wait_for(5021, PATIENCE).await.unwrap();
    let models = running.stop().await;

    let other = tempfile::tempdir().unwrap();
    let fresh = self::models(&other).await;
    let mut told = Vec::new();
    let store: Arc<dyn EventStore> = Arc::clone(&log) as _;
    let reached = rebuild(Arc::clone(&store), &fresh, |at, of| told.push((at, of)))
        .await
        .unwrap();
    assert_eq!(reached, 5021);
    assert_eq!(told.last(), Some(&(5021, 5021)));
    assert!(told.is_sorted() && told.len() >= 5021 / BATCH_EVENTS_MAX);
    let expected = fresh.dump().await.unwrap();
    assert_eq!(models.dump().await.unwrap(), expected);
    rebuild(store, &models, |_, _| ()).await.unwrap();
    assert_eq!(models.dump().await.unwrap(), expected);
}

#[tokio::test]
async fn an_event_that_cannot_be_projected_stops_the_projection_with_its_position() {
    let log = Log::new(None);
    log.create(1, Payload::empty());
    let task_id = TaskId(id(99));
    let bad = log.push(
        TaskId(id(1)).as_flow(),
        Event::TaskDeleted(TaskDeleted { task_id }),
    );
    log.create(2, Payload::empty());
    let folder = tempfile::tempdir().unwrap();
    let running = start(&log, models(&folder).await).await;
    running.handle.wait_for(bad - 1, PATIENCE).await.unwrap();
    let lagging = running.handle.wait_for(bad, PATIENCE).await.unwrap_err();
    let expected = Lagging {
        checkpoint: bad - 1,
        wanted: bad,
        stopped: true,
    };
    assert_eq!(lagging, expected);
    let State::Failed { position, reason } = running.handle.state() else {
        panic!("{:?}", running.handle.state());
    };
    assert_eq!(position, bad);
    assert!(reason.contains("does not exist"), "{reason}");
    assert_eq!(running.handle.lag(), 2);
    assert!(running.models.get(TaskId(id(1))).await.unwrap().is_some());
    assert!(running.models.get(TaskId(id(2))).await.unwrap().is_none());
    running.stop().await;
}

#[tokio::test]
async fn a_damaged_row_of_the_log_stops_the_projection_with_its_position() {
    let log = Log::new(Some(4));
    for n in 1..=6 {
        log.create(n, Payload::empty());
    }
    let folder = tempfile::tempdir().unwrap();
    let running = start(&log, models(&folder).await).await;
    let lagging = running.handle.wait_for(6, PATIENCE).await.unwrap_err();
    assert_eq!((lagging.checkpoint, lagging.stopped), (3, true));
    assert!(matches!(
        running.handle.state(),
        State::Failed { position: 4, .. }
    ));
    running.stop().await;
}

#[tokio::test]
async fn a_store_that_is_away_for_a_while_loses_nothing() {
    let log = Log::new(None);
    log.failures.store(5, Ordering::SeqCst);
    for n in 1..=10 {
        log.create(n, Payload::empty());
    }
    let folder = tempfile::tempdir().unwrap();
    let running = start(&log, models(&folder).await).await;
    running.handle.wait_for(10, PATIENCE).await.unwrap();
    assert_eq!(log.failures.load(Ordering::SeqCst), 0);
    assert_eq!(running.handle.state(), State::Running);
    running.stop().await;
}

#[tokio::test]
async fn read_models_from_the_future_are_made_anew() {
    let longer = Log::new(None);
    for n in 1..=9 {
        longer.create(n, Payload::empty());
    }
    let folder = tempfile::tempdir().unwrap();
    let running = start(&longer, models(&folder).await).await;
    running.handle.wait_for(9, PATIENCE).await.unwrap();
    let models = running.stop().await;

    let restored = Log::new(None);
    for n in 101..=104 {
        restored.create(n, Payload::empty());
    }
    let running = start(&restored, models).await;
    let mut rows = 0;
    for n in 101..=104 {
        // The handle may still show the old place, so wait for the rows themselves.
        while running.models.get(TaskId(id(n))).await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        rows += 1;
    }
    assert_eq!(rows, 4);
    assert!(running.models.get(TaskId(id(1))).await.unwrap().is_none());
    assert_eq!(running.models.checkpoint().await.unwrap(), 4);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_after_its_time() {
    let log = Log::new(None);
    log.create(1, Payload::empty());
    let folder = tempfile::tempdir().unwrap();
    let models = models(&folder).await;
    let store: Arc<dyn EventStore> = Arc::clone(&log) as _;
    // Nobody runs the service.
    let (_service, handle) = Service::new(store, models, Options::default())
        .await
        .unwrap();
    assert!(handle.wait_for(0, Duration::ZERO).await.is_ok());
    let lagging = handle
        .wait_for(1, Duration::from_secs(2))
        .await
        .unwrap_err();
    let expected = Lagging {
        checkpoint: 0,
        wanted: 1,
        stopped: false,
    };
    assert_eq!(lagging, expected);
}

#[tokio::test]
async fn large_events_make_small_batches() {
    let log = Log::new(None);
    let text = format!(r#"{{"a":"{}"}}"#, "x".repeat(1_000_000));
    let large = Payload::parse(&text).unwrap();
    for n in 1..=40 {
        log.create(n, large.clone());
    }
    let mut feed = Feed::new(Arc::clone(&log) as _, 0);
    let mut sizes = Vec::new();
    while let Some(events) = feed.ready().await.unwrap() {
        sizes.push(events.len());
    }
    assert_eq!(sizes.iter().sum::<usize>(), 40);
    assert_eq!(feed.position(), 40);
    // The first batch cannot know; all others can.
    assert_eq!(sizes[0], 40);
    for n in 41..=60 {
        log.create(n, large.clone());
    }
    let next = feed.next().await.unwrap();
    assert_eq!(next.len(), 8);
}

//! A log for these tests.

use async_trait::async_trait;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use taskledger::store::damage::{DamageRegister, Damaged};
use taskledger::store::{Append, ClaimKey, Error, EventStore, Outcome, Page, Resolution, Snapshot};
use taskledger_domain::flow::{Event, Specification, TaskCreated, TaskRenamed};
use taskledger_domain::task::Priority;
use taskledger_domain::{
    EventId, FlowId, Metadata, Payload, Position, Recorded, TaskId, Timestamp, Version,
};
use tokio::sync::watch;
use uuid::Uuid;

/// A log in memory that only reads; events are put in by the test.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) events: Mutex<Vec<Arc<Recorded>>>,
    head: watch::Sender<Position>,
    /// Reads that fail before the next one succeeds.
    pub(crate) failures: AtomicUsize,
    /// Reads so far.
    reads: AtomicUsize,
    corrupt_at: Option<Position>,
    damage: DamageRegister,
}

impl Log {
    pub(crate) fn new(corrupt_at: Option<Position>) -> Arc<Self> {
        Arc::new(Self {
            events: Mutex::new(Vec::new()),
            head: watch::channel(0).0,
            failures: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            corrupt_at,
            damage: DamageRegister::default(),
        })
    }

    pub(crate) fn push(&self, flow: FlowId, event: Event) -> Position {
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
    pub(crate) fn create(&self, n: u64, inputs: Payload) -> Position {
        let task_id = TaskId(id(n));
        let specification = Specification {
            inputs,
            schemas: None,
            params: None,
            method: None,
            retry: None,
            timeout_ms: None,
            deadline: None,
            remote: false,
            start_within_ms: None,
            cancel_grace_ms: None,
            start_at: None,
            delay_ms: None,
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
            labels: taskledger_domain::task::Labels::default(),
            run_id: None,
        });
        self.push(task_id.as_flow(), event)
    }

    pub(crate) fn rename(&self, n: u64) -> Position {
        let task_id = TaskId(id(n));
        let name = "renamed".to_owned();
        self.push(
            task_id.as_flow(),
            Event::TaskRenamed(TaskRenamed { task_id, name }),
        )
    }
}

pub(crate) fn id(n: u64) -> Uuid {
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
        let all = self.events.lock().unwrap();
        let page = all.iter().skip(after as usize).take(limit);
        let (damaged, events): (Vec<_>, Vec<_>) = page
            .cloned()
            .partition(|e| Some(e.position) == self.corrupt_at);
        let damaged = damaged.into_iter().map(|event| Damaged {
            position: event.position,
            flow: Some(event.flow),
            reason: "checksum".into(),
        });
        let next = all.len().min(after as usize + limit);
        Ok(Page {
            next: next as u64,
            at_end: next == all.len(),
            damaged: damaged.collect(),
            events,
        })
    }
    fn damage(&self) -> &DamageRegister {
        &self.damage
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

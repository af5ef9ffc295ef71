//! Backends to run the suite on, and events to write.

use sqlx::postgres::PgConnectOptions;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use taskledger::clock::{Clock, ManualClock, SharedClock};
use taskledger::store::faulty::FaultyStore;
use taskledger::store::memory::MemoryStore;
use taskledger::store::postgres::{self, PostgresStore};
use taskledger::store::sqlite::{LEDGER_FILE, Options, SqliteStore};
use taskledger::store::{Append, ClaimKey, EventStore, NewClaim, NewEvent, Outcome};
use taskledger_domain::flow::{Event, TaskRenamed};
use taskledger_domain::{EventId, FlowId, Metadata, Recorded, TaskId, Timestamp, Version};
use taskledger_testkit::postgres::Database;

/// 2026-01-01T00:00:00Z.
pub(crate) const START: Timestamp = Timestamp(1_767_225_600_000_000);

/// A store to test, with the clock that it uses.
pub(crate) struct Backend {
    pub(crate) store: Arc<dyn EventStore>,
    pub(crate) clock: Arc<ManualClock>,
    /// What the store lies in; goes away after it.
    _place: Option<Box<dyn std::any::Any + Send + Sync>>,
}

pub(crate) fn manual_clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(START))
}

pub(crate) async fn on_memory() -> Backend {
    let clock = manual_clock();
    Backend {
        store: Arc::new(MemoryStore::new(clock.clone())),
        clock,
        _place: None,
    }
}

pub(crate) async fn on_faulty() -> Backend {
    let clock = manual_clock();
    let inner = Arc::new(MemoryStore::new(clock.clone()));
    Backend {
        store: Arc::new(FaultyStore::new(inner)),
        clock,
        _place: None,
    }
}

pub(crate) async fn on_sqlite() -> Backend {
    let clock = manual_clock();
    let folder = tempfile::tempdir().unwrap();
    Backend {
        store: Arc::new(open(folder.path(), clock.clone())),
        clock,
        _place: Some(Box::new(folder)),
    }
}

pub(crate) async fn on_postgres() -> Backend {
    let clock = manual_clock();
    let database = Database::create().await;
    Backend {
        store: Arc::new(open_postgres(&database, clock.clone()).await),
        clock,
        _place: Some(Box::new(database)),
    }
}

/// A store on `database`, one of perhaps several.
pub(crate) async fn open_postgres(database: &Database, clock: SharedClock) -> PostgresStore {
    let options = postgres_options(database.url(), clock);
    PostgresStore::open(options).await.unwrap()
}

pub(crate) fn postgres_options(url: &str, clock: SharedClock) -> postgres::Options {
    let connect = PgConnectOptions::from_str(url).unwrap();
    postgres::Options {
        connections: 2,
        ..postgres::Options::new(connect, clock)
    }
}

/// A log in `folder`. A commit whose outcome is not known fails the test.
pub(crate) fn open(folder: &Path, clock: SharedClock) -> SqliteStore {
    SqliteStore::open(options(folder, clock)).unwrap()
}

pub(crate) fn options(folder: &Path, clock: SharedClock) -> Options {
    Options::new(folder, clock)
}

pub(crate) fn ledger(folder: &Path) -> PathBuf {
    folder.join(LEDGER_FILE)
}

/// Ids only; the time is the test's.
pub(crate) fn uuid() -> uuid::Uuid {
    ManualClock::at(START).uuid()
}

pub(crate) fn flow() -> FlowId {
    FlowId(uuid())
}

pub(crate) fn event(name: &str) -> NewEvent {
    let metadata = Metadata {
        actor: Arc::from("anonymous"),
        correlation: Arc::from("request-1"),
        causation: None,
        trace: None,
    };
    let renamed = TaskRenamed {
        task_id: TaskId(uuid()),
        name: name.to_owned(),
    };
    NewEvent::new(
        EventId(uuid()),
        START,
        metadata,
        Event::TaskRenamed(renamed),
    )
}

pub(crate) fn events(count: usize) -> Vec<NewEvent> {
    (0..count).map(|n| event(&format!("name {n}"))).collect()
}

pub(crate) fn append(stream: FlowId, expected: Version, count: usize) -> Append {
    Append {
        stream,
        expected,
        events: events(count),
        claims: Vec::new(),
        fence: None,
    }
}

pub(crate) fn request(key: &str, value: &str, expires_at: Option<Timestamp>) -> NewClaim {
    NewClaim {
        key: ClaimKey::Request(Arc::from(key)),
        value: Arc::from(value),
        expires_at,
    }
}

/// A log that was empty holds `each` events of each stream and nothing else: every position once, in
/// order, and in each stream every version.
pub(crate) fn assert_each_once_in_order(
    seen: &[Arc<Recorded>],
    streams: impl ExactSizeIterator<Item = FlowId>,
    each: Version,
) {
    let total = streams.len() as u64 * each;
    let positions: Vec<_> = seen.iter().map(|e| e.position).collect();
    assert_eq!(positions, (1..=total).collect::<Vec<_>>());
    for stream in streams {
        let versions = seen.iter().filter(|e| e.flow == stream).map(|e| e.version);
        assert!(versions.eq(1..=each), "{stream}");
    }
}

/// The events of an outcome that must be `Appended`.
pub(crate) fn appended(outcome: Outcome) -> Vec<Arc<Recorded>> {
    match outcome {
        Outcome::Appended(events) => events,
        other @ (Outcome::Conflict { .. }
        | Outcome::Exists { .. }
        | Outcome::Fenced
        | Outcome::Unknown) => panic!("expected Appended, got {other:?}"),
    }
}

/// Appends `count` events to a fresh stream.
pub(crate) async fn given_stream(store: &dyn EventStore, count: usize) -> FlowId {
    let stream = flow();
    appended(store.append(append(stream, 0, count)).await.unwrap());
    stream
}

/// The whole log, page by page.
pub(crate) async fn whole_log(store: &dyn EventStore) -> Vec<Arc<Recorded>> {
    let mut all = Vec::new();
    let mut after = 0;
    loop {
        let page = store.read_all(after, 1_000).await.unwrap();
        all.extend(page.events);
        after = page.next;
        if page.at_end {
            return all;
        }
    }
}

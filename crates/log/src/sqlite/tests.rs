//! Detects changes to a log by an attacker who can compute its checksums.
//! Longer than usual: the cases share the logs that they change.

use super::export::Export;
use super::open::{self, LEDGER_FILE};
use super::row::{Row, columns};
use super::{Options, SqliteStore, verify};
use crate::chain::{Hash, Mark};
use crate::transfer::{Line, Source};
use crate::verify::Report;
use crate::{Append, EventStore, NewEvent};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use taskledger_clock::ManualClock;
use taskledger_domain::flow::{Event, FlowArchived, Specification, TaskCreated, TaskRenamed};
use taskledger_domain::task::{Labels, Priority};
use taskledger_domain::{EventId, FlowId, Metadata, Payload, Position, TaskId, Timestamp, Version};
use uuid::Uuid;

fn ledger(folder: &Path) -> PathBuf {
    folder.join(LEDGER_FILE)
}

fn store(folder: &Path) -> SqliteStore {
    let clock = Arc::new(ManualClock::at(Timestamp(1)));
    SqliteStore::open(Options::new(folder, clock)).unwrap()
}

fn renamed(name: &str) -> Event {
    Event::TaskRenamed(TaskRenamed {
        task_id: TaskId(Uuid::nil()),
        name: name.to_owned(),
    })
}

fn created(task: TaskId) -> Event {
    let specification = Specification {
        inputs: Payload::empty(),
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
    Event::TaskCreated(TaskCreated {
        task_id: task,
        ordinal: 0,
        parent_id: None,
        name: "n".to_owned(),
        user_id: None,
        priority: Priority::NORMAL,
        dependencies: Vec::new(),
        specification,
        copied_from: None,
        labels: Labels::default(),
        run_id: None,
    })
}

fn archived() -> Event {
    Event::FlowArchived(FlowArchived {
        file: "f".to_owned(),
        sha256: "s".to_owned(),
        events: 3,
        runs: Vec::new(),
        owner: None,
    })
}

async fn append(store: &SqliteStore, flow: u128, expected: Version, events: Vec<Event>) {
    let outcome = store.append(of(flow, expected, events)).await.unwrap();
    assert!(
        matches!(outcome, crate::Outcome::Appended(_)),
        "{outcome:?}"
    );
}

fn of(flow: u128, expected: Version, events: Vec<Event>) -> Append {
    let metadata = Metadata {
        actor: Arc::from("ada"),
        correlation: Arc::from("c"),
        causation: None,
        trace: None,
    };
    let new = |(n, event): (u128, Event)| {
        let id = Uuid::from_u128(flow * 1_000 + u128::from(expected) + n);
        NewEvent::new(EventId(id), Timestamp(1), metadata.clone(), event)
    };
    Append {
        stream: FlowId(Uuid::from_u128(flow)),
        expected,
        events: (1..).zip(events).map(new).collect(),
        claims: Vec::new(),
        fence: None,
    }
}

/// A closed log of two flows, eight events in all, and its head.
async fn given_a_log(folder: &Path) -> Mark {
    let store = store(folder);
    append(
        &store,
        1,
        0,
        (0..3).map(|_| renamed("pay 100 to ada")).collect(),
    )
    .await;
    append(&store, 2, 0, vec![renamed("other")]).await;
    append(&store, 1, 3, vec![archived()]).await;
    append(&store, 2, 1, (0..3).map(|_| renamed("other")).collect()).await;
    let head = store.chain_head().await.unwrap().unwrap();
    store.close().await;
    head
}

/// Changes the payload of an event so that every read believes it, and its hash and all later ones if
/// `hashes` says so.
fn forge(folder: &Path, position: Position, hashes: bool) {
    let connection = Connection::open(ledger(folder)).unwrap();
    let select = concat!(
        "SELECT ",
        columns!(),
        " FROM events AS e JOIN streams AS s ON s.number = e.stream WHERE e.position = ?1"
    );
    let previous = |position: Position| -> Hash {
        let before = (position - 1).cast_signed();
        let hash = "SELECT hash FROM events WHERE position = ?1";
        let hash = connection.query_row(hash, [before], |row| row.get::<_, Vec<u8>>(0));
        hash.map_or(Hash::BEFORE_FIRST, |h| Hash::from_slice(&h).unwrap())
    };
    for at in position.. {
        let mut statement = connection.prepare(select).unwrap();
        let mut rows = statement.query([at.cast_signed()]).unwrap();
        let Some(sql) = rows.next().unwrap() else {
            break;
        };
        let row = Row::read(sql).unwrap();
        let data = if at == position {
            row.data.replace("100", "900")
        } else {
            row.data.to_owned()
        };
        let row = Row { data: &data, ..row };
        let hash = previous(at).link(at, row.recorded_at, row.content());
        let stored = if hashes { Some(hash) } else { row.hash };
        connection
            .execute(
                "UPDATE events SET data = ?2, checksum = ?3, hash = ?4 WHERE position = ?1",
                (
                    at.cast_signed(),
                    &data,
                    row.checksum(),
                    stored.as_ref().map(Hash::as_bytes),
                ),
            )
            .unwrap();
    }
}

fn verified(folder: &Path, kept: Option<Mark>) -> Report {
    verify(&ledger(folder), kept, |_, _| ()).unwrap()
}

#[tokio::test]
async fn a_payload_that_was_changed_with_its_checksum_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let head = given_a_log(folder.path()).await;
    let sound = verified(folder.path(), Some(head));
    assert!(sound.is_sound(), "{sound:?}");
    assert_eq!(sound.chain.map(|c| (c.from, c.head)), Some((1, head)));

    forge(folder.path(), 2, false);

    let store = store(folder.path());
    let read = store.read_all(0, 100).await.unwrap();
    assert_eq!(read.events.len(), 8, "every read believes it");
    let report = verified(folder.path(), None);
    assert_eq!(report.faults.len(), 1, "{report:?}");
    assert_eq!(report.faults[0].position, Some(2));
    assert!(report.faults[0].reason.contains("was changed"));
    store.close().await;
}

#[tokio::test]
async fn a_log_that_was_forged_with_all_its_hashes_is_found_by_the_head_that_was_kept() {
    let folder = tempfile::tempdir().unwrap();
    let head = given_a_log(folder.path()).await;

    forge(folder.path(), 2, true);

    assert!(verified(folder.path(), None).is_sound());
    let report = verified(folder.path(), Some(head));
    assert_eq!(report.faults.len(), 1, "{report:?}");
    assert_eq!(report.faults[0].position, Some(8));
}

#[tokio::test]
async fn the_chain_of_an_older_log_begins_with_the_next_append() {
    let folder = tempfile::tempdir().unwrap();
    given_a_log(folder.path()).await;
    let connection = Connection::open(ledger(folder.path())).unwrap();
    connection
        .execute("UPDATE events SET hash = NULL", [])
        .unwrap();
    drop(connection);
    let report = verified(folder.path(), None);
    assert!(report.is_sound() && report.chain.is_none(), "{report:?}");

    let store = store(folder.path());
    append(&store, 3, 0, vec![renamed("a"), renamed("b")]).await;
    let head = store.chain_head().await.unwrap();
    store.close().await;

    let report = verified(folder.path(), head);
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(
        report.chain.map(|c| (c.from, Some(c.head))),
        Some((9, head))
    );
}

#[tokio::test]
async fn the_chain_is_followed_over_what_was_dropped_and_an_export_carries_it() {
    let folder = tempfile::tempdir().unwrap();
    let head = given_a_log(folder.path()).await;
    let store = store(folder.path());
    let flow = FlowId(Uuid::from_u128(1));
    while store.drop_archived(flow, 2).await.unwrap() > 0 {}
    store.close().await;

    let report = verified(folder.path(), Some(head));
    let mut export = Export::open(&ledger(folder.path()), 0).unwrap();
    let mut lines = Vec::new();
    loop {
        let page = export.events().await.unwrap();
        if page.is_empty() {
            break;
        }
        lines.extend(page);
    }

    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.chain.map(|c| (c.from, c.head)), Some((1, head)));
    let places: Vec<_> = lines
        .iter()
        .map(|line| match line {
            Line::Event(event) => (event.position, event.hash.is_some()),
            Line::Dropped(line) => (line.dropped.position, false),
            Line::Key(_) | Line::End(_) | Line::Archive(_) => panic!("{line:?}"),
        })
        .collect();
    let expected = (1..=8).map(|p| (p, p > 3));
    assert_eq!(places, expected.collect::<Vec<_>>());
    let connection = open::writer(&ledger(folder.path())).unwrap();
    connection
        .execute(
            "UPDATE dropped_events SET body = zeroblob(32) WHERE position = 2",
            [],
        )
        .unwrap();
    drop(connection);
    let report = verified(folder.path(), None);
    assert_eq!(report.faults[0].position, Some(4), "{report:?}");
}

/// Takes a flow out of a log as if it had been archived and dropped: its events leave what the chain needs of them.
fn take_out(folder: &Path, flow: u128) {
    let connection = Connection::open(ledger(folder)).unwrap();
    let flow = FlowId(Uuid::from_u128(flow));
    let select = concat!(
        "SELECT ",
        columns!(),
        " FROM events AS e JOIN streams AS s ON s.number = e.stream WHERE s.flow = ?1"
    );
    let mut statement = connection.prepare(select).unwrap();
    let mut rows = statement.query([flow.0.as_bytes()]).unwrap();
    let mut remains = Vec::new();
    while let Some(sql) = rows.next().unwrap() {
        remains.push(Row::read(sql).unwrap().remains());
    }
    super::retention::put_remains(&connection, &remains).unwrap();
    let number = "(SELECT number FROM streams WHERE flow = ?1)";
    for sql in [
        &format!("DELETE FROM events WHERE stream = {number}"),
        "DELETE FROM streams WHERE flow = ?1",
    ] {
        connection.execute(sql, [flow.0.as_bytes()]).unwrap();
    }
    connection
        .execute(
            "UPDATE dropped SET horizon = 1000, events = events + ?1",
            [i64::try_from(remains.len()).unwrap()],
        )
        .unwrap();
}

#[tokio::test]
async fn a_flow_that_was_taken_out_without_being_archived_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    given_a_log(folder.path()).await;
    take_out(folder.path(), 2);

    let report = verified(folder.path(), None);

    let flow = Some(FlowId(Uuid::from_u128(2)));
    let missed = report.faults.iter().find(|fault| fault.stream == flow);
    let missed = missed.unwrap_or_else(|| panic!("{report:?}"));
    assert_eq!(
        missed.reason,
        "4 of its events were dropped, but the log has no such flow, so it was not archived"
    );
}

#[tokio::test]
async fn dropped_events_cannot_be_given_to_an_archived_flow() {
    let folder = tempfile::tempdir().unwrap();
    let head = given_a_log(folder.path()).await;
    let store = store(folder.path());
    let archived = FlowId(Uuid::from_u128(1));
    assert_eq!(store.drop_archived(archived, 9).await.unwrap(), 0);
    store.close().await;
    assert!(verified(folder.path(), Some(head)).is_sound());
    take_out(folder.path(), 2);
    let connection = Connection::open(ledger(folder.path())).unwrap();
    connection
        .execute(
            "UPDATE dropped_events SET flow = ?1, version = version + 100 WHERE flow = ?2",
            [archived.0.as_bytes(), Uuid::from_u128(2).as_bytes()],
        )
        .unwrap();
    drop(connection);

    let report = verified(folder.path(), Some(head));

    let reasons: Vec<_> = report.faults.iter().map(|it| it.reason.as_str()).collect();
    let told = |text: &str| reasons.iter().any(|reason| reason.contains(text));
    assert!(
        told("a dropped event follows the last event"),
        "{reasons:?}"
    );
    assert!(told("it has 4 versions, but 1 events and 7"), "{reasons:?}");
}

#[tokio::test]
async fn a_snapshot_that_was_changed_with_its_checksum_is_found() {
    use taskledger_domain::codec::snapshot;
    use taskledger_domain::flow::Flow;
    let folder = tempfile::tempdir().unwrap();
    let flow = FlowId(Uuid::from_u128(9));
    let task = TaskId(flow.0);
    let store = store(folder.path());
    append(&store, 9, 0, vec![created(task)]).await;
    let events = store.read_stream(flow, 0, 9, usize::MAX).await.unwrap();
    let mut state = Flow::default();
    state.replay(events.iter().map(|event| &**event));
    let bytes = snapshot::encode(&state);
    let save = async |bytes: Vec<u8>| {
        let snapshot = crate::Snapshot {
            format: snapshot::FORMAT,
            version: 1,
            bytes,
        };
        store.save_snapshot(flow, snapshot).await.unwrap();
        // Answered behind it.
        store.chain_head().await.unwrap();
    };
    save(bytes.clone()).await;
    let sound = verified(folder.path(), None);
    state.replay([&taskledger_domain::Recorded {
        version: 2,
        event: Arc::new(Event::TaskRenamed(TaskRenamed {
            task_id: task,
            name: "another".to_owned(),
        })),
        ..(*events[0]).clone()
    }]);
    let mut other = snapshot::encode(&state);
    // The version is the first field.
    other[0] = bytes[0];
    save(other).await;
    store.close().await;

    let report = verified(folder.path(), None);

    assert!(sound.is_sound(), "{sound:?}");
    assert_eq!(report.faults.len(), 1, "{report:?}");
    assert_eq!(report.faults[0].stream, Some(flow));
    assert!(
        report.faults[0]
            .reason
            .starts_with("the snapshot of version 1 is not the state"),
        "{report:?}"
    );
}

#[tokio::test]
async fn commits_overwrite_the_end_of_the_wal_and_a_crash_finds_no_frames_in_it() {
    let (folder, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let wal = folder.path().join("ledger.db-wal");
    let bytes = || std::fs::metadata(&wal).unwrap().len();
    let store = store(folder.path());
    append(&store, 1, 0, vec![renamed("a")]).await;
    let begun = bytes();
    for expected in 1..100 {
        append(&store, 1, expected, vec![renamed("b")]).await;
    }
    // What one commit adds is a few pages: the file was longer than that before.
    assert!(begun >= 4 * 1024 * 1024, "{begun}");
    assert_eq!(bytes(), begun);
    // More than the file had at first.
    let text = "x".repeat(900_000);
    for expected in 100..110 {
        append(&store, 1, expected, vec![renamed(&text)]).await;
    }
    assert!(bytes() > begun);
    // A crash: the files as they are.
    for name in ["ledger.db", "ledger.db-wal"] {
        std::fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }
    let again = self::store(copy.path());
    assert_eq!(again.head().await.unwrap(), 110);
    store.close().await;
    assert!(!wal.exists(), "a closed log is one file");
}

fn alone(
    store: &SqliteStore,
    append: Append,
) -> Result<Result<crate::Outcome, crate::Error>, Box<Append>> {
    let size = crate::check::append(&append).unwrap();
    store.alone(append, size)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_nothing_waits_beside_is_committed_where_it_comes_from() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let one = |flow, expected| of(flow, expected, vec![renamed("a")]);
    let fast = |is_fast: bool| {
        let took = Duration::from_millis(if is_fast { 0 } else { 5 });
        super::lock(&store.committer).as_mut().unwrap().last.took = took;
    };
    assert!(
        alone(&store, one(1, 0)).is_err(),
        "nothing was committed yet"
    );
    append(&store, 1, 0, vec![renamed("a")]).await;
    fast(true);
    let mut live = store.watch();
    live.mark_unchanged();
    let outcome = alone(&store, one(1, 1)).expect("alone").unwrap();
    let crate::Outcome::Appended(events) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((events[0].version, events[0].position), (2, 2));
    assert!(live.has_changed().unwrap(), "who follows the log is woken");
    assert_eq!((*live.borrow(), store.commits()), (2, 2));
    fast(true);
    let refused = alone(&store, one(1, 1)).expect("alone").unwrap();
    assert!(matches!(refused, crate::Outcome::Conflict { actual: 2 }));
    fast(false);
    assert!(alone(&store, one(1, 2)).is_err(), "the disk is slow");
    let key = [crate::ClaimKey::Request(Arc::from("k"))];
    assert!(store.claims_alone(&key, Timestamp(1)).is_none());
    fast(true);
    let held = store.claims_alone(&key, Timestamp(1)).expect("alone");
    assert_eq!(held.unwrap(), [None]);
    let queued = super::committer::Counted::among(&store.queued);
    assert!(
        alone(&store, one(1, 2)).is_err(),
        "something waits before it"
    );
    assert!(store.claims_alone(&key, Timestamp(1)).is_none());
    drop(queued);
    {
        let _held = super::lock(&store.committer);
        assert!(alone(&store, one(1, 2)).is_err(), "something is committed");
    }
    let many = of(1, 2, (0..33).map(|_| renamed("a")).collect());
    assert!(alone(&store, many).is_err(), "it would take long");
    super::lock(&store.committer)
        .as_mut()
        .unwrap()
        .last
        .unattended = 16;
    assert!(alone(&store, one(1, 2)).is_err(), "nobody looks at the WAL");
    super::lock(&store.committer)
        .as_mut()
        .unwrap()
        .last
        .unattended = 0;
    let third = alone(&store, one(1, 2)).expect("alone").unwrap();
    assert!(matches!(third, crate::Outcome::Appended(_)), "{third:?}");
    store.close().await;
    assert!(alone(&store, one(1, 3)).is_err());
    assert!(store.append(one(1, 3)).await.is_err());
    let report = verified(folder.path(), None);
    assert_eq!(report.events, 3, "{report:?}");
}

#[tokio::test]
async fn a_runtime_of_one_thread_waits_for_no_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    append(&store, 1, 0, vec![renamed("a")]).await;
    super::lock(&store.committer).as_mut().unwrap().last.took = Duration::ZERO;
    assert!(alone(&store, of(1, 1, vec![renamed("a")])).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn appends_of_one_flow_overtake_none_of_those_before_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(store(folder.path()));
    let flows = (1..=8).map(|flow| {
        let store = store.clone();
        tokio::spawn(async move {
            for version in 0..40 {
                // Two under way at a time, as a flow has them.
                let first = store.append(of(flow, 2 * version, vec![renamed("a")]));
                let second = store.append(of(flow, 2 * version + 1, vec![renamed("b")]));
                let (first, second) = tokio::join!(first, second);
                for outcome in [first, second] {
                    let outcome = outcome.unwrap();
                    assert!(
                        matches!(outcome, crate::Outcome::Appended(_)),
                        "{outcome:?}"
                    );
                }
            }
        })
    });
    for flow in flows.collect::<Vec<_>>() {
        flow.await.unwrap();
    }
    store.close().await;
    assert_eq!(verified(folder.path(), None).events, 8 * 80);
}

//! What only the durable store promises: reopening, closing, the edge of the ring, refusals at open.

use crate::contract::fixture::{
    START, append, appended, event, flow, given_stream, ledger, manual_clock, open, options,
    request, whole_log,
};
use futures_util::future::join_all;
use futures_util::poll;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use taskledger::clock::{Clock, ManualClock};
use taskledger::store::lock::DataDirLock;
use taskledger::store::sqlite::{OpenError, SqliteStore};
use taskledger::store::{Append, Error, EventStore, Fence, Outcome, Resolution, Snapshot};
use taskledger_domain::Timestamp;
use tokio::task::unconstrained;

#[tokio::test]
async fn a_reopened_log_has_everything() {
    let folder = tempfile::tempdir().unwrap();
    let s = open(folder.path(), manual_clock());
    let stream = flow();
    let claim = request("k", "v", None);
    let first = Append {
        claims: vec![claim.clone()],
        ..append(stream, 0, 3)
    };
    let ids: Vec<_> = first.events.iter().map(|e| e.id).collect();
    let written = appended(s.append(first).await.unwrap());
    let old_token = s.raise_fence("p").await.unwrap();
    s.raise_fence("p").await.unwrap();
    let snapshot = Snapshot {
        version: 2,
        format: 7,
        bytes: vec![1, 2, 3],
    };
    s.save_snapshot(stream, snapshot.clone()).await.unwrap();
    s.close().await;

    let s = open(folder.path(), manual_clock());

    assert_eq!(s.head().await.unwrap(), 3);
    assert_eq!(*s.watch().borrow(), 3);
    assert_eq!(
        s.read_stream(stream, 0, 10, usize::MAX).await.unwrap(),
        written
    );
    assert_eq!(whole_log(&s).await, written);
    let held = s.claims(&[claim.key], START).await.unwrap();
    assert_eq!(held, [Some(claim.value)]);
    assert_eq!(s.load_snapshot(stream, 7).await.unwrap(), Some(snapshot));
    let resolution = s.resolve(stream, &ids).await.unwrap();
    assert_eq!(resolution, Resolution::Appended(written));
    let stale = Append {
        fence: Some(Fence {
            name: Arc::from("p"),
            token: old_token,
        }),
        ..append(stream, 3, 1)
    };
    assert_eq!(s.append(stale).await.unwrap(), Outcome::Fenced);
    let next = appended(s.append(append(stream, 3, 1)).await.unwrap());
    assert_eq!((next[0].position, next[0].version), (4, 4));
}

#[tokio::test]
async fn recorded_at_does_not_follow_a_clock_that_was_set_back() {
    let folder = tempfile::tempdir().unwrap();
    given_stream(&open(folder.path(), manual_clock()), 1).await;
    let earlier = Arc::new(ManualClock::at(Timestamp(START.0 - 1_000_000)));
    let s = open(folder.path(), earlier);

    let written = appended(s.append(append(flow(), 0, 1)).await.unwrap());

    assert_eq!(written[0].recorded_at, START);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn close_keeps_what_it_acknowledged_and_refuses_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let s = Arc::new(open(folder.path(), manual_clock()));
    let writers: Vec<_> = (0..200)
        .map(|_| {
            let s = s.clone();
            tokio::spawn(async move { s.append(append(flow(), 0, 2)).await })
        })
        .collect();
    let mut watch = s.watch();
    watch.wait_for(|head| *head > 0).await.unwrap();

    s.close().await;

    let mut kept = 0;
    for outcome in join_all(writers).await {
        match outcome.unwrap() {
            Ok(outcome) => kept += appended(outcome).len() as u64,
            Err(error) => assert!(matches!(error, Error::Unavailable(_)), "{error}"),
        }
    }
    let late = s.append(append(flow(), 0, 1)).await.unwrap_err();
    assert!(matches!(late, Error::Unavailable(_)), "{late}");
    let read = s.read_all(0, 1).await.unwrap_err();
    assert!(matches!(read, Error::Unavailable(_)), "{read}");
    s.close().await;
    let wal = folder.path().join("ledger.db-wal");
    assert!(!wal.exists(), "a closed log is one file");
    let s = open(folder.path(), manual_clock());
    assert_eq!(s.head().await.unwrap(), kept);
}

/// More than the ring holds, in bytes.
const LARGE: usize = 40;

#[tokio::test]
async fn events_come_from_memory_and_from_the_file_across_the_edge_of_the_ring() {
    let folder = tempfile::tempdir().unwrap();
    let s = open(folder.path(), manual_clock());
    let text = "x".repeat(512 * 1024);
    let stream = flow();
    let mut written = Vec::new();
    for version in 0..LARGE {
        let one = Append {
            events: vec![event(&text)],
            ..append(stream, version as u64, 0)
        };
        written.extend(appended(s.append(one).await.unwrap()));
    }

    let first = s.read_all(0, 1_000).await.unwrap();
    let last = s.read_all(LARGE as u64 - 2, 1_000).await.unwrap();

    assert!(!Arc::ptr_eq(&first.events[0], &written[0]), "from the file");
    assert!(first.events.len() < LARGE, "a page is bounded in bytes");
    assert!(!first.at_end);
    assert!(Arc::ptr_eq(&last.events[1], &written[LARGE - 1]), "shared");
    assert!(last.at_end);
    assert_eq!(whole_log(&s).await, written);
    for after in 0..LARGE {
        let page = s.read_all(after as u64, 3).await.unwrap();
        let until = (after + 3).min(LARGE);
        assert_eq!(page.events, written[after..until], "after {after}");
        assert_eq!(page.at_end, until == LARGE, "after {after}");
    }
}

#[tokio::test]
async fn more_events_than_a_transaction_takes_are_still_written_together() {
    let folder = tempfile::tempdir().unwrap();
    let s = open(folder.path(), manual_clock());

    let stream = given_stream(&s, 5_000).await;

    assert_eq!(s.stream_head(stream).await.unwrap(), Some((5_000, 5_000)));
}

#[tokio::test]
async fn an_append_above_the_limit_is_invalid() {
    let folder = tempfile::tempdir().unwrap();
    let s = open(folder.path(), manual_clock());
    let text = "x".repeat(1024 * 1024);
    let large = Append {
        events: (0..64).map(|_| event(&text)).collect(),
        ..append(flow(), 0, 0)
    };

    let error = s.append(large).await.unwrap_err();

    assert!(matches!(error, Error::Invalid(_)), "{error}");
}

/// A clock at which the committer waits, once for each transaction.
#[derive(Debug)]
struct Turnstile {
    passes: Mutex<std::sync::mpsc::Receiver<()>>,
    transactions: AtomicUsize,
}

impl Clock for Turnstile {
    fn now(&self) -> Timestamp {
        self.transactions.fetch_add(1, Ordering::SeqCst);
        self.passes.lock().unwrap().recv().unwrap();
        START
    }
    fn uuid(&self) -> uuid::Uuid {
        crate::contract::fixture::uuid()
    }
}

#[tokio::test]
async fn appends_that_arrive_during_a_commit_share_the_next_one_and_are_judged_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (pass, passes) = std::sync::mpsc::channel();
    let turnstile = Arc::new(Turnstile {
        passes: Mutex::new(passes),
        transactions: AtomicUsize::new(0),
    });
    let s = open(folder.path(), turnstile.clone());
    let stream = flow();
    let mut first = Box::pin(s.append(append(flow(), 0, 1)));
    assert!(poll!(&mut first).is_pending());
    while turnstile.transactions.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    // Polled once, each is in the queue, in this order.
    let mut others: Vec<_> = [0, 0, 1, 9, 2]
        .into_iter()
        .map(|expected| Box::pin(unconstrained(s.append(append(stream, expected, 1)))))
        .chain((0..200).map(|_| Box::pin(unconstrained(s.append(append(flow(), 0, 1))))))
        .collect();
    for other in &mut others {
        assert!(poll!(other).is_pending());
    }

    pass.send(()).unwrap();
    appended(first.await.unwrap());
    pass.send(()).unwrap();
    let outcomes: Vec<_> = join_all(others)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();

    assert_eq!(turnstile.transactions.load(Ordering::SeqCst), 2);
    assert_eq!(outcomes[1], Outcome::Conflict { actual: 1 });
    assert_eq!(outcomes[3], Outcome::Conflict { actual: 2 });
    let written = outcomes.into_iter().enumerate();
    let written = written.filter(|(n, _)| ![1, 3].contains(n));
    let positions = written.map(|(_, outcome)| appended(outcome)[0].position);
    assert!(positions.eq(2..=204));
}

/// A clock that panics when it is told to, in the thread that asks.
#[derive(Debug)]
struct Bomb(AtomicBool);

impl Clock for Bomb {
    fn now(&self) -> Timestamp {
        assert!(!self.0.load(Ordering::Relaxed), "the test's bomb");
        START
    }
    fn uuid(&self) -> uuid::Uuid {
        crate::contract::fixture::uuid()
    }
}

#[tokio::test]
async fn a_writer_that_dies_raises_the_alarm_and_leaves_the_outcome_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let bomb = Arc::new(Bomb(AtomicBool::new(false)));
    let (alarm, alarms) = std::sync::mpsc::channel();
    let mut options = options(folder.path(), bomb.clone());
    options.on_fatal = Arc::new(move |text| alarm.send(text).unwrap());
    let s = SqliteStore::open(options).unwrap();
    given_stream(&s, 1).await;
    bomb.0.store(true, Ordering::Relaxed);

    let outcome = s.append(append(flow(), 0, 1)).await.unwrap();

    assert_eq!(outcome, Outcome::Unknown);
    let text = alarms.recv().unwrap();
    assert!(text.contains("panicked"), "{text}");
    // The alarm rings while the thread is dying: an append may still find its queue.
    let later = s.append(append(flow(), 0, 1)).await;
    let nothing_taken = matches!(later, Ok(Outcome::Unknown) | Err(Error::Unavailable(_)));
    assert!(nothing_taken, "{later:?}");
    assert_eq!(s.read_all(0, 10).await.unwrap().events.len(), 1);
}

#[tokio::test]
async fn a_log_of_a_newer_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), manual_clock()).close().await;
    let db = rusqlite::Connection::open(ledger(folder.path())).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    drop(db);

    let error = SqliteStore::open(options(folder.path(), manual_clock())).unwrap_err();

    assert!(matches!(error, OpenError::Newer { found: 99, .. }));
    let text = error.to_string();
    assert!(text.contains("schema version 99"), "{text}");
}

#[test]
fn what_is_no_log_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = ledger(folder.path());
    let refused = || SqliteStore::open(options(folder.path(), manual_clock())).unwrap_err();

    std::fs::write(&path, "this is a text, longer than a header ".repeat(99)).unwrap();
    assert!(matches!(refused(), OpenError::NotALog { .. }));
    std::fs::remove_file(&path).unwrap();

    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
        .unwrap();
    assert!(matches!(refused(), OpenError::NotALog { .. }));
    let kept: i64 = db
        .query_row("SELECT x FROM theirs", [], |r| r.get(0))
        .unwrap();
    assert_eq!(kept, 1);
    drop(db);
    std::fs::remove_file(&path).unwrap();

    std::fs::create_dir(&path).unwrap();
    assert!(matches!(refused(), OpenError::Unusable { .. }));
}

#[test]
fn a_second_holder_of_the_data_folder_is_refused_by_name() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("not").join("there yet");
    let first = DataDirLock::acquire(&folder).unwrap();

    let text = DataDirLock::acquire(&folder).unwrap_err().to_string();

    assert!(text.contains(&folder.display().to_string()), "{text}");
    let holder = format!("process {}", std::process::id());
    assert!(text.contains(&holder), "{text}");
    drop(first);
    let again = DataDirLock::acquire(&folder).unwrap();
    assert_eq!(again.folder(), folder);
}

#[test]
fn a_data_folder_that_is_a_file_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    std::fs::write(&file, "").unwrap();

    let text = DataDirLock::acquire(&file).unwrap_err().to_string();

    assert!(text.contains("cannot be used"), "{text}");
}

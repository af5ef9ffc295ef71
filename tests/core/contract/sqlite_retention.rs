//! Disk that archived flows give back.

use crate::contract::fixture::{START, append, appended, flow, ledger, manual_clock, open};
use std::path::Path;
use std::sync::Arc;
use taskledger::store::EventStore;
use taskledger::store::retention::DROP_EVENTS_MAX;
use taskledger::store::{Append, NewEvent};
use taskledger_domain::flow::{Event, FlowArchived};
use taskledger_domain::{EventId, Metadata};

const ROUNDS: usize = 5;
const FLOWS: usize = 40;
const EVENTS: usize = 100;
/// Bytes that the hash chain needs of a dropped event: its hash, its flow and contents, and their place in the file.
const REMAINS_BYTES_MAX: u64 = 112;

/// Bytes of the log, once all of it is in the one file.
fn bytes(folder: &Path) -> u64 {
    std::fs::metadata(ledger(folder)).unwrap().len()
}

fn end(events: u64) -> NewEvent {
    let metadata = Metadata {
        actor: Arc::from("retention"),
        correlation: Arc::from("file"),
        causation: None,
        trace: None,
    };
    let id = EventId(crate::contract::fixture::uuid());
    let archived = FlowArchived {
        file: "flows-20260101T000000Z-0f8fad5b.jsonl".to_owned(),
        sha256: "0".repeat(64),
        events,
        runs: Vec::new(),
        owner: None,
    };
    NewEvent::new(id, START, metadata, Event::FlowArchived(archived))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_whose_flows_are_archived_grows_by_digests_only() {
    let folder = tempfile::tempdir().unwrap();
    let mut sizes = Vec::new();

    for _ in 0..ROUNDS {
        let store = open(folder.path(), manual_clock());
        let mut streams = Vec::new();
        for _ in 0..FLOWS {
            let stream = flow();
            appended(store.append(append(stream, 0, EVENTS)).await.unwrap());
            let last = Append {
                events: vec![end(EVENTS as u64)],
                ..append(stream, EVENTS as u64, 0)
            };
            appended(store.append(last).await.unwrap());
            streams.push(stream);
        }
        for stream in streams {
            while store.drop_archived(stream, DROP_EVENTS_MAX).await.unwrap() > 0 {}
        }
        store.close().await;
        sizes.push(bytes(folder.path()));
    }

    let (first, last) = (sizes[0], sizes[ROUNDS - 1]);
    let digests = ((ROUNDS - 1) * FLOWS * EVENTS) as u64 * REMAINS_BYTES_MAX;
    assert!(
        last < first + first / 4 + digests,
        "what is freed is used again: {sizes:?}"
    );
    let report =
        taskledger::store::sqlite::verify(&ledger(folder.path()), None, |_, _| ()).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.events, (ROUNDS * FLOWS) as u64);
    assert_eq!(report.dropped, (ROUNDS * FLOWS * EVENTS) as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_was_lost_below_the_horizon_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), manual_clock());
    let (lost, gone) = (flow(), flow());
    appended(store.append(append(lost, 0, 3)).await.unwrap());
    appended(store.append(append(gone, 0, 4)).await.unwrap());
    let last = Append {
        events: vec![end(4)],
        ..append(gone, 4, 0)
    };
    appended(store.append(last).await.unwrap());
    while store.drop_archived(gone, 100).await.unwrap() > 0 {}
    store.close().await;
    let connection = rusqlite::Connection::open(ledger(folder.path())).unwrap();
    connection
        .execute("DELETE FROM events WHERE position = 2", [])
        .unwrap();
    drop(connection);

    let report =
        taskledger::store::sqlite::verify(&ledger(folder.path()), None, |_, _| ()).unwrap();

    let said: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|f| f.contains("1 are lost")), "{said:?}");
    assert!(
        said.iter()
            .any(|f| f.contains("version 3 follows version 1")),
        "{said:?}"
    );
}

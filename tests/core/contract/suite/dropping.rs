//! Dropping archived streams: what goes, what stays, and what readers see.

use crate::contract::fixture::{
    Backend, START, append, appended, event, flow, given_stream, request, uuid, whole_log,
};
use std::sync::Arc;
use taskledger::store::retention::Dropped;
use taskledger::store::{Append, ClaimKey, Error, EventStore, NewClaim, NewEvent, Snapshot};
use taskledger_domain::flow::{Event, FlowArchived, Specification, TaskCreated};
use taskledger_domain::task::Priority;
use taskledger_domain::{EventId, FlowId, Metadata, Payload, TaskId, Version};

fn new(event: Event) -> NewEvent {
    let metadata = Metadata {
        actor: Arc::from("retention"),
        correlation: Arc::from("file"),
        causation: None,
        trace: None,
    };
    NewEvent::new(EventId(uuid()), START, metadata, event)
}

fn created(task: TaskId) -> NewEvent {
    let specification = Specification {
        inputs: Payload::parse(r#"{"text":"a\\u0000b"}"#).unwrap(),
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
    new(Event::TaskCreated(TaskCreated {
        task_id: task,
        ordinal: 1,
        parent_id: None,
        name: "n".to_owned(),
        user_id: None,
        priority: Priority::NORMAL,
        dependencies: Vec::new(),
        specification,
        copied_from: None,
        run_id: None,
    }))
}

fn archived(events: u64) -> NewEvent {
    new(Event::FlowArchived(FlowArchived {
        file: "file".to_owned(),
        sha256: "digest".to_owned(),
        events,
        runs: Vec::new(),
        owner: None,
    }))
}

async fn end(store: &dyn EventStore, stream: FlowId, version: Version) {
    let append = Append {
        events: vec![archived(version)],
        ..append(stream, version, 0)
    };
    appended(store.append(append).await.unwrap());
}

/// A stream of so many events, and its end.
pub(crate) async fn given_archived(store: &dyn EventStore, count: usize) -> FlowId {
    let stream = given_stream(store, count).await;
    end(store, stream, count as Version).await;
    stream
}

async fn drop_all(store: &dyn EventStore, stream: FlowId) {
    while store.drop_archived(stream, 2).await.unwrap() > 0 {}
}

async fn forwards(store: &dyn EventStore, stream: FlowId, after: Version) -> Vec<Version> {
    let read = store.read_stream(stream, after, 100, usize::MAX).await;
    read.unwrap().iter().map(|e| e.version).collect()
}

async fn backwards(store: &dyn EventStore, stream: FlowId, before: Version) -> Vec<Version> {
    let read = store
        .read_stream_back(stream, before, 100, usize::MAX)
        .await;
    read.unwrap().iter().map(|e| e.version).collect()
}

pub(crate) async fn only_an_archived_stream_is_dropped(b: &Backend) {
    let stream = given_stream(&*b.store, 3).await;

    for kept in [stream, flow()] {
        let error = b.store.drop_archived(kept, 10).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
    }

    assert_eq!(forwards(&*b.store, stream, 0).await, [1, 2, 3]);
    assert_eq!(b.store.dropped().await.unwrap(), Dropped::default());
    assert_eq!(b.store.undropped(0, 10).await.unwrap(), []);
}

pub(crate) async fn a_stream_is_dropped_from_its_end_and_its_last_event_stays(b: &Backend) {
    let store = &*b.store;
    let stream = given_archived(store, 7).await;

    assert_eq!(store.drop_archived(stream, 3).await.unwrap(), 4);

    assert_eq!(forwards(store, stream, 0).await, [1, 2, 3, 4]);
    assert_eq!(forwards(store, stream, 2).await, [3, 4]);
    assert_eq!(forwards(store, stream, 4).await, [8]);
    assert_eq!(forwards(store, stream, 6).await, [8]);
    assert_eq!(backwards(store, stream, u64::MAX).await, [8]);
    assert_eq!(backwards(store, stream, 4).await, [3, 2, 1]);

    drop_all(store, stream).await;

    assert_eq!(store.drop_archived(stream, 3).await.unwrap(), 0);
    assert_eq!(forwards(store, stream, 0).await, [8]);
    assert_eq!(forwards(store, stream, 8).await, [] as [Version; 0]);
    assert_eq!(backwards(store, stream, 9).await, [8]);
    assert_eq!(backwards(store, stream, 8).await, [] as [Version; 0]);
    assert_eq!(store.stream_head(stream).await.unwrap(), Some((8, 8)));
    let last = store.read_versions(stream, &[8]).await.unwrap();
    assert!(matches!(*last[0].event, Event::FlowArchived(_)));
    let gone = store.read_versions(stream, &[8, 2]).await.unwrap_err();
    assert!(matches!(gone, Error::Unavailable(_)), "{gone}");
    let refused = store.append(append(stream, 0, 1)).await.unwrap();
    assert!(
        matches!(refused, taskledger::store::Outcome::Conflict { actual: 8 }),
        "the flow's id stays taken: {refused:?}"
    );
}

pub(crate) async fn what_was_dropped_is_passed_over_by_readers_of_the_log(b: &Backend) {
    let store = &*b.store;
    let before = given_stream(store, 2).await;
    let large = given_archived(store, 40).await;
    let between = given_stream(store, 1).await;
    let small = given_archived(store, 2).await;
    let head = store.head().await.unwrap();

    drop_all(store, large).await;
    drop_all(store, small).await;

    let expected = [1, 2, 43, 44, 47];
    for limit in [1, 2, 3, 100] {
        let (mut seen, mut after) = (Vec::new(), 0);
        loop {
            let page = store.read_all(after, limit).await.unwrap();
            assert!(
                !page.events.is_empty() || page.at_end,
                "an empty page is the last"
            );
            seen.extend(page.events.iter().map(|e| e.position));
            after = page.next;
            if page.at_end {
                break;
            }
        }
        assert_eq!(seen, expected, "pages of {limit}");
        assert_eq!(after, head);
    }
    let page = store.read_all(20, 1).await.unwrap();
    assert_eq!(
        page.events[0].position, 43,
        "from the middle of what is gone"
    );
    assert_eq!(store.head().await.unwrap(), head);
    let dropped = store.dropped().await.unwrap();
    assert_eq!((dropped.horizon, dropped.events), (46, 42));
    assert_eq!(forwards(store, before, 0).await, [1, 2]);
    assert_eq!(forwards(store, between, 0).await, [1]);
    given_stream(store, 1).await;
    assert_eq!(whole_log(store).await.last().unwrap().position, head + 1);
}

pub(crate) async fn ids_and_snapshots_go_with_their_stream_and_others_stay(b: &Backend) {
    let store = &*b.store;
    let (stream, other) = (flow(), flow());
    let (gone, kept) = (TaskId(uuid()), TaskId(uuid()));
    let claim = |task: TaskId, flow: FlowId| NewClaim {
        key: ClaimKey::Task(task),
        value: Arc::from(flow.to_string()),
        expires_at: None,
    };
    let with = |stream: FlowId, task: TaskId| Append {
        events: vec![event("first"), created(task)],
        claims: vec![claim(task, stream)],
        ..append(stream, 0, 0)
    };
    appended(store.append(with(stream, gone)).await.unwrap());
    appended(store.append(with(other, kept)).await.unwrap());
    let key = Append {
        claims: vec![request("key", "answer", None)],
        ..append(stream, 2, 1)
    };
    appended(store.append(key).await.unwrap());
    let snapshot = Snapshot {
        version: 2,
        format: 1,
        bytes: vec![1],
    };
    for stream in [stream, other] {
        let saved = store.save_snapshot(stream, snapshot.clone()).await;
        saved.unwrap();
    }
    end(store, stream, 3).await;

    drop_all(store, stream).await;

    let keys = [
        ClaimKey::Task(gone),
        ClaimKey::Task(kept),
        ClaimKey::Request(Arc::from("key")),
    ];
    let held = store.claims(&keys, START).await.unwrap();
    assert_eq!(held[0], None, "the id is free again");
    assert_eq!(held[1].as_deref(), Some(other.to_string().as_str()));
    assert_eq!(
        held[2].as_deref(),
        Some("answer"),
        "a repeated call gets its first answer"
    );
    assert_eq!(store.load_snapshot(stream, 1).await.unwrap(), None);
    assert_eq!(store.load_snapshot(other, 1).await.unwrap(), Some(snapshot));
}

pub(crate) async fn archived_streams_with_events_left_are_told_in_pages(b: &Backend) {
    let store = &*b.store;
    let first = given_archived(store, 3).await;
    given_stream(store, 1).await;
    let second = given_archived(store, 1).await;
    let third = given_archived(store, 2).await;

    let page = store.undropped(0, 2).await.unwrap();
    assert_eq!(
        page.iter().map(|u| u.flow).collect::<Vec<_>>(),
        [first, second]
    );
    assert_eq!(page.iter().map(|u| u.end).collect::<Vec<_>>(), [4, 7]);
    let rest = store.undropped(page[1].number, 2).await.unwrap();
    assert_eq!(rest.iter().map(|u| u.flow).collect::<Vec<_>>(), [third]);

    store.drop_archived(first, 2).await.unwrap();
    drop_all(store, second).await;

    let left = store.undropped(0, 10).await.unwrap();
    assert_eq!(
        left.iter().map(|u| u.flow).collect::<Vec<_>>(),
        [first, third]
    );
}

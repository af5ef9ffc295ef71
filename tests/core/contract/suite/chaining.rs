//! The hash chain: what it rests on is the same everywhere.

use super::dropping::given_archived;
use crate::contract::fixture::{Backend, START, append, appended, flow, given_stream};
use std::sync::Arc;
use taskledger::store::{Append, NewEvent, Outcome};
use taskledger_domain::flow::{Event, TaskRenamed};
use taskledger_domain::{EventId, FlowId, Metadata, TaskId, Timestamp, Version};
use uuid::Uuid;

/// Of two appends to one flow and one to another between them.
const HEAD: &str = "04b93c736a194cbe7acd970635c007e209e83429af3d8810a43c07f2655e7367@4";

fn fixed(number: u128, causation: Option<EventId>, trace: Option<&str>) -> NewEvent {
    let metadata = Metadata {
        actor: Arc::from("ada\u{0}\u{1F600}"),
        correlation: Arc::from("request"),
        causation,
        trace: trace.map(Arc::from),
    };
    let renamed = TaskRenamed {
        task_id: TaskId(Uuid::from_u128(7)),
        name: "a \u{0}\u{1F600}".to_owned(),
    };
    let id = EventId(Uuid::from_u128(number));
    NewEvent::new(
        id,
        Timestamp(START.0 + 5),
        metadata,
        Event::TaskRenamed(renamed),
    )
}

fn fixed_append(stream: u128, expected: Version, events: Vec<NewEvent>) -> Append {
    Append {
        events,
        ..append(FlowId(Uuid::from_u128(stream)), expected, 0)
    }
}

pub(crate) async fn hashes_are_the_same_on_every_backend(b: &Backend) {
    assert_eq!(b.store.chain_head().await.unwrap(), None);
    let cause = EventId(Uuid::from_u128(1));

    for append in [
        fixed_append(
            1,
            0,
            vec![fixed(1, None, None), fixed(2, Some(cause), Some(""))],
        ),
        fixed_append(2, 0, vec![fixed(3, None, Some("00-1-2-03"))]),
        fixed_append(1, 2, vec![fixed(4, Some(cause), None)]),
    ] {
        appended(b.store.append(append).await.unwrap());
    }

    let head = b.store.chain_head().await.unwrap().unwrap();
    assert_eq!(head.to_string(), HEAD);
}

pub(crate) async fn what_is_refused_leaves_the_chain_alone(b: &Backend) {
    given_stream(&*b.store, 3).await;
    let head = b.store.chain_head().await.unwrap();

    let refused = b.store.append(append(flow(), 7, 2)).await.unwrap();

    assert!(matches!(refused, Outcome::Conflict { .. }));
    assert_eq!(b.store.chain_head().await.unwrap(), head);
}

pub(crate) async fn the_chain_goes_on_when_events_are_dropped(b: &Backend) {
    let store = &*b.store;
    let stream = given_archived(store, 3).await;
    let head = store.chain_head().await.unwrap();
    assert_eq!(head.map(|mark| mark.position), Some(4));

    while store.drop_archived(stream, 2).await.unwrap() > 0 {}

    assert_eq!(store.chain_head().await.unwrap(), head);
    given_stream(store, 1).await;
    let next = store.chain_head().await.unwrap();
    assert_eq!(next.map(|mark| mark.position), Some(5));
}

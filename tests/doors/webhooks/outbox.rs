//! From events to what must be sent: all of it, once, and to nobody else.

use crate::webhooks::on_both_engines;
use crate::webhooks::world::{KEY, PATIENCE, World, id, task, told};
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use taskledger::store::EventStore;
use taskledger::subscription::notice::Kind;
use taskledger::webhooks::callback::Callback;
use taskledger::webhooks::delivery::{Deliveries, Next};
use taskledger::webhooks::endpoint::{EndpointId, EventName, Filter};
use taskledger::webhooks::store::{Change, Store};
use taskledger_domain::task::Selector;
use taskledger_domain::{CallbackId, RunId};

on_both_engines!(
    each_notice_is_noted_once_however_often_the_outbox_stops,
    two_outboxes_at_once_note_each_notice_once,
    one_event_reaches_ten_thousand_endpoints,
    one_endpoint_among_ten_thousand_costs_what_one_costs,
    an_outbox_at_work_learns_what_is_made_changed_and_removed,
    an_endpoint_gets_what_happens_after_it_was_made,
    an_endpoint_made_through_another_server_misses_nothing,
    an_endpoint_gets_what_its_filters_want,
    a_log_without_endpoints_is_passed_over,
    a_callback_is_told_of_its_run_alone_until_it_ends,
    a_callback_goes_on_after_a_restart,
    a_callback_that_no_event_names_is_removed_after_an_hour,
);

/// (endpoint, message id, type) of all deliveries, oldest first.
async fn noted(world: &World) -> Vec<(EndpointId, String, String)> {
    let all = world.deliveries().await.into_iter();
    all.map(|view| {
        let endpoint = view.endpoint_id.unwrap();
        (endpoint, view.webhook_id.to_string(), view.kind.to_string())
    })
    .collect()
}

async fn each_notice_is_noted_once_however_often_the_outbox_stops(world: World) {
    world.endpoint().await;
    let task = world.created(100, 0, None, None).await;
    let mut outbox = world.outbox();
    for attempt in 1..=60 {
        world.started(100, task, attempt).await;
        if attempt % 7 == 0 {
            // Wherever it is, it is cut off.
            outbox.stop().await;
            outbox = world.outbox();
        }
    }
    outbox.reaches(61).await;
    outbox.stop().await;

    let noted = noted(&world).await;
    let ids: HashSet<_> = noted.iter().map(|(_, id, _)| id).collect();
    assert_eq!((noted.len(), ids.len()), (61, 61));
    let lease = world.only_lease().await;
    for sequence in 1..=61 {
        let due = world.due(&lease).await;
        assert_eq!(
            (due.len(), &told(&due[0])["sequence"]),
            (1, &sequence.into())
        );
        world.tell(&lease, &due[0], Next::Delivered).await;
    }
}

async fn two_outboxes_at_once_note_each_notice_once(world: World) {
    world.endpoint().await;
    let task = world.created(100, 0, None, None).await;
    let (mut a, mut b) = (world.outbox(), world.outbox());
    for attempt in 1..=100 {
        world.started(100, task, attempt).await;
    }
    a.reaches(101).await;
    b.reaches(101).await;
    a.stop().await;
    b.stop().await;
    let noted = noted(&world).await;
    let ids: HashSet<_> = noted.iter().map(|(_, id, _)| id).collect();
    assert_eq!((noted.len(), ids.len()), (101, 101));
}

async fn one_event_reaches_ten_thousand_endpoints(world: World) {
    world.many_endpoints(10_000).await;
    world.created(100, 0, None, None).await;
    world.note_all().await;

    let all = world.deliveries().await;
    let endpoints: HashSet<_> = all.iter().map(|view| view.endpoint_id).collect();
    let messages: HashSet<_> = all.iter().map(|view| &view.webhook_id).collect();
    assert_eq!(
        (all.len(), endpoints.len(), messages.len()),
        (10_000, 10_000, 1)
    );
    assert_eq!(world.lease().await.len(), 100, "as many as were asked for");
}

async fn one_endpoint_among_ten_thousand_costs_what_one_costs(world: World) {
    world.many_endpoints(10_000).await;
    let known = world.store.wanted(None).await.unwrap();
    assert_eq!((known.lasting.len(), known.is_change), (10_000, false));

    world.endpoint().await;
    let changed = world.store.wanted(Some(known.state.generation)).await;
    let changed = changed.unwrap();
    assert_eq!((changed.lasting.len(), changed.is_change), (1, true));

    // What is gone is not told one by one.
    let gone = world.endpoint().await;
    world.store.delete(gone, world.now()).await.unwrap();
    let all = world.store.wanted(Some(changed.state.generation)).await;
    let all = all.unwrap();
    assert_eq!((all.lasting.len(), all.is_change), (10_001, false));
    let none = world
        .store
        .wanted(Some(all.state.generation))
        .await
        .unwrap();
    assert_eq!((none.lasting.len(), none.is_change), (0, true));
}

async fn an_outbox_at_work_learns_what_is_made_changed_and_removed(world: World) {
    let stays = world.endpoint().await;
    let mut outbox = world.outbox();
    let task = world.created(100, 0, None, None).await;
    outbox.reaches(1).await;
    // Made; changed so that it wants nothing of this; removed.
    let (changes, goes) = (world.endpoint().await, world.endpoint().await);
    world.started(100, task, 1).await;
    outbox.reaches(2).await;
    let only_ends: Arc<[EventName]> = Arc::from([EventName::Task(Kind::Completed)]);
    let change = Change {
        events: Some(Some(only_ends)),
        ..Change::default()
    };
    let changed = world.store.update(changes, &change, world.now()).await;
    assert!(changed.unwrap().is_some());
    world.store.delete(goes, world.now()).await.unwrap();
    world.started(100, task, 2).await;
    outbox.reaches(3).await;
    world.completed(100, task).await;
    outbox.reaches(4).await;
    outbox.stop().await;

    let noted = noted(&world).await;
    let of = |endpoint| noted.iter().filter(|(of, ..)| *of == endpoint).count();
    // A completion is told twice: as a status and as an end.
    assert_eq!((of(stays), of(changes), of(goes)), (5, 2, 1));
}

async fn an_endpoint_gets_what_happens_after_it_was_made(world: World) {
    let task = world.created(100, 0, None, None).await;
    // The outbox has not seen anything yet.
    world.endpoint().await;
    world.started(100, task, 1).await;
    world.note_all().await;
    let lease = world.only_lease().await;
    let due = world.due(&lease).await;
    assert_eq!((due.len(), &told(&due[0])["sequence"]), (1, &2.into()));
    // What its event does not say.
    let told = told(&due[0]);
    assert_eq!(told["name"], "t");
    assert_eq!(told["labels"], json!({"flow": "100"}));
}

async fn an_endpoint_made_through_another_server_misses_nothing(world: World) {
    // A server of which this outbox hears nothing but through the tables.
    let elsewhere: Arc<Store> = world.again(KEY).await.unwrap();
    let mut outbox = world.outbox();
    let task = world.created(100, 0, None, None).await;
    for attempt in 1..=50 {
        world.started(100, task, attempt).await;
    }
    let new = world.new_endpoint(Filter::default());
    let head = world.log.head().await.unwrap();
    elsewhere.create(&new, head, world.now()).await.unwrap();
    for attempt in 51..=100 {
        world.started(100, task, attempt).await;
    }
    outbox.reaches(101).await;
    outbox.stop().await;
    elsewhere.close().await;
    assert_eq!(noted(&world).await.len(), 50);
}

async fn an_endpoint_gets_what_its_filters_want(world: World) {
    let ended: Arc<[EventName]> = Arc::from([EventName::Task(Kind::Completed)]);
    let filters = [
        Filter {
            events: Some(ended),
            ..Filter::default()
        },
        Filter {
            flow: Some(task(200).as_flow()),
            ..Filter::default()
        },
        Filter {
            user: Some(Arc::from("ann")),
            ..Filter::default()
        },
        Filter {
            flow: Some(task(200).as_flow()),
            user: Some(Arc::from("ann")),
            ..Filter::default()
        },
        Filter {
            labels: Selector::parse(&json!({"flow": "100"})).unwrap(),
            ..Filter::default()
        },
        Filter {
            labels: Selector::parse(&json!({"flow": null, "other": null})).unwrap(),
            ..Filter::default()
        },
    ];
    let mut endpoints = Vec::new();
    for filter in filters {
        endpoints.push(world.create(world.new_endpoint(filter)).await);
    }
    for (flow, user) in [(100, "ann"), (200, "bob")] {
        let root = world.created(flow, 0, Some(user), None).await;
        // Its own user is another one: that of the root counts.
        world.created(flow, 1, Some("cy"), None).await;
        world.completed(flow, root).await;
    }
    world.note_all().await;

    let noted = noted(&world).await;
    let of = |n: usize| noted.iter().filter(|(e, ..)| *e == endpoints[n]).count();
    assert_eq!([of(0), of(1), of(2), of(3)], [2, 4, 4, 0]);
    assert_eq!([of(4), of(5)], [4, 0]);
}

async fn a_log_without_endpoints_is_passed_over(world: World) {
    let task = world.created(100, 0, None, None).await;
    for attempt in 1..=20 {
        world.started(100, task, attempt).await;
    }
    let before = world.store.state().await.unwrap();
    assert_eq!(before.position, None);
    world.note_all().await;
    let after = world.store.state().await.unwrap();
    assert_eq!(
        (after.position, after.generation),
        (Some(21), before.generation)
    );
    assert_eq!(world.deliveries().await.len(), 0);
}

fn callback() -> Callback {
    Callback {
        url: Arc::from("https://caller.example/"),
        headers: Vec::new(),
        secret: None,
        reported: None,
    }
}

async fn kept(world: &World, n: u64) -> CallbackId {
    let callback_id = CallbackId(id(n));
    world.create(callback().endpoint(callback_id, None)).await;
    callback_id
}

/// Two runs of one flow of four tasks; the first one covers two of them, and a fifth joins it.
async fn a_flow_with_two_runs(world: &World, callback: CallbackId, restart: bool) {
    let (run, other) = (RunId(id(1)), RunId(id(2)));
    for ordinal in 0..4 {
        world.created(100, ordinal, None, None).await;
    }
    world
        .run_started(100, run, vec![(1, 2)], Some(callback))
        .await;
    world.run_started(100, other, vec![(3, 3)], None).await;
    world.started(100, task(101), 1).await;
    world.started(100, task(103), 1).await;
    if restart {
        world.note_all().await;
    }
    world.created(100, 4, None, Some(run)).await;
    world.run_ended(100, other).await;
    world.completed(100, task(104)).await;
    world.run_ended(100, run).await;
    world.started(100, task(102), 2).await;
    world.note_all().await;
}

async fn is_told_of_its_run(world: &World, callback: CallbackId) {
    let lease = world.only_lease().await;
    assert_eq!(lease.endpoint, EndpointId::from(callback));
    let mut told_of = Vec::new();
    loop {
        let due = world.due(&lease).await;
        if due.is_empty() {
            break;
        }
        for due in due {
            let body = told(&due);
            told_of.push((
                body["sequence"].as_u64().unwrap(),
                body["task_id"].as_str().unwrap().to_owned(),
                body["final"] == true,
            ));
            world.tell(&lease, &due, Next::Delivered).await;
        }
    }
    told_of.sort();
    let task_of = |n: u64| task(n).to_string();
    let expected = [
        (7, task_of(101), false),
        (9, task_of(104), false),
        (11, task_of(104), false),
        (12, task_of(100), true),
    ];
    assert_eq!(told_of, expected);
    world.store.release(&lease).await.unwrap();
}

async fn a_callback_is_told_of_its_run_alone_until_it_ends(world: World) {
    let callback = kept(&world, 7).await;
    a_flow_with_two_runs(&world, callback, false).await;
    is_told_of_its_run(&world, callback).await;

    // It is not among the webhooks, and gone after a day.
    assert_eq!(world.store.list(None, 0, 10).await.unwrap().len(), 0);
    world.clock.advance_ms(24 * 3_600_000 + 60_000);
    let swept = world.store.sweep(world.now(), None).await.unwrap();
    assert_eq!(swept.callbacks, 1);
    assert_eq!(world.store.get(callback.into()).await.unwrap(), None);
}

async fn a_callback_goes_on_after_a_restart(world: World) {
    let callback = kept(&world, 7).await;
    a_flow_with_two_runs(&world, callback, true).await;
    is_told_of_its_run(&world, callback).await;
}

async fn a_callback_that_no_event_names_is_removed_after_an_hour(world: World) {
    let unused = kept(&world, 7).await;
    let refused = kept(&world, 8).await;
    let used = kept(&world, 9).await;
    world.created(100, 0, None, None).await;
    world
        .run_started(100, RunId(id(1)), vec![(0, 0)], Some(used))
        .await;
    world.note_all().await;

    world.store.forget_callback(refused.into()).await.unwrap();
    assert_eq!(world.store.get(refused.into()).await.unwrap(), None);
    let seen = world.now();
    let swept = world.store.sweep(world.now(), Some(seen)).await.unwrap();
    assert_eq!(swept.callbacks, 0);
    world.clock.advance_ms(2 * 3_600_000);
    let swept = world.store.sweep(world.now(), Some(world.now())).await;
    assert_eq!(swept.unwrap().callbacks, 1);
    assert_eq!(world.store.get(unused.into()).await.unwrap(), None);
    assert!(world.store.get(used.into()).await.unwrap().is_some());
    let forgotten = world.store.forget_callback(used.into()).await;
    forgotten.unwrap();
    assert!(world.store.get(used.into()).await.unwrap().is_some());
}

#[tokio::test]
async fn whoever_waits_hears_of_what_another_server_has_noted() {
    let world = World::of_database().await;
    let elsewhere: Arc<Store> = world.again(KEY).await.unwrap();
    world.endpoint().await;
    // Listening begins with a hint of its own.
    let changed = tokio::time::timeout(PATIENCE, elsewhere.changed());
    changed.await.unwrap();
    let waiting = {
        let elsewhere = elsewhere.clone();
        tokio::spawn(async move { elsewhere.changed().await })
    };
    world.created(100, 0, None, None).await;
    world.note_all().await;
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .unwrap()
        .unwrap();
    elsewhere.close().await;
}

#[tokio::test]
async fn a_store_that_has_listened_is_closed_in_time() {
    let world = World::of_database().await;
    let elsewhere: Arc<Store> = world.again(KEY).await.unwrap();
    let changed = tokio::time::timeout(PATIENCE, elsewhere.changed());
    changed.await.unwrap();
    // It listens; somebody waits, and then does not any more.
    let left = tokio::time::timeout(Duration::from_millis(50), elsewhere.changed());
    assert!(left.await.is_err(), "nothing has changed");
    assert!(elsewhere.close().await);
}

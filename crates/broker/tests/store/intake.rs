//! The outcomes that events produce.

use crate::events::{
    at, blocked, cancelled, completed, copied, created, failed, flow, published, published_by,
    requeued, started, task,
};
use crate::world::{TENANT, World};
use crate::{called, latest, owner, owner_of, take, text, waiting};
use serde_json::json;
use std::sync::Arc;
use taskledger_broker::{Blocked, Error, ID_BYTES_MAX, NAMESAKES_MAX, Outcome, Published};
use taskledger_domain::Recorded;
use taskledger_domain::flow::RequeueReason;
use taskledger_testkit::postgres::admin::waits;

pub(crate) async fn each_end_is_noted_once_however_often_its_events_come(world: World) {
    let store = &world.store;
    assert_eq!(store.position().await.unwrap(), 0);
    let first = [published(3, 1, "ann", "a"), published(4, 2, "ann", "b")];
    // Task 9 is nobody's; 3 begins and ends in one batch.
    let second = [
        completed(6, 2),
        completed(7, 9),
        published(8, 3, "ann", "c"),
        cancelled(9, 3),
        failed(12, 1, false),
    ];
    for _ in 0..2 {
        take(store, 0, &first).await;
        assert_eq!(take(store, 4, &second).await, 12);
    }
    // What was taken in before is passed over event by event.
    let both: Vec<Arc<Recorded>> = [&first[..], &second, &[completed(13, 4)]].concat();
    assert_eq!(take(store, 0, &both).await, 13);
    assert_eq!(waiting(store, "ann").await, ["1 b 6", "2 c 9", "3 a 12"]);
    // A batch that brings nothing moves the place.
    assert_eq!(store.intake(13, &[], &[], 20).await.unwrap(), 20);
    assert_eq!(store.position().await.unwrap(), 20);
    assert_eq!(store.newest().await.unwrap(), 3);

    let found = store.published(&text(TENANT), task(3)).await.unwrap();
    let expected = Published {
        task_id: task(3),
        flow: flow(3),
        owner: owner(),
        requester: text("ann"),
        external_id: text("c"),
        position: 8,
        published_at: at(8),
    };
    assert_eq!(found, Some(expected));
    let found = store.undelivered(&owner(), &text("ann"), 1, 1).await;
    let expected = Outcome {
        number: 2,
        task_id: task(3),
        flow: flow(3),
        version: 9,
        position: 9,
        owner: owner(),
        requester: text("ann"),
        external_id: text("c"),
        at: at(9),
        delivered_at: None,
    };
    assert_eq!(found.unwrap(), [expected]);
}

pub(crate) async fn nothing_is_noted_while_events_are_missing(world: World) {
    let store = &world.store;
    take(store, 0, &[published(1, 1, "ann", "a")]).await;
    // Of the events between 1 and 5, nobody knows.
    assert_eq!(take(store, 5, &[completed(6, 1)]).await, 1);
    assert_eq!(store.position().await.unwrap(), 1);
    assert_eq!(waiting(store, "ann").await, [""; 0]);
    // What lies behind the end of the batch is left for the next one.
    let events = [completed(6, 1), completed(8, 1)];
    assert_eq!(store.intake(1, &events, &[], 7).await.unwrap(), 7);
    assert_eq!(waiting(store, "ann").await, ["1 a 6"]);
}

pub(crate) async fn two_who_take_in_the_same_events_note_them_once(world: World) {
    let (one, other) = (&world.store, &world.other().await);
    let events: Vec<Arc<Recorded>> = (0..40)
        .map(|i| match i % 2 {
            0 => published(i + 1, u128::from(i), "ann", &format!("t{i}")),
            _ => completed(i + 1, u128::from(i - 1)),
        })
        .collect();
    // Their batches overlap without being equal.
    let follow = async |store: &taskledger_broker::BrokerStore, size: usize| {
        let mut place = 0;
        while place < 40 {
            let behind = usize::try_from(place).unwrap();
            let batch = &events[behind..(behind + size).min(40)];
            place = take(store, place, batch).await;
        }
    };
    tokio::join!(follow(one, 3), follow(other, 7));
    let expected: Vec<String> = (0..20)
        .map(|i| format!("{} t{} {}", i + 1, 2 * i, 2 * i + 2))
        .collect();
    assert_eq!(waiting(one, "ann").await, expected);
    assert_eq!(other.newest().await.unwrap(), 20);
}

pub(crate) async fn only_what_carries_a_mark_and_is_no_copy_is_published(world: World) {
    let store = &world.store;
    let long = "x".repeat(ID_BYTES_MAX + 1);
    let marks = [
        json!({}),
        json!(null),
        json!({"eventbus": null}),
        json!({"eventbus": "a"}),
        json!({"eventbus": {"task_id": "a"}}),
        json!({"eventbus": {"task_id": "", "requester": "ann"}}),
        json!({"eventbus": {"task_id": "a", "requester": ""}}),
        json!({"eventbus": {"task_id": 7, "requester": "ann"}}),
        json!({"eventbus": {"task_id": long, "requester": "ann"}}),
        json!({"eventbus": {"task_id": "a", "requester": long}}),
        json!({"note": "eventbus", "of": {"eventbus": {"task_id": "a", "requester": "ann"}}}),
    ];
    let mut events: Vec<Arc<Recorded>> = (1..)
        .zip(&marks)
        .map(|(i, params)| created(i, u128::from(i), params))
        .collect();
    events.push(published(20, 20, "ann", "a"));
    events.push(copied(21, 21, 20, "a"));
    events.extend((1..=21).map(|i| completed(100 + i, u128::from(i))));
    take(store, 0, &events).await;
    assert_eq!(called(store, &owner(), None, "a").await, [20]);
    assert_eq!(waiting(store, "ann").await, ["1 a 120"]);
    assert_eq!(
        store.published(&text(TENANT), task(21)).await.unwrap(),
        None
    );
}

pub(crate) async fn tasks_that_cannot_run_are_told_once_for_each_cause(world: World) {
    let store = &world.store;
    let end = failed(5, 1, false);
    let events = [
        published(1, 1, "ann", "a"),
        published(2, 2, "ann", "b"),
        published(3, 3, "bob", "c"),
        end.clone(),
        completed(7, 4),
    ];
    let blocked = |id, told| blocked(id, &end, told);
    // Task 9 was not published.
    let all = [blocked(2, 5), blocked(3, 5), blocked(9, 5)];
    assert_eq!(store.intake(0, &events, &all, 7).await.unwrap(), 7);
    assert_eq!(waiting(store, "ann").await, ["1 a 5", "2 b 5"]);
    assert_eq!(waiting(store, "bob").await, ["3 c 5"]);
    // The same cause is found again, for one task more.
    let more = [
        published(8, 4, "ann", "d"),
        cancelled(9, 7),
        completed(10, 8),
    ];
    let again = [blocked(2, 9), blocked(4, 9)];
    assert_eq!(store.intake(7, &more, &again, 10).await.unwrap(), 10);
    let told = ["1 a 5", "2 b 5", "4 d 5"];
    assert_eq!(waiting(store, "ann").await, told);
    let found = store.undelivered(&owner(), &text("ann"), 2, 1).await;
    let found = found.unwrap().remove(0);
    assert_eq!((found.version, found.at), (5, at(9)));
    assert_eq!(latest(store, "ann", &["b"]).await, ["2 b 5"]);
    let world = world.reopened().await;
    let store = &world.store;
    assert_eq!(waiting(store, "ann").await, told);
    // One that is cancelled before it began has been told of; one that ran after all ends.
    take(store, 10, &[cancelled(11, 2), completed(12, 4)]).await;
    assert_eq!(
        waiting(store, "ann").await,
        ["1 a 5", "2 b 5", "4 d 5", "5 d 12"]
    );
    take(store, 12, &[cancelled(13, 4)]).await;
    assert_eq!(waiting(store, "bob").await, ["3 c 5"]);
    assert_eq!(latest(store, "ann", &["d"]).await, ["6 d 13"]);
}

pub(crate) async fn a_task_that_began_after_all_is_told_of_again(world: World) {
    let store = &world.store;
    let end = failed(3, 1, false);
    let events = [
        published(1, 1, "ann", "a"),
        published(2, 2, "ann", "b"),
        end.clone(),
        published(4, 3, "bob", "c"),
    ];
    let all = [blocked(2, &end, 3), blocked(3, &end, 4)];
    assert_eq!(store.intake(0, &events, &all, 4).await.unwrap(), 4);
    assert_eq!(waiting(store, "ann").await, ["1 a 3", "2 b 3"]);
    let world = world.reopened().await;
    let store = &world.store;
    // It begins, fails, and is cancelled while it waits for its next attempt: in batches of their own, or in one.
    take(store, 4, &[started(5, 2)]).await;
    take(store, 5, &[failed(6, 2, true)]).await;
    take(store, 6, &[cancelled(7, 2)]).await;
    assert_eq!(waiting(store, "ann").await, ["1 a 3", "2 b 3", "4 b 7"]);
    let events = [started(8, 3), failed(9, 3, true), cancelled(10, 3)];
    take(store, 7, &events).await;
    assert_eq!(waiting(store, "bob").await, ["3 c 3", "5 c 10"]);
    // The same of one of which it is said in the same batch that it cannot begin.
    let events = [
        published(11, 4, "cid", "d"),
        started(12, 4),
        failed(13, 4, true),
        cancelled(14, 4),
    ];
    let told = [blocked(4, &end, 11)];
    assert_eq!(store.intake(10, &events, &told, 14).await.unwrap(), 14);
    assert_eq!(waiting(store, "cid").await, ["6 d 3", "7 d 14"]);
    // Of one that never began it is no news.
    let events = [published(15, 5, "dan", "e"), cancelled(16, 5)];
    let told = [blocked(5, &end, 15)];
    assert_eq!(store.intake(14, &events, &told, 16).await.unwrap(), 16);
    assert_eq!(waiting(store, "dan").await, ["8 e 3"]);
}

pub(crate) async fn when_no_task_waits_any_more_those_that_begin_are_not_looked_for(world: World) {
    let store = &world.store;
    let end = failed(5, 9, false);
    let blocked = |id| blocked(id, &end, 5);
    let events = [
        published(1, 1, "ann", "a"),
        published(2, 2, "ann", "b"),
        published(3, 3, "ann", "c"),
        published(4, 4, "ann", "d"),
        end.clone(),
    ];
    let all = [blocked(1), blocked(2), blocked(3)];
    assert_eq!(store.intake(0, &events, &all, 5).await.unwrap(), 5);
    // One begins, one ends, one is cancelled before it began.
    take(store, 5, &[started(6, 1)]).await;
    take(store, 6, &[completed(7, 2)]).await;
    take(store, 7, &[cancelled(8, 3)]).await;
    let told = waiting(store, "ann").await;
    assert_eq!(told, ["1 a 5", "2 b 5", "3 c 5", "4 b 7"]);
    // Now it is seen that none is left; then nothing is asked.
    assert_eq!(take(store, 8, &[started(9, 4)]).await, 9);
    world.run("ALTER TABLE outcomes RENAME TO gone").await;
    assert_eq!(take(store, 9, &[started(10, 4)]).await, 10);
    world.run("ALTER TABLE gone RENAME TO outcomes").await;
    // Until one is again.
    let told = [Blocked {
        told: (11, at(11)),
        ..blocked(4)
    }];
    let events = [published(11, 5, "bob", "e")];
    assert_eq!(store.intake(10, &events, &told, 11).await.unwrap(), 11);
    take(store, 11, &[started(12, 4)]).await;
    take(store, 12, &[failed(13, 4, true)]).await;
    take(store, 13, &[cancelled(14, 4)]).await;
    let told = waiting(store, "ann").await;
    assert_eq!(told[4..], ["5 d 5", "6 d 14"]);
}

pub(crate) async fn a_failure_that_is_retried_is_no_end(world: World) {
    let store = &world.store;
    let events = [
        published(1, 1, "ann", "a"),
        failed(2, 1, true),
        requeued(3, 1, RequeueReason::Retry),
    ];
    take(store, 0, &events).await;
    assert_eq!(waiting(store, "ann").await, [""; 0]);
    take(store, 3, &[failed(4, 1, false)]).await;
    assert_eq!(waiting(store, "ann").await, ["1 a 4"]);
}

pub(crate) async fn a_task_that_runs_again_ends_again(world: World) {
    let store = &world.store;
    let events = [
        published(1, 1, "ann", "a"),
        failed(2, 1, false),
        requeued(3, 1, RequeueReason::Rerun),
    ];
    take(store, 0, &events).await;
    store.deliver(&[1], at(3)).await.unwrap();
    assert_eq!(latest(store, "ann", &["a"]).await, ["1 a 2"]);
    take(store, 3, &[completed(4, 1)]).await;
    assert_eq!(waiting(store, "ann").await, ["2 a 4"]);
    assert_eq!(latest(store, "ann", &["a"]).await, ["2 a 4"]);
}

pub(crate) async fn tasks_that_share_an_external_id_are_all_found(world: World) {
    let store = &world.store;
    let by_bob = published_by("user:bob", 4, 4, ("ann", "a"));
    let events = [
        published(1, 1, "ann", "a"),
        published(2, 2, "ben", "a"),
        published(3, 3, "ann", "a"),
        by_bob,
        completed(5, 3),
        completed(6, 1),
    ];
    take(store, 0, &events).await;
    assert_eq!(called(store, &owner(), None, "a").await, [3, 2, 1]);
    assert_eq!(called(store, &owner(), Some("ann"), "a").await, [3, 1]);
    assert_eq!(called(store, &owner(), Some("ben"), "a").await, [2]);
    let bob = owner_of(TENANT, "user:bob");
    assert_eq!(called(store, &bob, None, "a").await, [4]);
    // Of several, the one that ended last.
    assert_eq!(latest(store, "ann", &["a"]).await, ["2 a 6"]);

    let many: Vec<Arc<Recorded>> = (100..=200)
        .map(|i| published(i, u128::from(i), "ann", "many"))
        .collect();
    take(store, 6, &many).await;
    let found = called(store, &owner(), None, "many").await;
    assert_eq!(found.len(), NAMESAKES_MAX as usize);
    assert_eq!((found[0], found[99]), (200, 101));
}

pub(crate) async fn the_place_and_the_numbers_go_on_after_a_restart(world: World) {
    let events = [published(1, 1, "ann", "a"), completed(2, 1)];
    take(&world.store, 0, &events).await;
    let other = [published(3, 2, "ann", "b"), completed(4, 2)];
    take(&world.store, 2, &other).await;
    // The newest goes, and its number is not given again.
    world.store.sweep(&[flow(2)]).await.unwrap();
    world.store.deliver(&[1], at(9)).await.unwrap();

    let world = world.reopened().await;
    let store = &world.store;
    assert_eq!(store.position().await.unwrap(), 4);
    assert_eq!(*store.changes().borrow(), 0);
    assert_eq!(store.newest().await.unwrap(), 2);
    assert_eq!(*store.changes().borrow(), 2);
    take(store, 2, &other).await;
    assert_eq!(waiting(store, "ann").await, [""; 0]);
    take(store, 4, &[completed(5, 1)]).await;
    assert_eq!(waiting(store, "ann").await, ["3 a 5"]);
}

pub(crate) async fn a_log_that_was_restored_is_taken_in_again(world: World) {
    let store = &world.store;
    let events = [
        published(1, 1, "ann", "a"),
        completed(2, 1),
        published(3, 2, "ann", "b"),
        completed(4, 2),
    ];
    take(store, 0, &events).await;
    assert!(!store.rewind(4).await.unwrap());
    assert!(store.rewind(2).await.unwrap());
    assert_eq!(store.position().await.unwrap(), 2);
    assert_eq!(called(store, &owner(), None, "b").await, [0; 0]);
    assert_eq!(waiting(store, "ann").await, ["1 a 2"]);
    // The log goes on in another way.
    take(
        store,
        2,
        &[
            published(3, 3, "ann", "c"),
            cancelled(4, 3),
            completed(5, 2),
        ],
    )
    .await;
    assert_eq!(waiting(store, "ann").await, ["1 a 2", "3 c 4"]);
}

pub(crate) async fn a_large_batch_is_taken_in(world: World) {
    let store = &world.store;
    let ids = 0..3_000;
    let creations = ids
        .clone()
        .map(|i| published(i + 1, u128::from(i), "ann", &format!("t{i}")));
    take(store, 0, &creations.collect::<Vec<_>>()).await;
    let ends: Vec<_> = ids.map(|i| completed(i + 3_001, u128::from(i))).collect();
    take(store, 3_000, &ends).await;
    // An answer has at most so many, whatever was asked for.
    let found = store
        .undelivered(&owner(), &text("ann"), 0, u32::MAX)
        .await
        .unwrap();
    assert_eq!(found.len(), taskledger_broker::ROWS_MAX as usize);
    let flows: Vec<_> = (0..3_000).map(flow).collect();
    assert_eq!(store.sweep(&flows).await.unwrap(), 6_000);
    assert_eq!(waiting(store, "ann").await, [""; 0]);
}

pub(crate) async fn what_brings_nothing_is_passed_over_and_read_again_after_a_restart(
    world: World,
) {
    let store = &world.store;
    assert_eq!(take(store, 0, &[completed(1, 9)]).await, 1);
    let events = [published(2, 1, "ann", "a"), completed(3, 9)];
    assert_eq!(take(store, 1, &events).await, 3);
    let nothing = [completed(4, 9), completed(7, 8)];
    assert_eq!(take(store, 3, &nothing).await, 7);
    assert_eq!(store.position().await.unwrap(), 7);
    let world = world.reopened().await;
    let store = &world.store;
    assert_eq!(store.position().await.unwrap(), 3);
    assert_eq!(take(store, 3, &nothing).await, 7);
    assert_eq!(take(store, 7, &[completed(8, 1)]).await, 8);
    assert_eq!(waiting(store, "ann").await, ["1 a 8"]);
    // After very many events the place is stored.
    assert_eq!(
        store.intake(8, &[], &[], 1_000_000).await.unwrap(),
        1_000_000
    );
    let world = world.reopened().await;
    assert_eq!(world.store.position().await.unwrap(), 1_000_000);
}

#[tokio::test]
async fn what_brings_nothing_waits_for_nobody() {
    let world = World::on_postgres().await;
    let store = &world.store;
    let mut other = world.admin().await;
    other
        .run("BEGIN; SELECT * FROM taskledger_broker.state FOR UPDATE")
        .await;
    assert_eq!(take(store, 0, &[completed(1, 9), completed(2, 8)]).await, 2);
    other.run("COMMIT").await;
    take(store, 2, &[published(3, 1, "ann", "a")]).await;
    other
        .run("BEGIN; SELECT * FROM taskledger_broker.state FOR UPDATE")
        .await;
    assert_eq!(take(store, 3, &[completed(4, 9)]).await, 4);
    other.run("COMMIT").await;
    assert_eq!(take(store, 4, &[completed(5, 1)]).await, 5);
    assert_eq!(waiting(store, "ann").await, ["1 a 5"]);
}

#[tokio::test]
async fn an_intake_waits_for_the_one_before_it_and_passes_over_what_that_noted() {
    let world = World::on_postgres().await;
    let store = world.store.clone();
    take(&store, 0, &[published(1, 1, "ann", "a")]).await;
    let mut before = world.admin().await;
    before
        .run("BEGIN; UPDATE taskledger_broker.state SET position = 3, newest = 7")
        .await;
    let behind = tokio::spawn(async move {
        let events = [completed(2, 1), completed(3, 1), completed(4, 1)];
        take(&store, 1, &events).await
    });
    waits(&mut world.admin().await, 1).await;
    before.run("COMMIT").await;
    assert_eq!(behind.await.unwrap(), 4);
    assert_eq!(waiting(&world.store, "ann").await, ["8 a 4"]);
}

#[tokio::test]
async fn a_damaged_row_is_told() {
    let world = World::on_sqlite().await;
    take(&world.store, 0, &[published(1, 1, "ann", "a")]).await;
    world.run("UPDATE published SET flow_id = x'00'").await;
    // What was noted a moment ago is remembered.
    let world = world.reopened().await;
    let found = world.store.published(&text(TENANT), task(1)).await;
    assert!(matches!(found, Err(Error::Damaged(_))), "{found:?}");
}

//! The contents of inboxes, and who can read them.

use crate::events::{ACTOR, at, completed, flow, published, published_by, task};
use crate::world::{TENANT, World};
use crate::{called, latest, owner, owner_of, take, text, told, waiting};
use std::sync::Arc;
use taskledger_broker::{ID_BYTES_MAX, NAMES_MAX, TooManyNames};
use taskledger_domain::Recorded;

/// One task of `ann`, called `a`, which has ended.
async fn with_one_end(world: &World) {
    let events = [published(1, 1, "ann", "a"), completed(2, 1)];
    take(&world.store, 0, &events).await;
}

pub(crate) async fn strangers_see_nothing(world: World) {
    with_one_end(&world).await;
    let store = &world.store;
    let ids = [text("a")];
    let mine = owner();
    // The last two would be equal to the owner if names were only put together.
    let strangers = [
        owner_of("other", ACTOR),
        owner_of(TENANT, "service:other"),
        owner_of(TENANT, ""),
        owner_of("mai", &format!("n{ACTOR}")),
        owner_of(TENANT, &format!("{ACTOR}a")),
    ];
    for stranger in strangers {
        assert_eq!(called(store, &stranger, None, "a").await, [0; 0]);
        assert_eq!(called(store, &stranger, Some("ann"), "a").await, [0; 0]);
        for requester in ["ann", "nn"] {
            let requester = text(requester);
            let found = store.undelivered(&stranger, &requester, 0, 10).await;
            assert_eq!(told(&found.unwrap()), [""; 0]);
            let found = store.outcomes_of(&stranger, &requester, &ids).await;
            assert_eq!(told(&found.unwrap().unwrap()), [""; 0]);
        }
    }
    for requester in ["ben", "Ann", "", "an"] {
        assert_eq!(called(store, &mine, Some(requester), "a").await, [0; 0]);
        assert_eq!(waiting(store, requester).await, [""; 0]);
        assert_eq!(latest(store, requester, &["a"]).await, [""; 0]);
    }
    let of_other = store.published(&text("other"), task(1)).await;
    assert_eq!(of_other.unwrap(), None);
    assert_eq!(called(store, &mine, Some("ann"), "a").await, [1]);
    assert_eq!(waiting(store, "ann").await, ["1 a 2"]);
}

pub(crate) async fn what_was_delivered_is_told_no_more_and_keeps_its_first_time(world: World) {
    let store = &world.store;
    let events = [
        published(1, 1, "ann", "a"),
        published(2, 2, "ann", "b"),
        completed(3, 1),
        completed(4, 2),
    ];
    take(store, 0, &events).await;
    assert_eq!(store.deliver(&[1, 7, 1], at(10)).await.unwrap(), [1]);
    assert_eq!(store.deliver(&[2, 1], at(11)).await.unwrap(), [2]);
    assert_eq!(store.deliver(&[], at(12)).await.unwrap(), [0; 0]);
    assert_eq!(waiting(store, "ann").await, [""; 0]);
    let ids = [text("b"), text("a")];
    let found = store.outcomes_of(&owner(), &text("ann"), &ids).await;
    let found = found.unwrap().unwrap();
    let times: Vec<_> = found.iter().map(|it| it.delivered_at).collect();
    assert_eq!(times, [Some(at(10)), Some(at(11))]);
}

pub(crate) async fn two_who_deliver_mark_each_outcome_once(world: World) {
    let (one, other) = (&world.store, &world.other().await);
    let mut events: Vec<Arc<Recorded>> = Vec::new();
    for i in 1..=200 {
        events.push(published(i, u128::from(i), "ann", &format!("t{i}")));
    }
    events.extend((1..=200).map(|i| completed(200 + i, u128::from(i))));
    take(one, 0, &events).await;
    let up: Vec<u64> = (1..=150).collect();
    let down: Vec<u64> = (50..=200).rev().collect();
    let (by_one, by_other) = tokio::join!(one.deliver(&up, at(1)), other.deliver(&down, at(2)));
    let mut marked = [by_one.unwrap(), by_other.unwrap()].concat();
    marked.sort_unstable();
    assert_eq!(marked, (1..=200).collect::<Vec<u64>>());
    assert_eq!(waiting(one, "ann").await, [""; 0]);
}

pub(crate) async fn named_tasks_are_told_again_whether_delivered_or_not(world: World) {
    let store = &world.store;
    let events = [
        published(1, 1, "ann", "a"),
        published(2, 2, "ann", "b"),
        published(3, 3, "ann", "goes on"),
        published(4, 4, "ann", "not asked for"),
        completed(5, 2),
        completed(6, 1),
        completed(7, 4),
    ];
    take(store, 0, &events).await;
    store.deliver(&[1], at(8)).await.unwrap();
    let asked = ["unknown", "a", "b", "goes on", "a"];
    assert_eq!(latest(store, "ann", &asked).await, ["1 b 5", "2 a 6"]);
    assert_eq!(latest(store, "ann", &[]).await, [""; 0]);
    let mut many: Vec<Arc<str>> = (1..NAMES_MAX).map(|i| text(&format!("t{i}"))).collect();
    many.push(text("a"));
    let found = store.outcomes_of(&owner(), &text("ann"), &many).await;
    assert_eq!(told(&found.unwrap().unwrap()), ["2 a 6"]);
    many.push(text("b"));
    let found = store.outcomes_of(&owner(), &text("ann"), &many).await;
    let found_ids = NAMES_MAX + 1;
    assert_eq!(found.unwrap(), Err(TooManyNames { found: found_ids }));
}

pub(crate) async fn whoever_waits_is_woken_on_every_server(world: World) {
    let (one, other) = (&world.store, &world.other().await);
    let mut here = one.changes();
    let mut there = other.changes();
    let creation = [published(1, 1, "ann", "a")];
    take(one, 0, &creation).await;
    assert!(!here.has_changed().unwrap());
    let end = [completed(2, 1)];
    take(one, 1, &end).await;
    assert_eq!(*here.borrow_and_update(), 1);
    // The other server reads the same events, and notes nothing.
    take(other, 0, &creation).await;
    take(other, 1, &end).await;
    assert_eq!(*there.borrow_and_update(), 1);
    take(one, 2, &[completed(3, 9)]).await;
    assert!(!here.has_changed().unwrap() && !there.has_changed().unwrap());
}

pub(crate) async fn ids_hold_any_character_up_to_their_limit(world: World) {
    let store = &world.store;
    // Texts that no compression makes short, so that an index could not hold them.
    let odd = |seed: u32| {
        let mut state = seed;
        let mut text = String::from("\0\u{1}'\"\\");
        while text.len() < ID_BYTES_MAX {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push(char::from(33 + (state >> 24) as u8 % 94));
        }
        text
    };
    let (actor, requester, id) = (odd(1), odd(2), odd(3));
    let events = [
        published_by(&actor, 1, 1, (&requester, &id)),
        published_by(&actor, 2, 2, (&requester, "\u{1}0")),
        published_by(&actor, 3, 3, (&requester, "\0")),
        completed(4, 1),
    ];
    take(store, 0, &events).await;
    let owner = owner_of(TENANT, &actor);
    assert_eq!(called(store, &owner, Some(&requester), &id).await, [1]);
    assert_eq!(called(store, &owner, None, "\0").await, [3]);
    let found = store.undelivered(&owner, &text(&requester), 0, 10).await;
    let found = found.unwrap();
    assert_eq!(
        (
            &*found[0].external_id,
            &found[0].owner,
            &*found[0].requester
        ),
        (&*id, &owner, &*requester)
    );
}

pub(crate) async fn swept_flows_are_forgotten(world: World) {
    let store = &world.store;
    let events = [
        published(1, 1, "ann", "a"),
        published(2, 2, "ann", "b"),
        published(3, 3, "ann", "c"),
        completed(4, 1),
        completed(5, 2),
        completed(6, 3),
    ];
    take(store, 0, &events).await;
    store.deliver(&[1], at(7)).await.unwrap();
    assert_eq!(store.sweep(&[]).await.unwrap(), 0);
    // Delivered or not.
    let gone = [flow(1), flow(2), flow(9)];
    assert_eq!(store.sweep(&gone).await.unwrap(), 4);
    assert_eq!(store.sweep(&gone).await.unwrap(), 0);
    assert_eq!(waiting(store, "ann").await, ["3 c 6"]);
    assert_eq!(latest(store, "ann", &["a", "b", "c"]).await, ["3 c 6"]);
    assert_eq!(called(store, &owner(), None, "a").await, [0; 0]);
    // A later event of such a flow makes nothing.
    take(store, 6, &[completed(7, 1)]).await;
    assert_eq!(waiting(store, "ann").await, ["3 c 6"]);
}

//! Saved documents on both engines.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod world;

use std::sync::Arc;
use taskledger_beside::Owner;
use taskledger_documents::{DocumentStore, Error, EventKind, Form, NewVersion, Refusal, Saved};
use taskledger_domain::Timestamp;
use world::World;

fn owner(user: &str) -> Owner {
    let user = Some(user).filter(|user| !user.is_empty());
    Owner {
        tenant: Arc::from("main"),
        user: user.map(Arc::from),
    }
}

fn new(name: &str, text: &str) -> NewVersion {
    NewVersion {
        name: Arc::from(name),
        info_version: Arc::from("1.0.0"),
        hash: Arc::from(format!("hash of {text}")),
        form: Form::Text,
        text: Arc::from(text),
        by: Arc::from("user:ann"),
        at: Timestamp(1_767_225_600_000_000),
    }
}

async fn saved(store: &DocumentStore, user: &str, name: &str, text: &str) -> Saved {
    let saved = store.save(&owner(user), &new(name, text), None).await;
    saved.expect("the store works").expect("there is room")
}

async fn text_of(
    store: &DocumentStore,
    user: &str,
    name: &str,
    version: Option<u32>,
) -> Option<String> {
    let found = store
        .document(&owner(user), &Arc::from(name), version)
        .await;
    found
        .expect("the store works")
        .map(|found| found.text.to_string())
}

async fn deleted(store: &DocumentStore, user: &str, name: &str) -> Result<bool, Error> {
    let at = Timestamp(1_767_225_600_000_001);
    let by = Arc::from("user:bob");
    let deleted = store
        .delete(&owner(user), &Arc::from(name), None, (by, at))
        .await;
    deleted.map(|deleted| deleted.expect("no version was expected"))
}

/// `version kind`, with `*` for a document that is kept.
async fn events(store: &DocumentStore, name: &str, before: Option<u32>) -> Vec<String> {
    let events = store
        .events(&owner("ann"), &Arc::from(name), before, 10)
        .await;
    let told = events.expect("the store works").into_iter().map(|it| {
        let kept = if it.is_kept { "*" } else { "" };
        format!("{} {}{kept}", it.version.version, it.kind.as_str())
    });
    told.collect()
}

async fn versions_are_kept_until_they_are_deleted(world: World) {
    let store = &world.store;
    let first = saved(store, "ann", "Report", "one").await;
    assert_eq!(
        (first.version.version, first.is_new, first.previous),
        (1, true, None)
    );
    let same = saved(store, "ann", "Report", "one").await;
    assert_eq!((same.version, same.is_new), (first.version, false));
    let second = saved(store, "ann", "Report", "two\0\u{1}").await;
    assert_eq!((second.version.version, second.previous), (2, Some(1)));
    // What was saved before is no newest version: it is another one.
    assert_eq!(
        saved(store, "ann", "Report", "one").await.version.version,
        3
    );

    let world = world.reopened().await;
    let store = &world.store;
    assert_eq!(
        text_of(store, "ann", "Report", None).await.as_deref(),
        Some("one")
    );
    assert_eq!(
        text_of(store, "ann", "Report", Some(2)).await.as_deref(),
        Some("two\0\u{1}")
    );
    assert_eq!(text_of(store, "ann", "Report", Some(4)).await, None);
    assert_eq!(
        events(store, "Report", None).await,
        ["3 saved*", "2 saved*", "1 saved*"]
    );
    assert_eq!(events(store, "Report", Some(2)).await, ["1 saved*"]);

    assert!(deleted(store, "ann", "Report").await.unwrap());
    assert!(!deleted(store, "ann", "Report").await.unwrap());
    assert_eq!(text_of(store, "ann", "Report", None).await, None);
    assert_eq!(text_of(store, "ann", "Report", Some(2)).await, None);
    let again = saved(store, "ann", "Report", "one").await;
    assert_eq!((again.version.version, again.previous), (5, None));
    assert_eq!(
        events(store, "Report", None).await,
        ["5 saved*", "4 deleted", "3 saved", "2 saved", "1 saved"]
    );
    let all = store
        .events(&owner("ann"), &Arc::from("Report"), None, 10)
        .await;
    let deletion = &all.unwrap()[1];
    assert_eq!(deletion.kind, EventKind::Deleted);
    assert_eq!(&*deletion.version.saved_by, "user:bob");
}

async fn nobody_reaches_the_documents_of_another_owner(world: World) {
    let store = &world.store;
    for user in ["ann", ""] {
        saved(store, user, "Report", &format!("of {user}")).await;
        saved(store, user, "Audit", &format!("of {user}")).await;
    }
    assert_eq!(text_of(store, "bob", "Report", None).await, None);
    assert!(!deleted(store, "bob", "Report").await.unwrap());
    assert_eq!(
        text_of(store, "ann", "Report", None).await.as_deref(),
        Some("of ann")
    );
    assert_eq!(
        text_of(store, "", "Report", None).await.as_deref(),
        Some("of ")
    );
    let names = |after: Option<&'static str>, limit| async move {
        let found = store
            .names(&owner("ann"), after.map(Arc::from), limit)
            .await;
        let names = found.unwrap().into_iter().map(|it| it.name.to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(None, 10).await, ["Audit", "Report"]);
    assert_eq!(names(None, 1).await, ["Audit"]);
    assert_eq!(names(Some("Audit"), 10).await, ["Report"]);
    assert_eq!(store.names(&owner("bob"), None, 10).await.unwrap(), []);
}

async fn two_who_save_at_once_get_versions_of_their_own(world: World) {
    let store = &world.store;
    let (one, other) = tokio::join!(
        saved(store, "ann", "Report", "one"),
        saved(store, "ann", "Report", "other")
    );
    let mut numbers = [one.version.version, other.version.version];
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
}

async fn room_is_bounded_and_given_back(world: World) {
    let store = &world.store;
    let text = "x".repeat(16 * 1024 * 1024);
    for i in 0..4 {
        // Four of these fill it to the last byte.
        saved(store, "ann", &format!("n{i}"), &text).await;
    }
    let over = store.save(&owner("ann"), &new("n0", "y"), None).await;
    assert_eq!(over.unwrap(), Err(Refusal::Bytes));
    assert_eq!(events(store, "n0", None).await, ["1 saved*"]);
    saved(store, "bob", "n0", "y").await;
    assert!(deleted(store, "ann", "n3").await.unwrap());
    saved(store, "ann", "n0", "y").await;
}

#[tokio::test]
async fn a_damaged_row_is_told() {
    let world = World::on_sqlite().await;
    saved(&world.store, "ann", "Report", "one").await;
    world
        .run("UPDATE events SET version = 0 - 1; UPDATE texts SET version = -1; UPDATE names SET version = -1")
        .await;
    let found = world
        .store
        .document(&owner("ann"), &Arc::from("Report"), None)
        .await;
    assert!(matches!(found, Err(Error::Damaged(_))), "{found:?}");
}

macro_rules! on_both_engines {
    ($($name:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test] async fn $name() { super::$name(super::World::on_sqlite().await).await; })+
        }
        mod on_postgres {
            $(#[tokio::test] async fn $name() { super::$name(super::World::on_postgres().await).await; })+
        }
    };
}

on_both_engines! {
    versions_are_kept_until_they_are_deleted,
    nobody_reaches_the_documents_of_another_owner,
    two_who_save_at_once_get_versions_of_their_own,
    room_is_bounded_and_given_back,
}

//! Declared methods and drained workers.

use crate::world::{START, World, method};
use serde_json::json;
use std::sync::Arc;
use taskledger_domain::Payload;
use taskledger_workers::store::METHODS_MAX;
use taskledger_workers::{Method, OWN_METHODS_MAX, Refusal, Rights, SCHEMA_BYTES_MAX};

crate::on_both_engines!(
    a_method_is_kept_with_all_that_it_says,
    another_principals_method_is_left_alone,
    each_user_may_declare_a_method_for_their_own_flows,
    what_is_too_large_is_refused_and_nothing_is_kept,
    drained_workers_are_kept_apart_by_principal,
    changes_rise_with_each_change_and_not_without,
);

fn object(value: &serde_json::Value) -> Payload {
    Payload::from_map(value.as_object().unwrap())
}

async fn a_method_is_kept_with_all_that_it_says(w: World) {
    let full = Method {
        description: Some(Arc::from("Fetches a page\0.")),
        input_schema: Some(object(&json!({"required": ["url\u{0}"]}))),
        output_schema: Some(object(&json!({"type": "object"}))),
        defaults: Some(object(&json!({"timeout_seconds": 30}))),
        limit: Some(7),
        ..method("scrape", "user:ann")
    };
    w.store.declare(&full, Rights::Own).await.unwrap().unwrap();
    let bare = method("resize", "anonymous");
    w.store.declare(&bare, Rights::Own).await.unwrap().unwrap();
    assert_eq!(w.store.methods().await.unwrap(), [bare.clone(), full]);
    let other = Method {
        limit: Some(1),
        ..method("scrape", "user:ann")
    };
    w.store.declare(&other, Rights::Own).await.unwrap().unwrap();
    let w = w.reopened().await;
    assert_eq!(w.store.methods().await.unwrap(), [bare, other]);
    let key = method("scrape", "user:ann").key();
    let undeclare = || w.store.undeclare(&key, "user:ann", Rights::Own);
    assert_eq!(undeclare().await.unwrap(), Ok(true));
    assert_eq!(undeclare().await.unwrap(), Ok(false));
    assert_eq!(w.store.methods().await.unwrap().len(), 1);
}

async fn another_principals_method_is_left_alone(w: World) {
    let anns = method("scrape", "user:ann");
    w.store.declare(&anns, Rights::Own).await.unwrap().unwrap();
    let bobs = method("scrape", "user:bob");
    let refused = Refusal::AnotherPrincipal {
        name: anns.name.clone(),
    };
    let declared = w.store.declare(&bobs, Rights::Own).await.unwrap();
    assert_eq!(declared, Err(refused.clone()));
    let anns_key = anns.key();
    let removed = w.store.undeclare(&anns_key, "user:bob", Rights::Own);
    assert_eq!(removed.await.unwrap(), Err(refused));
    assert_eq!(w.store.methods().await.unwrap(), [anns]);
    w.store.declare(&bobs, Rights::All).await.unwrap().unwrap();
    assert_eq!(
        w.store.methods().await.unwrap(),
        std::slice::from_ref(&bobs)
    );
    let bobs_key = bobs.key();
    let removed = w.store.undeclare(&bobs_key, "service:root", Rights::All);
    assert_eq!(removed.await.unwrap(), Ok(true));
}

fn own(name: &str, user: &str) -> Method {
    Method {
        owner: Some(Arc::from(user)),
        ..method(name, &format!("user:{user}"))
    }
}

async fn each_user_may_declare_a_method_for_their_own_flows(w: World) {
    let shared = method("scrape", "service:ci");
    let all = [shared, own("scrape", "ann"), own("scrape", "bob")];
    for one in &all {
        w.store.declare(one, Rights::Own).await.unwrap().unwrap();
    }
    let w = w.reopened().await;
    assert_eq!(w.store.methods().await.unwrap(), all);
    let second = all[1].key();
    let removed = w.store.undeclare(&second, "user:ann", Rights::Own);
    assert_eq!(removed.await.unwrap(), Ok(true));
    let left = w.store.methods().await.unwrap();
    assert_eq!(left, [all[0].clone(), all[2].clone()]);
}

#[tokio::test]
async fn whoever_has_declared_many_for_themselves_leaves_room_for_others() {
    let w = World::on_sqlite().await;
    let fill = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {OWN_METHODS_MAX})
         INSERT INTO methods (name, owner, declared_by, declared_at, bytes)
            SELECT 'm' || i, 'ann', 'user:ann', 0, 10 FROM n"
    );
    w.run(&fill).await;
    let one_more = own("one more", "ann");
    let refused = w.store.declare(&one_more, Rights::Own).await.unwrap();
    let max = OWN_METHODS_MAX;
    assert_eq!(refused, Err(Refusal::TooMany { max }));
    for other in [own("one more", "bob"), method("one more", "user:ann")] {
        w.store.declare(&other, Rights::Own).await.unwrap().unwrap();
    }
}

async fn what_is_too_large_is_refused_and_nothing_is_kept(w: World) {
    let large = Method {
        output_schema: Some(object(&json!({"title": "x".repeat(SCHEMA_BYTES_MAX)}))),
        ..method("scrape", "user:ann")
    };
    let refused = w.store.declare(&large, Rights::All).await.unwrap();
    let is_it = |refusal: &Refusal| matches!(refusal, Refusal::TooLong { member, .. } if *member == "output_schema");
    assert!(refused.as_ref().is_err_and(is_it), "{refused:?}");
    let wordy = Method {
        description: Some(Arc::from("é".repeat(2_001))),
        ..method("scrape", "user:ann")
    };
    let refused = w.store.declare(&wordy, Rights::All).await.unwrap();
    let is_it = |refusal: &Refusal| matches!(refusal, Refusal::TooLong { member, found: 2_001, .. } if *member == "description");
    assert!(refused.as_ref().is_err_and(is_it), "{refused:?}");
    assert_eq!(w.store.methods().await.unwrap(), []);
    assert_eq!(w.store.changes().await.unwrap().declared, 0);
}

#[tokio::test]
async fn there_are_so_many_methods_and_no_more() {
    let w = World::on_sqlite().await;
    // Filled beside the store, which syncs each of them.
    let fill = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {METHODS_MAX})
         INSERT INTO methods (name, owner, declared_by, declared_at, bytes) SELECT 'm' || i, '', 'user:ann', 0, 10 FROM n"
    );
    w.run(&fill).await;
    let one_more = method("one more", "user:ann");
    let refused = w.store.declare(&one_more, Rights::Own).await.unwrap();
    assert_eq!(refused, Err(Refusal::TooMany { max: METHODS_MAX }));
    let again = method("m1", "user:ann");
    w.store.declare(&again, Rights::Own).await.unwrap().unwrap();
    w.run("UPDATE methods SET bytes = 67108864 WHERE name = 'm2'")
        .await;
    let refused = w.store.declare(&again, Rights::Own).await.unwrap();
    assert!(
        matches!(refused, Err(Refusal::TooLarge { .. })),
        "{refused:?}"
    );
}

async fn drained_workers_are_kept_apart_by_principal(w: World) {
    let drain = |worker, principal| w.store.drain((worker, principal), START);
    drain("w1", "user:ann").await.unwrap().unwrap();
    drain("w1", "user:ann").await.unwrap().unwrap();
    drain("w1", "user:bob").await.unwrap().unwrap();
    assert!(w.store.undrain("w1", "user:ann").await.unwrap());
    assert!(!w.store.undrain("w1", "user:ann").await.unwrap());
    let drains = w.store.drains().await.unwrap();
    let drains: Vec<_> = drains.iter().map(|d| (&*d.principal, &*d.worker)).collect();
    assert_eq!(drains, [("user:bob", "w1")]);
}

async fn changes_rise_with_each_change_and_not_without(w: World) {
    let declared = async || w.store.changes().await.unwrap().declared;
    let before = declared().await;
    let anns = method("scrape", "user:ann");
    w.store.declare(&anns, Rights::Own).await.unwrap().unwrap();
    let after = declared().await;
    assert!(after > before);
    let bobs = method("scrape", "user:bob");
    w.store
        .declare(&bobs, Rights::Own)
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(declared().await, after);
    w.store
        .drain(("w1", "user:ann"), START)
        .await
        .unwrap()
        .unwrap();
    assert!(declared().await > after);
}

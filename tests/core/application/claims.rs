//! Claims: a taken one refuses only its own command, and idempotency keys make repetitions harmless.

use crate::application::world::{
    World, caller, quiet, refused, soon, task, updates, user_named, with_key,
};
use serde_json::json;
use taskledger::application::{Context, ExecuteOptions, Target};
use taskledger_domain::flow::Kind;
use taskledger_domain::testing::id;

#[tokio::test]
async fn a_taken_task_id_refuses_only_its_own_command() {
    let w = World::new().await;
    let here = w.given_flow("here", &["a"]).await;
    w.given_flow("there", &[]).await;
    let mut hold = w.faults.hold_next_append();
    let first = w.rename("a", "one");
    hold.arrived().await;
    let lost = w.create(
        caller(),
        json!({"id": id("x"), "name": "x", "parent_id": id("here")}),
    );
    let kept = w.create(
        caller(),
        json!({"id": id("y"), "name": "y", "parent_id": id("here")}),
    );
    quiet().await;
    let won = w.create(
        caller(),
        json!({"id": id("x"), "name": "x", "parent_id": id("there")}),
    );
    assert!(soon(won).await.unwrap().is_ok());
    hold.release();
    assert!(soon(first).await.unwrap().is_ok());
    assert_eq!(refused(soon(lost).await.unwrap()), Kind::Invalid);
    assert_eq!(soon(kept).await.unwrap().unwrap()["id"], json!(id("y")));
    assert_eq!(
        w.kinds(here).await,
        ["TaskCreated", "TaskCreated", "TaskRenamed", "TaskCreated"]
    );
    assert_eq!(
        w.app.directory.flow_of(id("x")).await.unwrap(),
        Some(id("there").as_flow())
    );
}

#[tokio::test]
async fn a_root_id_that_is_taken_as_a_child_starts_no_flow() {
    let w = World::new().await;
    w.given_flow("there", &[]).await;
    let mut hold = w.faults.hold_next_append();
    let root = w.create(caller(), json!({"id": id("x"), "name": "x"}));
    hold.arrived().await;
    let child = w.create(
        caller(),
        json!({"id": id("x"), "name": "x", "parent_id": id("there")}),
    );
    assert!(soon(child).await.unwrap().is_ok());
    hold.release();
    assert_eq!(refused(soon(root).await.unwrap()), Kind::Invalid);
    assert_eq!(w.kinds(id("x").as_flow()).await, [""; 0]);
}

#[tokio::test]
async fn equal_calls_at_once_create_one_flow_and_get_one_answer() {
    let w = World::new().await;
    let mut hold = w.faults.hold_next_append();
    let first = w.create(with_key("k", "body"), json!({"name": "a"}));
    hold.arrived().await;
    let second = soon(w.create(with_key("k", "body"), json!({"name": "a"})))
        .await
        .unwrap()
        .unwrap();
    hold.release();
    assert_eq!(soon(first).await.unwrap().unwrap(), second);
    assert_eq!(*w.app.store.watch().borrow(), 1, "one task in the log");
}

#[tokio::test]
async fn another_body_at_once_under_the_same_key_is_refused() {
    let w = World::new().await;
    let mut hold = w.faults.hold_next_append();
    let first = w.create(with_key("k", "body"), json!({"name": "a"}));
    hold.arrived().await;
    assert!(
        soon(w.create(with_key("k", "other"), json!({"name": "b"})))
            .await
            .unwrap()
            .is_ok()
    );
    hold.release();
    assert_eq!(refused(soon(first).await.unwrap()), Kind::Invalid);
    assert_eq!(*w.app.store.watch().borrow(), 1);
}

#[tokio::test]
async fn equal_calls_in_one_append_are_one_call() {
    let w = World::new().await;
    let flow = w.given_flow("root", &["a"]).await;
    let mut hold = w.faults.hold_next_append();
    let rename = w.rename("a", "x");
    hold.arrived().await;
    let below = json!({"name": "new", "parent_id": id("root")});
    let first = w.create(with_key("k", "body"), below.clone());
    let second = w.create(with_key("k", "body"), below.clone());
    let other = w.create(with_key("k", "other body"), below.clone());
    let bystander = w.create(with_key("k2", "body"), below);
    quiet().await;
    hold.release();
    assert!(soon(rename).await.unwrap().is_ok());
    let first = soon(first).await.unwrap().unwrap();
    assert_eq!(soon(second).await.unwrap().unwrap(), first);
    assert_eq!(refused(soon(other).await.unwrap()), Kind::Invalid);
    assert_ne!(soon(bystander).await.unwrap().unwrap(), first);
    assert_eq!(
        w.history(flow).await.len(),
        5,
        "two tasks, one rename, two more tasks"
    );
}

#[tokio::test]
async fn a_repetition_behind_the_append_of_the_first_call_gets_its_answer() {
    let w = World::new().await;
    let flow = w.given_flow("root", &[]).await;
    let mut hold = w.faults.hold_next_append();
    let below = json!({"name": "new", "parent_id": id("root")});
    let first = w.create(with_key("k", "body"), below.clone());
    hold.arrived().await;
    let second = w.create(with_key("k", "body"), below);
    let rename = w.rename("root", "x");
    quiet().await;
    hold.release();
    assert_eq!(
        soon(first).await.unwrap().unwrap(),
        soon(second).await.unwrap().unwrap()
    );
    assert!(soon(rename).await.unwrap().is_ok());
    assert_eq!(
        w.kinds(flow).await,
        ["TaskCreated", "TaskCreated", "TaskRenamed"]
    );
}

#[tokio::test]
async fn two_deletions_with_one_key_both_succeed() {
    let w = World::new().await;
    w.given_flow("root", &["a"]).await;
    let mut hold = w.faults.hold_next_append();
    let delete =
        || w.call(|app| async move { app.delete(&with_key("k", "body"), id("a"), false).await });
    let first = delete();
    hold.arrived().await;
    let second = delete();
    quiet().await;
    hold.release();
    assert_eq!(
        soon(first).await.unwrap().unwrap(),
        json!({"success": true})
    );
    assert_eq!(
        soon(second).await.unwrap().unwrap(),
        json!({"success": true})
    );
    assert_eq!(
        soon(delete()).await.unwrap().unwrap(),
        json!({"success": true})
    );
}

#[tokio::test]
async fn a_retry_gets_the_first_answer_whatever_has_happened_to_the_task() {
    let w = World::new().await;
    let tree =
        json!({"id": id("root"), "name": "root", "children": [{"id": id("a"), "name": "a"}]});
    let created = soon(w.create(with_key("c", "b"), tree.clone()))
        .await
        .unwrap()
        .unwrap();
    let update = || {
        let change = updates(json!({"inputs": {"x": 1}}));
        w.call(move |app| async move { app.update(&with_key("u", "b"), id("a"), change).await })
    };
    let copy =
        || w.call(|app| async move { app.copy(&with_key("p", "b"), id("a"), true, None).await });
    let (updated, copied) = (
        soon(update()).await.unwrap().unwrap(),
        soon(copy()).await.unwrap().unwrap(),
    );
    let gone = w.call(|app| async move { app.delete(&caller(), id("root"), true).await });
    assert!(soon(gone).await.unwrap().is_ok());
    assert_eq!(
        soon(w.create(with_key("c", "b"), tree))
            .await
            .unwrap()
            .unwrap(),
        created
    );
    assert_eq!(soon(update()).await.unwrap().unwrap(), updated);
    assert_eq!(soon(copy()).await.unwrap().unwrap(), copied);
}

#[tokio::test]
async fn a_repeated_execution_starts_nothing_again() {
    let w = World::new().await;
    let tasks = json!([task("a", "work")]);
    let first = soon(w.execute(with_key("k", "b"), tasks.clone()))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        soon(w.execute(with_key("k", "b"), tasks))
            .await
            .unwrap()
            .unwrap(),
        first
    );
    w.script.complete("a").await;
    assert_eq!(w.script.launches(), [(id("a"), 1)]);
    let rerun = w.call(|app| async move {
        app.execute(
            &with_key("k", "other"),
            Target::Stored(id("a")),
            ExecuteOptions::default(),
        )
        .await
    });
    assert_eq!(refused(soon(rerun).await.unwrap()), Kind::Invalid);
}

#[tokio::test]
async fn a_key_belongs_to_a_principal_and_a_method() {
    let w = World::new().await;
    let of = |user: &str| Context {
        caller: user_named(user),
        ..with_key("k", "body")
    };
    let first = soon(w.create(of("ann"), json!({"name": "a"})))
        .await
        .unwrap()
        .unwrap();
    let second = soon(w.create(of("bob"), json!({"name": "a"})))
        .await
        .unwrap()
        .unwrap();
    let third = soon(w.execute(of("ann"), json!([{"name": "a"}])))
        .await
        .unwrap()
        .unwrap();
    assert_ne!(first["id"], second["id"]);
    assert_ne!(first["id"], third["root_task_id"]);
    // A separator inside a name does not make two callers one.
    let odd = |user: &str, key: &str| Context {
        caller: user_named(user),
        ..with_key(key, "body")
    };
    let left = w.create(
        odd("u", "1:x\u{1f}tasks.create\u{1f}y"),
        json!({"name": "a"}),
    );
    let right = w.create(odd("u1:x tasks.create", "y"), json!({"name": "a"}));
    assert_ne!(
        soon(left).await.unwrap().unwrap()["id"],
        soon(right).await.unwrap().unwrap()["id"]
    );
}

#[tokio::test]
async fn a_user_whom_the_body_names_has_no_keys_of_their_own() {
    let w = World::new().await;
    let ann = Context {
        caller: user_named("ann"),
        ..with_key("k", "body")
    };
    let task = json!({"name": "a", "user_id": "ann"});
    let first = soon(w.create(ann, task.clone())).await.unwrap().unwrap();
    let second = soon(w.create(with_key("k", "body"), task.clone()))
        .await
        .unwrap()
        .unwrap();
    assert_ne!(first["id"], second["id"], "the reply to somebody else");
    let again = soon(w.create(with_key("k", "body"), task)).await.unwrap();
    assert_eq!(again.unwrap(), second);
}

#[tokio::test]
async fn a_key_is_free_again_after_a_day() {
    let w = World::new().await;
    let first = soon(w.create(with_key("k", "body"), json!({"name": "a"})))
        .await
        .unwrap()
        .unwrap();
    w.clock.advance_ms(24 * 3600 * 1000 - 1);
    assert_eq!(
        soon(w.create(with_key("k", "body"), json!({"name": "a"})))
            .await
            .unwrap()
            .unwrap(),
        first
    );
    w.clock.advance_ms(2);
    assert_ne!(
        soon(w.create(with_key("k", "other"), json!({"name": "a"})))
            .await
            .unwrap()
            .unwrap(),
        first
    );
}

#[tokio::test]
async fn a_refusal_does_not_use_up_a_key() {
    let w = World::new().await;
    let unknown = w.create(
        with_key("k", "body"),
        json!({"name": "a", "parent_id": id("nobody")}),
    );
    assert_eq!(refused(soon(unknown).await.unwrap()), Kind::InvalidParent);
    assert!(
        soon(w.create(with_key("k", "other"), json!({"name": "a"})))
            .await
            .unwrap()
            .is_ok()
    );
}

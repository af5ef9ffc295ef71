//! A read sees every write that was answered before it, or says that it cannot.

use crate::application::world::{
    World, caller, foreign_rename, is_busy, quiet, soon, task, updates,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use taskledger::application::{Consistency, Context, Error, LAG_EVENTS_MAX, SeenBy};
use taskledger::transport::jsonrpc::tree_json::{ChildrenJson, TreeJson};
use taskledger_auth::{Caller, Name, Scope, Scopes};
use taskledger_domain::flow::Kind;
use taskledger_domain::task::Status;
use taskledger_domain::testing::id;
use taskledger_projections::{ListFilter, Order, Start};
use tokio::task::JoinHandle;

type Read = JoinHandle<Result<Value, Error>>;

fn get(w: &World, name: &str, consistency: Consistency) -> Read {
    let task = id(name);
    w.call(move |app| async move { app.get(&caller(), task, consistency).await })
}

fn tree(w: &World, name: &str, consistency: Consistency) -> Read {
    let task = id(name);
    w.call(move |app| async move {
        app.tree(&caller(), task, consistency, TreeJson::default())
            .await
    })
}

fn children(w: &World, name: &str, consistency: Consistency) -> Read {
    let task = id(name);
    w.call(move |app| async move {
        app.children(&caller(), task, consistency, ChildrenJson::default())
            .await
    })
}

fn list(w: &World, consistency: Consistency) -> Read {
    w.call(move |app| async move {
        app.list(
            &caller(),
            ListFilter::default(),
            Order::default(),
            Start::Offset(0),
            100,
            consistency,
        )
        .await
    })
}

async fn caught_up(w: &World) {
    let head = *w.app.store.watch().borrow();
    let caught_up = w.app.projections.wait_for(head, Duration::from_secs(60));
    soon(caught_up).await.unwrap();
}

#[tokio::test]
async fn reads_wait_for_the_read_models_and_then_see_the_write() {
    let mut w = World::new().await;
    w.given_flow("root", &["a", "b"]).await;
    let (tree, children) = (
        tree(&w, "root", Consistency::Strong),
        children(&w, "root", Consistency::Strong),
    );
    let list = list(&w, Consistency::Strong);
    quiet().await;
    assert!(!tree.is_finished() && !children.is_finished() && !list.is_finished());
    w.run_read_models();
    assert_eq!(
        soon(tree).await.unwrap().unwrap()["task"]["id"],
        json!(id("root"))
    );
    assert_eq!(
        soon(children).await.unwrap().unwrap()["children"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    assert_eq!(soon(list).await.unwrap().unwrap()["total"], 3);
}

#[tokio::test]
async fn a_group_under_way_is_known_before_the_read_models_show_it() {
    let mut w = World::new().await;
    let tree = json!([{"id": id("root"), "name": "root", "children": [task("a", "work"), task("b", "work")]}]);
    assert!(soon(w.execute(caller(), tree)).await.unwrap().is_ok());
    w.script.complete("a").await;
    let root = soon(get(&w, "root", Consistency::Strong)).await.unwrap();
    let root = root.unwrap();
    assert_eq!(
        (root["status"].as_str(), root["progress"].as_f64()),
        (Some("in_progress"), Some(0.5))
    );
    assert_eq!(root["run"]["counts"]["completed"], 1);

    // The read models say the same.
    w.run_read_models();
    caught_up(&w).await;
    let shown = soon(get(&w, "root", Consistency::Eventual)).await.unwrap();
    assert_eq!(shown.unwrap(), root);
}

#[tokio::test]
async fn the_root_of_a_flow_that_is_too_large_to_be_held_is_known_before_the_read_models_show_it() {
    const TASKS: usize = 12_000;
    let mut w = World::new().await;
    let children: Vec<Value> = (0..TASKS).map(|i| task(&format!("t{i}"), "work")).collect();
    let tree = json!([{"id": id("root"), "name": "root", "children": children}]);
    assert!(soon(w.execute(caller(), tree)).await.unwrap().is_ok());
    let cancel = w.call(|app| async move { app.cancel(&caller(), id("root"), false, None).await });
    assert!(soon(cancel).await.unwrap().is_ok());
    let root = soon(get(&w, "root", Consistency::Strong)).await.unwrap();
    let root = root.unwrap();
    assert_eq!(root["status"], "cancelled");
    assert_eq!(root["run"]["state"], "cancelled");
    assert_eq!(root["run"]["counts"]["cancelled"], TASKS);
    w.run_read_models();
    caught_up(&w).await;
    let shown = soon(get(&w, "root", Consistency::Eventual)).await.unwrap();
    assert_eq!(shown.unwrap(), root);
}

#[tokio::test]
async fn an_eventual_read_does_not_wait() {
    let w = World::new().await;
    w.given_flow("root", &["a"]).await;
    let unseen = soon(tree(&w, "root", Consistency::Eventual)).await.unwrap();
    assert_eq!(crate::application::world::refused(unseen), Kind::NotFound);
    assert_eq!(
        soon(list(&w, Consistency::Eventual))
            .await
            .unwrap()
            .unwrap()["total"],
        0
    );
}

#[tokio::test]
async fn a_read_waits_two_seconds_and_then_says_that_it_is_busy() {
    let w = World::new().await;
    w.given_flow("root", &["a"]).await;
    tokio::time::pause();
    for read in [
        tree(&w, "root", Consistency::Strong),
        children(&w, "root", Consistency::Strong),
        list(&w, Consistency::Strong),
    ] {
        let begin = tokio::time::Instant::now();
        let result = read.await.unwrap();
        assert!(is_busy(&result), "{result:?}");
        assert!(begin.elapsed() <= Duration::from_millis(2100));
    }
}

/// A list of somebody who sees his own flows only.
fn list_of(w: &World, owner: &Context) -> Read {
    let owner = owner.clone();
    w.call(move |app| async move {
        let (order, start) = (Order::default(), Start::Offset(0));
        let filter = ListFilter::default();
        app.list(&owner, filter, order, start, 100, Consistency::Strong)
            .await
    })
}

#[tokio::test]
async fn a_list_waits_for_flows_of_its_caller_only() {
    let of = |name: &str| {
        let name = Name::new(name).expect("a name");
        let scopes = Scopes::of([Scope::TasksRead, Scope::TasksWrite]);
        Context::of(Arc::new(Caller::user(&name, scopes)), Arc::from("request"))
    };
    let (ann, bob) = (of("ann"), of("bob"));
    let mut w = World::new().await;
    // given: nothing is folded
    let made = |by: &Context, task: Value| soon(w.create(by.clone(), task));
    let bobs = json!({"name": "b", "id": id("b")});
    made(&bob, bobs).await.unwrap().unwrap();
    // then: what others write makes her wait for nothing
    assert_eq!(soon(list_of(&w, &ann)).await.unwrap().unwrap()["total"], 0);
    // when: it becomes hers
    let (task, hers) = (id("b"), updates(json!({"user_id": "ann"})));
    let given = w.call(move |app| async move { app.update(&caller(), task, hers).await });
    soon(given).await.unwrap().unwrap();
    let with_his = list_of(&w, &ann);
    // and: she writes herself
    made(&ann, json!({"name": "a"})).await.unwrap().unwrap();
    let with_both = list_of(&w, &ann);
    quiet().await;
    assert!(!with_his.is_finished() && !with_both.is_finished());
    w.run_read_models();
    assert_eq!(soon(with_both).await.unwrap().unwrap()["total"], 2);
    soon(with_his).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_read_waits_for_its_own_flow_only() {
    let mut w = World::new().await;
    w.given_flow("seen", &["a"]).await;
    w.run_read_models();
    assert!(
        soon(tree(&w, "seen", Consistency::Strong))
            .await
            .unwrap()
            .is_ok()
    );
    let checkpoint = w.app.projections.checkpoint();
    // Behind by a lot, but not of this flow: nothing is awaited.
    assert_eq!(w.app.positions.awaited(id("seen").as_flow(), checkpoint), 0);
    assert_eq!(w.app.positions.awaited(id("other").as_flow(), 0), 0);
}

#[tokio::test]
async fn a_task_is_read_from_memory_right_after_its_answer() {
    let w = World::new().await;
    assert!(
        soon(w.execute(
            caller(),
            json!([{"id": id("root"), "name": "root", "children": [task("a", "work")]}])
        ))
        .await
        .unwrap()
        .is_ok()
    );
    let status = async |name| {
        soon(get(&w, name, Consistency::Strong))
            .await
            .unwrap()
            .unwrap()["status"]
            .clone()
    };
    assert_eq!(status("a").await, "in_progress");
    w.script.complete("a").await;
    assert_eq!(status("a").await, "completed");
}

#[tokio::test]
async fn a_deleted_task_is_gone_from_reads_at_once() {
    let mut w = World::new().await;
    w.given_flow("root", &["a"]).await;
    w.run_read_models();
    let delete = w.call(|app| async move { app.delete(&caller(), id("a"), false).await });
    assert!(soon(delete).await.unwrap().is_ok());
    assert_eq!(
        crate::application::world::refused(soon(get(&w, "a", Consistency::Strong)).await.unwrap()),
        Kind::NotFound
    );
    let left = soon(children(&w, "root", Consistency::Strong))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(left["children"], json!([]));
}

#[tokio::test]
async fn a_task_that_waits_for_a_failed_one_says_so_from_memory_too() {
    let w = World::new().await;
    let second = json!({"id": id("b"), "name": "b", "schemas": {"method": "work"}, "dependencies": [{"id": id("a")}]});
    let tree = json!([{"id": id("root"), "name": "root", "children": [task("a", "work"), second]}]);
    assert!(soon(w.execute(caller(), tree)).await.unwrap().is_ok());
    w.script.fail("a").await;
    let seen = soon(get(&w, "b", Consistency::Strong))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        seen["blocked_by"],
        json!([{"id": id("a"), "status": "failed"}])
    );
}

#[tokio::test]
async fn a_group_that_was_given_an_executor_keeps_the_progress_it_ended_with() {
    let mut w = World::new().await;
    let tree = json!([{"id": id("root"), "name": "root", "children": [task("a", "work"), task("b", "work")]}]);
    assert!(soon(w.execute(caller(), tree)).await.unwrap().is_ok());
    w.script.complete("a").await;
    w.script.fail("b").await;
    let updates = crate::application::world::updates(json!({"schemas": {"method": "work"}}));
    let update = w.call(move |app| async move { app.update(&caller(), id("root"), updates).await });
    assert!(soon(update).await.unwrap().is_ok());
    w.run_read_models();
    let root = soon(get(&w, "root", Consistency::Strong)).await.unwrap();
    assert_eq!(root.unwrap()["progress"], 0.5);
}

#[tokio::test]
async fn commands_are_busy_while_the_read_models_are_far_behind_and_outcomes_are_not() {
    let mut w = World::new().await;
    let flow = w.given_flow("root", &[]).await;
    assert!(
        soon(w.execute(caller(), json!([task("a", "work")])))
            .await
            .unwrap()
            .is_ok()
    );
    let behind = LAG_EVENTS_MAX - *w.app.store.watch().borrow();
    let renames = (0..behind).map(|_| foreign_rename("root")).collect();
    w.foreign_write(flow, renames).await;
    assert!(
        soon(w.create(caller(), json!({"name": "the last one"})))
            .await
            .unwrap()
            .is_ok()
    );
    let busy = soon(w.create(caller(), json!({"name": "too much"})))
        .await
        .unwrap();
    assert!(is_busy(&busy), "{busy:?}");
    w.script.complete("a").await;
    assert_eq!(w.status("a").await, Some(Status::Completed));
    w.run_read_models();
    let head = *w.app.store.watch().borrow();
    soon(w.app.projections.wait_for(head, Duration::from_secs(60)))
        .await
        .expect("they catch up");
    assert!(
        soon(w.create(caller(), json!({"name": "room again"})))
            .await
            .unwrap()
            .is_ok()
    );
}

#[tokio::test]
async fn flows_that_the_read_models_have_passed_are_forgotten_although_nobody_reads() {
    const FLOWS: u64 = 25_000;
    let mut w = World::new().await;
    w.run_read_models();
    w.given_flow("root", &[]).await;
    for position in 1..=FLOWS {
        let flow = id(&format!("flow {position}")).as_flow();
        w.app.positions.advance(flow, position, &SeenBy::Anybody);
    }
    assert!(w.app.positions.remembered() as u64 >= FLOWS);
    let renames = (0..FLOWS).map(|_| foreign_rename("root")).collect();
    w.foreign_write(id("root").as_flow(), renames).await;
    let head = *w.app.store.watch().borrow();
    soon(w.app.projections.wait_for(head, Duration::from_secs(60)))
        .await
        .expect("they catch up");
    // Commands alone tell how far the read models are; the next sweep acts on it.
    assert!(soon(w.rename("root", "x")).await.unwrap().is_ok());
    for n in 0..2 * FLOWS {
        let flow = id(&format!("later flow {n}")).as_flow();
        w.app.positions.advance(flow, head, &SeenBy::Anybody);
    }
    assert!((w.app.positions.remembered() as u64) < FLOWS);
}

//! `tasks.update` under competition, and `tasks.copy`.

use crate::world::{World, caller, quiet, refused, soon, task, updates};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::flow::{Event, Kind, TaskCreated};
use taskledger_domain::testing::id;
use taskledger_domain::{FlowId, Recorded, TaskId};

fn created(history: &[Arc<Recorded>]) -> Vec<TaskCreated> {
    let creation = |r: &Arc<Recorded>| match r.event.as_ref() {
        Event::TaskCreated(e) => Some(e.clone()),
        _ => None,
    };
    history.iter().filter_map(creation).collect()
}

async fn copy(w: &World, name: &str, children: bool, parent: Option<&str>) -> Value {
    let (task, parent) = (id(name), parent.map(id));
    let call = w.call(move |app| async move { app.copy(&caller(), task, children, parent).await });
    soon(call).await.unwrap().expect("it can be copied")
}

fn parsed(value: &Value) -> TaskId {
    TaskId::parse(value.as_str().expect("an id")).expect("a UUID v4")
}

/// root -> (outside, sub -> (a, b after a, c after a and outside)); d under root, after a.
async fn given_tree(w: &World) -> FlowId {
    let after = |name: &str, on: &[&str]| {
        let on: Vec<_> = on.iter().map(|n| json!({"id": id(n)})).collect();
        json!({"id": id(name), "name": name, "schemas": {"method": "work"}, "dependencies": on})
    };
    let sub = json!({"id": id("sub"), "name": "sub", "children": [task("a", "work"), after("b", &["a"]), after("c", &["a", "outside"])]});
    let root = json!({"id": id("root"), "name": "root", "children": [task("outside", "work"), sub, after("d", &["a"])]});
    soon(w.create(caller(), root))
        .await
        .unwrap()
        .expect("the tree is valid");
    id("root").as_flow()
}

#[tokio::test]
async fn two_updates_at_once_both_count() {
    let w = World::new().await;
    let flow = w.given_flow("root", &["a"]).await;
    let mut hold = w.faults.hold_next_append();
    let rename = w.rename("root", "x");
    hold.arrived().await;
    let update = |members: Value| {
        let changes = updates(members);
        w.call(move |app| async move { app.update(&caller(), id("a"), changes).await })
    };
    // All of them build on the same specification, because none can be decided before the append ends.
    let calls: Vec<_> = [
        json!({"inputs": {"x": 1}}),
        json!({"params": {"p": 2}}),
        json!({"schemas": {"method": "work"}}),
    ]
    .into_iter()
    .map(update)
    .collect();
    quiet().await;
    hold.release();
    assert!(soon(rename).await.unwrap().is_ok());
    for call in calls {
        assert_eq!(soon(call).await.unwrap().unwrap()["status"], "pending");
    }
    let history = w.history(flow).await;
    let last = history
        .iter()
        .rev()
        .find_map(|r| match r.event.as_ref() {
            Event::TaskRespecified(e) => Some(e.specification.clone()),
            _ => None,
        })
        .unwrap();
    assert_eq!(
        (
            last.inputs.as_str(),
            last.params.as_ref().map(|p| p.as_str())
        ),
        (r#"{"x":1}"#, Some(r#"{"p":2}"#))
    );
    assert_eq!(last.method.as_deref(), Some("work"));
}

#[tokio::test]
async fn an_update_is_validated_with_what_it_does_not_change() {
    let w = World::new().await;
    let schema = json!({"method": "work", "input_schema": {"type": "object", "required": ["x"]}});
    let params = json!({"id": id("a"), "name": "a", "inputs": {"x": 1}, "schemas": schema});
    assert!(soon(w.create(caller(), params)).await.unwrap().is_ok());
    let bad = updates(json!({"inputs": {"y": 1}}));
    let call = w.call(move |app| async move { app.update(&caller(), id("a"), bad).await });
    assert_eq!(refused(soon(call).await.unwrap()), Kind::Invalid);
    assert_eq!(w.kinds(id("a").as_flow()).await, ["TaskCreated"]);
}

#[tokio::test]
async fn an_update_of_a_task_that_goes_away_meanwhile_is_refused() {
    let w = World::new().await;
    w.given_flow("root", &["a"]).await;
    let mut hold = w.faults.hold_next_append();
    let delete = w.call(|app| async move { app.delete(&caller(), id("a"), false).await });
    hold.arrived().await;
    let changes = updates(json!({"inputs": {"x": 1}}));
    let update = w.call(move |app| async move { app.update(&caller(), id("a"), changes).await });
    quiet().await;
    hold.release();
    assert!(soon(delete).await.unwrap().is_ok());
    assert_eq!(refused(soon(update).await.unwrap()), Kind::NotFound);
}

#[tokio::test]
async fn a_copy_into_a_new_flow_takes_what_a_run_would_cover_once() {
    let w = World::new().await;
    given_tree(&w).await;
    let answer = copy(&w, "sub", true, None).await;
    let root = parsed(&answer["copied_task_id"]);
    let copies = created(&w.history(root.as_flow()).await);
    let of = |name: &str| {
        let found: Vec<_> = copies
            .iter()
            .filter(|c| c.copied_from == Some(id(name)))
            .collect();
        assert_eq!(found.len(), 1, "`{name}` is copied once");
        found[0].clone()
    };
    assert_eq!(
        copies.len(),
        5,
        "sub, a, b, c, and outside, on which c depends"
    );
    assert_eq!((of("sub").task_id, of("sub").parent_id), (root, None));
    assert_eq!(
        of("outside").parent_id,
        Some(root),
        "its parent is not copied"
    );
    let on = |name: &str| {
        of(name)
            .dependencies
            .iter()
            .map(|d| d.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(on("b"), [of("a").task_id]);
    assert_eq!(on("c"), [of("a").task_id, of("outside").task_id]);
    assert_eq!(answer["dropped_dependencies"], json!([]));
    let ids: HashMap<String, TaskId> = serde_json::from_value(answer["task_ids"].clone()).unwrap();
    for copy in &copies {
        let from = copy.copied_from.unwrap();
        assert_eq!(ids[&from.to_string()], copy.task_id);
        assert_ne!(from, copy.task_id);
    }
}

#[tokio::test]
async fn a_copy_into_another_flow_says_which_dependencies_it_dropped() {
    let w = World::new().await;
    given_tree(&w).await;
    let answer = copy(&w, "d", false, None).await;
    let copied = parsed(&answer["copied_task_id"]);
    assert_eq!(
        answer["dropped_dependencies"],
        json!([{"task_id": copied, "id": id("a"), "required": true}])
    );
    assert_eq!(
        created(&w.history(copied.as_flow()).await)[0].dependencies,
        []
    );
    w.given_flow("other", &[]).await;
    let answer = copy(&w, "d", false, Some("other")).await;
    let there = created(&w.history(id("other").as_flow()).await);
    assert_eq!(
        (there[1].task_id, there[1].parent_id),
        (parsed(&answer["copied_task_id"]), Some(id("other")))
    );
}

#[tokio::test]
async fn a_copy_within_its_flow_keeps_dependencies_on_tasks_that_stay() {
    let w = World::new().await;
    let flow = given_tree(&w).await;
    let answer = copy(&w, "d", false, Some("root")).await;
    assert_eq!(answer["dropped_dependencies"], json!([]));
    let history = created(&w.history(flow).await);
    let copy = history.last().unwrap();
    assert_eq!(
        (copy.parent_id, copy.dependencies[0].id),
        (Some(id("root")), id("a"))
    );
}

#[tokio::test]
async fn a_copy_is_pending_with_the_current_name_and_specification() {
    let w = World::new().await;
    assert!(
        soon(w.execute(caller(), json!([task("a", "work")])))
            .await
            .unwrap()
            .is_ok()
    );
    w.script.fail("a").await;
    assert!(soon(w.rename("a", "renamed")).await.unwrap().is_ok());
    let changes = updates(json!({"inputs": {"x": 1}}));
    let update = w.call(move |app| async move { app.update(&caller(), id("a"), changes).await });
    assert!(soon(update).await.unwrap().is_ok());
    let answer = copy(&w, "a", false, None).await;
    assert_eq!(
        (
            answer["original_task_id"].clone(),
            answer["status"].as_str()
        ),
        (json!(id("a")), Some("pending"))
    );
    let history = w.history(parsed(&answer["copied_task_id"]).as_flow()).await;
    let copy = &created(&history)[0];
    assert_eq!(
        (
            history.len(),
            copy.name.as_str(),
            copy.specification.inputs.as_str()
        ),
        (1, "renamed", r#"{"x":1}"#)
    );
    assert_eq!(copy.specification.method.as_deref(), Some("work"));
}

#[tokio::test]
async fn a_copy_below_an_unknown_parent_is_refused() {
    let w = World::new().await;
    w.given_flow("root", &["a"]).await;
    let call = w.call(|app| async move {
        app.copy(&caller(), id("a"), false, Some(id("nobody")))
            .await
    });
    assert_eq!(refused(soon(call).await.unwrap()), Kind::InvalidParent);
}

//! What `tasks.explain` suggests is accepted: at once, or when it says.

use crate::application::world::{World, caller, soon, task, updates};
use serde_json::{Value, json};
use taskledger::application::error::Error;
use taskledger::application::{ExecuteOptions, Target};
use taskledger_domain::TaskId;
use taskledger_domain::testing::id;

async fn world(children: Value) -> World {
    let mut w = World::new().await;
    w.run_read_models();
    let tree = json!([{"id": id("root"), "name": "root", "children": children}]);
    assert!(soon(w.execute(caller(), tree)).await.unwrap().is_ok());
    w
}

fn after(mut task: Value, on: &str) -> Value {
    task["dependencies"] = json!([{"id": id(on)}]);
    task
}

/// The steps of the first reason with this code.
async fn steps(w: &World, name: &str, code: &str) -> Vec<Value> {
    let task = id(name);
    let answer = soon(w.call(move |app| async move { app.explain(&caller(), task).await }))
        .await
        .unwrap()
        .unwrap();
    let reasons = answer["reasons"].as_array().unwrap();
    let reason = reasons.iter().find(|r| r["code"] == code).unwrap();
    reason["next_steps"].as_array().unwrap().clone()
}

fn shape(steps: &[Value]) -> Vec<(&str, &str)> {
    steps
        .iter()
        .map(|s| (s["method"].as_str().unwrap(), s["when"].as_str().unwrap()))
        .collect()
}

/// Makes the call of a step; an update lets the task depend on `on`.
async fn perform(w: &World, step: &Value, on: &[TaskId]) -> Result<Value, Error> {
    let of = |member: &str| -> Option<TaskId> {
        let id = step["params"].get(member)?;
        Some(serde_json::from_value(id.clone()).unwrap())
    };
    let (task, parent) = (of("task_id").unwrap(), of("parent_id"));
    let dependencies: Vec<Value> = on.iter().map(|id| json!({"id": id})).collect();
    let edit = updates(json!({"dependencies": dependencies}));
    let call = match step["method"].as_str().unwrap() {
        "tasks.retry" => w.call(move |app| async move {
            app.retry(&caller(), task, Default::default(), None).await
        }),
        "tasks.copy" => {
            w.call(move |app| async move { app.copy(&caller(), task, false, parent).await })
        }
        "tasks.update" => w.call(move |app| async move { app.update(&caller(), task, edit).await }),
        "tasks.execute" => w.call(move |app| async move {
            let options = ExecuteOptions::default();
            app.execute(&caller(), Target::Stored(task), options).await
        }),
        other => panic!("no step of a test: {other}"),
    };
    soon(call).await.unwrap()
}

#[tokio::test]
async fn a_failed_task_in_an_active_run_is_retried_when_the_run_has_ended() {
    let w = world(json!([
        task("bad", "work"),
        after(task("behind", "work"), "bad"),
        task("long", "work")
    ]))
    .await;
    w.script.launched(2).await;
    w.script.fail("bad").await;
    let blocked = steps(&w, "behind", "blocked").await;
    let both = [("tasks.update", "now"), ("tasks.retry", "after_run")];
    assert_eq!(shape(&blocked), both);
    let failed = steps(&w, "bad", "failed").await;
    assert_eq!(shape(&failed), [("tasks.retry", "after_run")]);
    assert!(perform(&w, &failed[0], &[]).await.is_err());

    w.script.complete("long").await;
    let failed = steps(&w, "bad", "failed").await;
    assert_eq!(shape(&failed), [("tasks.retry", "now")]);
    assert!(perform(&w, &failed[0], &[]).await.is_ok());
    w.script.launched(3).await;
}

#[tokio::test]
async fn a_task_behind_a_failed_one_goes_on_when_it_depends_on_others() {
    let w = world(json!([
        task("bad", "work"),
        after(task("behind", "work"), "bad"),
        task("long", "work")
    ]))
    .await;
    w.script.launched(2).await;
    w.script.fail("bad").await;
    let step = &steps(&w, "behind", "blocked").await[0];
    assert!(perform(&w, step, &[id("long")]).await.is_ok());
    w.script.complete("long").await;
    w.script.launched(3).await;
}

#[tokio::test]
async fn a_task_behind_a_cancelled_one_goes_on_with_a_copy_in_the_same_run() {
    let w = world(json!([
        task("gone", "work"),
        after(task("behind", "work"), "gone"),
        task("long", "work")
    ]))
    .await;
    w.script.launched(2).await;
    let gone = id("gone");
    let cancel = w.call(move |app| async move { app.cancel(&caller(), gone, false, None).await });
    assert!(soon(cancel).await.unwrap().is_ok());
    let steps = steps(&w, "behind", "blocked").await;
    let both = [("tasks.copy", "now"), ("tasks.update", "now")];
    assert_eq!(shape(&steps), both);
    assert_eq!(steps[0]["params"]["parent_id"], json!(id("root")));
    let copied = perform(&w, &steps[0], &[]).await.unwrap();
    let copy: TaskId = serde_json::from_value(copied["copied_task_id"].clone()).unwrap();
    assert!(perform(&w, &steps[1], &[copy]).await.is_ok());
    // The copy has joined the run.
    w.script.launched(3).await;
}

#[tokio::test]
async fn a_task_that_was_never_executed_is_executed_now_or_after_the_run_of_what_it_needs() {
    let mut w = World::new().await;
    w.run_read_models();
    let tree = json!({"id": id("root"), "name": "root", "children": [
        task("needed", "work"), after(task("late", "work"), "needed")]});
    assert!(soon(w.create(caller(), tree)).await.unwrap().is_ok());
    let now = steps(&w, "needed", "not_covered").await;
    assert_eq!(shape(&now), [("tasks.execute", "now")]);
    assert!(perform(&w, &now[0], &[]).await.is_ok());
    w.script.launched(1).await;
    let late = steps(&w, "late", "not_covered").await;
    assert_eq!(shape(&late), [("tasks.execute", "after_run")]);
    assert!(perform(&w, &late[0], &[]).await.is_err());
    w.script.complete("needed").await;
    let late = steps(&w, "late", "not_covered").await;
    assert_eq!(shape(&late), [("tasks.execute", "now")]);
    assert!(perform(&w, &late[0], &[]).await.is_ok());
}

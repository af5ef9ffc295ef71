//! `tasks.subscribe` and `tasks.resubscribe`.

use crate::server::{Folder, Server};
use crate::sse::{call, everything, run, tasks};
use futures_util::future::join_all;
use serde_json::{Value, json};

#[tokio::test]
async fn a_flow_that_has_run_is_answered_with_its_end() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let root = run(api, 1).await;
    let last = everything(api).await.pop().unwrap();
    let (result, mut sse) = call(api, "tasks.subscribe", json!({"task_id": root})).await;
    assert_eq!(
        (&result["task"]["id"], &result["task"]["status"]),
        (&root, &json!("completed"))
    );
    assert_eq!(result["root_task_id"], root);
    assert_eq!(result["run"]["state"], "completed");
    assert_eq!(sse.rest().await, [last.clone()]);
    // Nothing is left behind the last event either.
    let params = json!({"task_id": root, "last_event_id": last.id});
    let (result, mut sse) = call(api, "tasks.resubscribe", params).await;
    assert_eq!(
        (&result["resumed"], result.get("task")),
        (&json!(true), None)
    );
    assert_eq!(sse.rest().await, [last]);
    server.stop().await;
}

#[tokio::test]
async fn a_flow_that_never_ran_is_watched_until_its_first_run_has_ended() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let task = json!({"name": "a", "schemas": {"method": "echo_executor"}});
    let id = api.call("tasks.create", task).await["id"].take();
    let (result, mut sse) = call(api, "tasks.subscribe", json!({"task_id": id})).await;
    assert_eq!(
        (&result["task"]["status"], result.get("run")),
        (&json!("pending"), None)
    );
    api.call("tasks.execute", json!({"task_id": id})).await;
    let events = sse.rest().await;
    assert_eq!(events.len(), 4);
    assert_eq!(events[3].json()["final"], true);
    server.stop().await;
}

#[tokio::test]
async fn a_subscription_goes_on_behind_its_last_event() {
    // given
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let root = run(api, 2).await;
    let all = everything(api).await;
    for at in 0..all.len() - 1 {
        // when
        let params = json!({"task_id": root, "last_event_id": all[at].id});
        let (result, mut sse) = call(api, "tasks.resubscribe", params).await;
        // then
        assert_eq!(result["resumed"], true);
        assert_eq!(sse.rest().await, all[at + 1..], "behind {at}");
    }
    let params = json!({"task_id": root, "last_event_id": "lost"});
    let (result, mut sse) = call(api, "tasks.resubscribe", params).await;
    assert_eq!(
        (&result["resumed"], &result["reason"]),
        (&json!(false), &json!("malformed"))
    );
    assert_eq!(result["task"]["id"], root);
    assert_eq!(sse.rest().await, all[all.len() - 1..]);
    server.stop().await;
}

#[tokio::test]
async fn one_task_can_be_watched_alone() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let tree = json!({"name": "root", "children": [
        {"name": "a", "schemas": {"method": "echo_executor"}},
        {"name": "b", "schemas": {"method": "echo_executor"}},
    ]});
    let ids = api.call("tasks.create", tree).await["task_ids"].take();
    let params = json!({"task_id": ids["a"], "scope": "task"});
    let (_, mut sse) = call(api, "tasks.subscribe", params).await;
    api.call("tasks.execute", json!({"task_id": ids["root"]}))
        .await;
    let events = sse.rest().await;
    assert_eq!(events.len(), 4);
    assert!(events[..3].iter().all(|e| e.json()["task_id"] == ids["a"]));
    assert_eq!(events[3].json()["final"], true);
    server.stop().await;
}

/// What a task looks like after the events behind its snapshot.
fn folded(snapshot: &Value, events: &[crate::sse::Block]) -> Value {
    let mut status = snapshot["status"].clone();
    for event in events {
        let data = event.json();
        if data["task_id"] == snapshot["id"] && data.get("final").is_none() {
            status = data["status"].clone();
        }
    }
    status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_and_what_follows_it_are_the_state_under_load() {
    // given: a run, in which tasks end all the time
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let started = server
        .api
        .call("tasks.execute", json!({"tasks": tasks(150)}))
        .await;
    let ids: Vec<Value> = started["task_ids"]
        .as_object()
        .unwrap()
        .values()
        .cloned()
        .collect();
    // when: many subscribe, each somewhere in it
    let watching = (0..40).map(|n| {
        let (api, id) = (server.api.clone(), ids[n * 3].clone());
        tokio::spawn(async move {
            let (result, mut sse) = call(&api, "tasks.subscribe", json!({"task_id": id})).await;
            (result["task"].clone(), sse.rest().await)
        })
    });
    // then
    for watched in join_all(watching.collect::<Vec<_>>()).await {
        let (snapshot, events) = watched.unwrap();
        assert_eq!(folded(&snapshot, &events), "completed", "{snapshot}");
        let sequences: Vec<_> = events
            .iter()
            .map(|e| e.json()["sequence"].as_u64())
            .collect();
        assert!(sequences.is_sorted());
        assert_eq!(events.last().unwrap().json()["final"], true);
    }
    server.stop().await;
}

//! `tasks.subscribe` and `tasks.resubscribe`.

use crate::streams::sse::{call, everything, run, tasks};
use futures_util::future::join_all;
use serde_json::{Value, json};
use taskledger_testkit::server::{Folder, Server};

taskledger_testkit::on_both_backends!(
    a_flow_that_has_run_is_answered_with_its_end,
    what_was_cancelled_and_never_ran_is_answered_with_its_end,
    the_run_that_is_on_is_followed_and_not_one_before,
    a_flow_that_never_ran_is_watched_until_its_first_run_has_ended,
    a_subscription_goes_on_behind_its_last_event,
    a_snapshot_and_what_follows_it_are_the_state_under_load,
);

async fn a_flow_that_has_run_is_answered_with_its_end(folder: Folder) {
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
    let told = sse.rest().await;
    // It is told where the watcher stands, and not at its own place, which lies before.
    assert_eq!((told.len(), &told[0].data), (1, &last.data));
    let (at, old) = (told[0].id.clone().unwrap(), last.id.clone().unwrap());
    assert_ne!(at, old);
    // Who was told, then or now, is not told again.
    for known in [&at, &old] {
        let params = json!({"task_id": root, "last_event_id": known});
        let (result, mut sse) = call(api, "tasks.resubscribe", params).await;
        assert_eq!(
            (&result["resumed"], result.get("task"), &result["final"]),
            (&json!(true), None, &json!(true))
        );
        assert_eq!(sse.rest().await, []);
    }
    // Who was cut off before it came gets it.
    let params = json!({"task_id": root, "last_event_id": result["cursor"]});
    let (result, mut sse) = call(api, "tasks.resubscribe", params).await;
    assert_eq!(
        (&result["resumed"], result.get("final")),
        (&json!(true), None)
    );
    assert_eq!(sse.rest().await, told);
    // The place is one to go on from anywhere.
    run(api, 1).await;
    let mut all = crate::streams::sse::open(api, "", Some(&at)).await;
    assert_eq!(all.header("x-taskledger-cursor"), at);
    assert_ne!(all.event().await.unwrap().json()["root_task_id"], root);
    server.stop().await;
}

async fn what_was_cancelled_and_never_ran_is_answered_with_its_end(folder: Folder) {
    let server = Server::start(&folder).await;
    let api = &server.api;
    let leaf = |name: &str| json!({"name": name, "schemas": {"method": "echo_executor"}});
    let tree = json!({"name": "root", "children": [leaf("a"), leaf("b")]});
    let ids = api.call("tasks.create", tree).await["task_ids"].take();
    // One task of a flow that may still run: alone it is over, with the others it is not.
    api.call("tasks.cancel", json!({"task_id": ids["a"]})).await;
    let params = json!({"task_id": ids["a"], "scope": "task"});
    let (_, mut sse) = call(api, "tasks.subscribe", params).await;
    let told = sse.rest().await;
    assert_eq!((told.len(), &told[0].json()["final"]), (1, &json!(true)));
    assert_eq!(told[0].json()["task_id"], ids["a"]);
    // The whole flow, watched while it ends...
    let params = json!({"task_id": ids["root"]});
    let (begun, mut waiting) = call(api, "tasks.subscribe", params.clone()).await;
    api.call("tasks.cancel", params.clone()).await;
    let watched = waiting.rest().await;
    let ends: Vec<_> = watched
        .iter()
        .map(|event| event.json()["final"] == true)
        .collect();
    assert_eq!(ends.iter().filter(|is_final| **is_final).count(), 1);
    assert!(ends.len() > 2 && ends.last() == Some(&true));
    // ...and when it has.
    let (result, mut sse) = call(api, "tasks.subscribe", params).await;
    assert_eq!(result["task"]["status"], "cancelled");
    let told = sse.rest().await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].event.as_deref(), Some("task_status_update"));
    let last = told[0].json();
    assert_eq!(
        (&last["task_id"], &last["status"], &last["final"]),
        (&ids["root"], &json!("cancelled"), &json!(true))
    );
    let params = json!({"task_id": ids["root"], "last_event_id": told[0].id});
    let (result, mut sse) = call(api, "tasks.resubscribe", params).await;
    assert_eq!((&result["final"], sse.rest().await), (&json!(true), vec![]));
    // Who was cut off before gets what happened, then the end.
    let params = json!({"task_id": ids["root"], "last_event_id": begun["cursor"]});
    let (result, mut sse) = call(api, "tasks.resubscribe", params).await;
    let all = sse.rest().await;
    assert_eq!(result.get("final"), None);
    assert!(all.len() > 2 && all.last().unwrap().json()["final"] == true);
    assert!(
        all.iter()
            .any(|e| e.event.as_deref() == Some("task_cancelled"))
    );
    server.stop().await;
}

async fn the_run_that_is_on_is_followed_and_not_one_before(folder: Folder) {
    // given: a flow that has run twice and runs a third time
    let server = Server::start(&folder).await;
    let api = &server.api;
    let slow = json!({"method": "sleep_executor"});
    let tree = json!({"name": "root", "children": [
        {"name": "a", "schemas": {"method": "echo_executor"}},
        {"name": "b", "schemas": {"method": "echo_executor"}},
        {"name": "c", "schemas": slow, "inputs": {"duration_ms": 5000}},
    ]});
    let ids = api.call("tasks.create", tree).await["task_ids"].take();
    let (first, mut sse) = call(api, "tasks.subscribe", json!({"task_id": ids["root"]})).await;
    for name in ["a", "b"] {
        api.call("tasks.execute", json!({"task_id": ids[name]}))
            .await;
        api.run_of(&ids[name]).await;
    }
    assert_eq!(sse.rest().await.last().unwrap().json()["task_id"], ids["a"]);
    let back = async || {
        let params = json!({"task_id": ids["root"], "last_event_id": first["cursor"]});
        let (_, mut sse) = call(api, "tasks.resubscribe", params).await;
        let events = sse.rest().await;
        let ends = events.iter().filter(|e| e.json()["final"] == true);
        ends.map(|e| e.json()["task_id"].clone())
            .collect::<Vec<_>>()
    };
    // At rest: to the end of the last run.
    assert_eq!(back().await, [ids["a"].clone(), ids["b"].clone()]);
    // when
    api.call("tasks.execute", json!({"task_id": ids["c"]}))
        .await;
    // then
    let all = ["a", "b", "c"].map(|name| ids[name].clone());
    assert_eq!(back().await, all);
    server.stop().await;
}

async fn a_flow_that_never_ran_is_watched_until_its_first_run_has_ended(folder: Folder) {
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
    assert_eq!(events.len(), 5);
    assert_eq!(events[3].event.as_deref(), Some("run_completed"));
    assert_eq!(events[4].json()["final"], true);
    server.stop().await;
}

async fn a_subscription_goes_on_behind_its_last_event(folder: Folder) {
    // given
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
    assert_eq!(sse.rest().await[0].data, all[all.len() - 1].data);
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
    assert_eq!(events.len(), 5);
    assert!(events[..3].iter().all(|e| e.json()["task_id"] == ids["a"]));
    assert_eq!(events[3].event.as_deref(), Some("run_completed"));
    assert_eq!(events[4].json()["final"], true);
    server.stop().await;
}

/// What a task looks like after the events behind its snapshot.
fn folded(snapshot: &Value, events: &[crate::streams::sse::Block]) -> Value {
    let mut status = snapshot["status"].clone();
    for event in events {
        let data = event.json();
        if data["task_id"] == snapshot["id"] && data.get("final").is_none() {
            status = data["status"].clone();
        }
    }
    status
}

async fn a_snapshot_and_what_follows_it_are_the_state_under_load(folder: Folder) {
    // given: a run, in which tasks end all the time
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

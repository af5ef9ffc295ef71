//! Tasks that start later than they could, over restarts of servers and moves between them.

use super::{METHOD, remote, task};
use serde_json::{Value, json};
use taskledger_testkit::cluster::Cluster;
use taskledger_testkit::server::{Api, Folder, Server};

taskledger_testkit::on_both_backends!(a_delay_outlives_a_killed_server);

const DELAY: f64 = 3.0;

/// A claim that waits for the task.
async fn claimed(api: &Api) -> Value {
    let wanted = json!({"methods": [METHOD], "worker": "w", "wait_seconds": 30});
    let mut found = api.call("tasks.claim", wanted).await;
    found["claims"][0].take()
}

async fn nothing_to_claim(api: &Api, id: &str) {
    let wanted = json!({"methods": [METHOD], "worker": "early"});
    let found = api.call("tasks.claim", wanted).await;
    assert_eq!(found["claims"], json!([]), "it is offered when it is due");
    let by_id = json!({"task_id": id, "worker": "early"});
    assert_eq!(api.refusal("tasks.claim", by_id).await.code, -32006);
}

async fn starts_in_time(api: &Api, id: &str, due: &Value) {
    let claim = claimed(api).await;
    assert_eq!(claim["task"]["id"], json!(id));
    let started = &task(api, id).await["started_at"];
    // Both are RFC 3339 with the same precision.
    assert!(started.as_str() >= due.as_str(), "{started} before {due}");
}

async fn a_delay_outlives_a_killed_server(folder: Folder) {
    let server = Server::start(&folder).await;
    let id = remote(&server.api, json!({"delay_seconds": DELAY})).await;
    let due = task(&server.api, &id).await["next_attempt_at"].clone();
    assert!(due.is_string(), "it is known when it starts");
    nothing_to_claim(&server.api, &id).await;
    server.kill().await;

    let server = Server::start(&folder).await;
    starts_in_time(&server.api, &id, &due).await;
    let types = json!({"task_id": id, "types": ["task_deferred"]});
    let history = server.api.call("tasks.history", types).await;
    let [told] = &history["events"].as_array().unwrap()[..] else {
        panic!("it is told once: {history}");
    };
    assert_eq!(told["data"]["timer"], "delay_seconds");
    assert_eq!(told["data"]["next_attempt_at"], due);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_takes_a_flow_over_waits_for_its_timers_on_postgres() {
    const TASKS: usize = 6;
    let mut cluster = Cluster::of(2).await;
    let mut due = Vec::new();
    for n in 0..TASKS {
        let api = &cluster.nodes[n % 2].api;
        let id = remote(api, json!({"delay_seconds": DELAY})).await;
        let at = task(api, &id).await["next_attempt_at"].clone();
        due.push((id, at));
    }
    cluster.nodes.pop().unwrap().kill().await;
    let api = &cluster.nodes[0].api;
    for _ in 0..TASKS {
        let claim = claimed(api).await;
        let id = claim["task"]["id"].as_str().unwrap();
        let (_, at) = due.iter().find(|(known, _)| known == id).unwrap();
        let started = &task(api, id).await["started_at"];
        assert!(started.as_str() >= at.as_str(), "{started} before {at}");
    }
    for node in cluster.nodes {
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_task_waits_for_is_said_and_may_be_changed() {
    let server = Server::start(&Folder::new()).await;
    let api = &server.api;
    let tasks = json!([
        {"id": "g", "name": "nightly", "start_at": "2099-01-01T02:00:00+01:00"},
        {"id": "a", "name": "a", "parent_id": "g", "schemas": {"type": "remote", "method": METHOD}},
    ]);
    let started = api.call("tasks.execute", json!({"tasks": tasks})).await;
    let [group, below] = ["g", "a"].map(|alias| started["task_ids"][alias].clone());
    let shown = api.call("tasks.get", json!({"task_id": group})).await;
    let at = "2099-01-01T01:00:00.000000Z";
    assert_eq!([&shown["start_at"], &shown["next_attempt_at"]], [at, at]);
    for id in [&group, &below] {
        let told = api.call("tasks.explain", json!({"task_id": id})).await;
        let reason = &told["reasons"][0];
        assert_eq!(reason["code"], "waits_for_time", "{told}");
        assert_eq!([&reason["at"], &reason["timer"]], [at, "start_at"]);
        assert_eq!(reason["of"]["name"], "nightly");
    }
    let updates = json!({"task_id": group, "updates": {"start_at": null}});
    api.call("tasks.update", updates).await;
    assert_eq!(claimed(api).await["task"]["id"], below);
    assert_eq!(
        task(api, group.as_str().unwrap()).await["start_at"],
        Value::Null
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_that_are_no_times_are_refused_by_name_and_range() {
    let server = Server::start(&Folder::new()).await;
    let api = &server.api;
    let refused = |start_at: Value, delay: Value| json!({"name": "a", "start_at": start_at, "params": {"delay_seconds": delay}});
    for (start_at, delay, path) in [
        (json!("tomorrow"), json!(1), json!(["start_at"])),
        (json!("2099-01-01T00:00:00"), json!(1), json!(["start_at"])),
        (json!(5), json!(1), json!(["start_at"])),
        (Value::Null, json!(-1), json!(["params", "delay_seconds"])),
        (
            Value::Null,
            json!(31_536_001),
            json!(["params", "delay_seconds"]),
        ),
        (Value::Null, json!("1"), json!(["params", "delay_seconds"])),
    ] {
        let refusal = api.refusal("tasks.create", refused(start_at, delay)).await;
        assert_eq!((refusal.code, &refusal.data["path"]), (-32602, &path));
        let expected = refusal.data["expected"].as_str().unwrap();
        let accepted = [
            "an RFC 3339 date and time with offset",
            "a number in 0-31536000",
        ];
        assert!(accepted.contains(&expected), "{expected}");
    }
    server.stop().await;
}

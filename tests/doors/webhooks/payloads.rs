//! What is sent when a notice is large, old, or about something that is gone.

use crate::webhooks::site::{Site, about, verifies};
use serde_json::{Value, json};
use std::time::Duration;
use taskledger::webhooks::outbox::BODY_BYTES_MAX;
use taskledger_testkit::receiver::{Answer, Behaviour};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_is_too_large_is_left_out_and_what_is_sent_is_signed() {
    let site = Site::new(json!({})).await;
    let small = site.execute("small").await;
    let large = site.execute(&"x".repeat(BODY_BYTES_MAX)).await;
    site.told_of(&[small.clone(), large.clone()]).await;

    for request in site.receiver.requests() {
        assert!(verifies(&request, &site.secret));
        assert!(request.body.len() <= BODY_BYTES_MAX);
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let task = about(&request);
        let truncated = json!({"truncated": true, "task_id": large});
        assert_eq!(body["result"] == truncated, task == large, "{task}");
    }
    // What was left out can be had.
    let params = json!({"task_id": large});
    let task = site.server.api.call("tasks.get", params).await;
    assert!(task["result"].to_string().len() > BODY_BYTES_MAX);
    site.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_verdict_on_a_run_is_told_to_those_who_ask_for_it() {
    let verdicts = json!(["run_completed", "run_failed", "run_cancelled"]);
    let site = Site::new(json!({"events": verdicts})).await;
    let api = &site.server.api;
    let task = |id: &str, method: &str| json!({"id": id, "name": id, "parent_id": "r", "schemas": {"method": method}});
    let mut fails = task("fails", "sleep_executor");
    fails["inputs"] = json!({"duration_ms": 60_000});
    fails["params"] = json!({"timeout_seconds": 0.001});
    let mut behind = task("behind", "echo_executor");
    behind["dependencies"] = json!([{"id": "fails"}]);
    let fine = json!({"tasks": [{"id": "r", "name": "r"}, task("fine", "echo_executor")]});
    let bad = json!({"tasks": [{"id": "r", "name": "r"}, fails, behind]});
    for tasks in [fine, bad] {
        let run = api.call("tasks.execute", tasks).await;
        api.run_of(&run["root_task_id"]).await;
    }

    let both = async || {
        let all = site.deliveries().await;
        let delivered = all.iter().filter(|d| d["state"] == "delivered").count();
        (delivered == 2).then_some(all.len())
    };
    assert_eq!(api.eventually("both are told", both).await, 2);
    let mut told: Vec<Value> = site
        .receiver
        .requests()
        .iter()
        .map(|request| serde_json::from_slice(&request.body).unwrap())
        .collect();
    told.sort_by_key(|body| body["type"].to_string());
    let shown = |body: &Value| (body["type"].clone(), body["run"]["skipped"].clone());
    assert_eq!(shown(&told[0]), (json!("run_completed"), json!(0)));
    assert_eq!(shown(&told[1]), (json!("run_failed"), json!(1)));
    assert!(told[0].get("final").is_none());
    site.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happened_to_a_task_is_told_after_the_task_was_deleted() {
    let site = Site::new(json!({"events": ["task_status_update"]})).await;
    let api = &site.server.api;
    let one = json!({"id": site.webhook});
    api.call("webhooks.disable", one.clone()).await;
    let task = api.call("tasks.create", json!({"name": "brief"})).await["id"].take();
    site.delivery("it is noted", |d| d["state"] == "waiting")
        .await;
    api.call("tasks.delete", json!({"task_id": task})).await;

    api.call("webhooks.enable", one).await;

    let delivery = site
        .delivery("it arrives", |d| d["state"] == "delivered")
        .await;
    assert_eq!(delivery["task_id"], task);
    let told: Value = serde_json::from_slice(&site.receiver.requests()[0].body).unwrap();
    assert_eq!(
        (&told["task_id"], &told["status"]),
        (&task, &json!("pending"))
    );
    site.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_slow_receiver_misses_is_progress_and_never_a_status() {
    let events = json!([
        "task_progress_update",
        "task_status_update",
        "task_completed"
    ]);
    let site = Site::new(json!({"events": events})).await;
    // While the first is answered, the task goes on to its end.
    let late = Behaviour::Delayed(Duration::from_secs(3), Answer::status(200));
    site.receiver.answers([late]);
    let inputs = json!({"duration_ms": 2_500});
    let task = json!({"name": "slow", "schemas": {"method": "sleep_executor"}, "inputs": inputs});
    let run = site
        .server
        .api
        .call("tasks.execute", json!({"tasks": [task]}))
        .await;
    site.server.api.run_of(&run["root_task_id"]).await;

    let all = async || {
        let all = site.deliveries().await;
        let waiting = all.iter().any(|d| d["state"] == "waiting");
        (!waiting && !all.is_empty()).then_some(all)
    };
    let all = site.server.api.eventually("nothing waits", all).await;
    let of = |kind: &str| -> Vec<&Value> { all.iter().filter(|d| d["type"] == kind).collect() };
    let told: Vec<Value> = site
        .receiver
        .requests()
        .iter()
        .map(|request| serde_json::from_slice(&request.body).unwrap())
        .collect();
    let mut statuses: Vec<_> = told
        .iter()
        .filter(|body| body["type"] == "task_status_update")
        .map(|body| body["status"].as_str().unwrap())
        .collect();
    // The end of the task, and that of its run.
    statuses.dedup();
    assert_eq!(statuses, ["pending", "in_progress", "completed"]);
    assert!(
        of("task_status_update")
            .iter()
            .all(|d| d["state"] == "delivered")
    );
    let progress = of("task_progress_update");
    let superseded = progress
        .iter()
        .filter(|d| d["state"] == "superseded")
        .count();
    assert!(superseded > 0, "{progress:?}");
    // The latest progress of all is told.
    assert_eq!(progress[0]["state"], "delivered", "{progress:?}");
    site.server.stop().await;
}

//! What a worker says under its lease, and what comes of it.

use super::socket::Socket;
use super::{METHOD, claim, held, not_held, remote, task};
use serde_json::{Value, json};
use std::time::Duration;
use taskledger_testkit::server::{Folder, Server};

/// Seconds that the shortest lease holds.
const SHORTEST_S: u64 = 5;

#[tokio::test]
async fn the_first_outcome_is_the_only_one_and_is_answered_again_when_it_is_repeated() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = remote(api, Value::Null).await;
    let claim = claim(api).await;
    let done = held(&claim, json!({"output": {"pages": 2}}));
    let completed = api.call("tasks.complete", done.clone()).await;
    assert_eq!(completed, json!({"task_id": id, "status": "completed"}));
    assert_eq!(api.call("tasks.complete", done).await, completed);
    for (method, more) in [
        ("tasks.complete", json!({"output": {"pages": 3}})),
        ("tasks.fail", json!({"error": "e"})),
        ("tasks.release", json!({})),
        ("tasks.renew", json!({})),
    ] {
        let reason = not_held(api, method, held(&claim, more)).await;
        assert_eq!(reason, "ended", "{method}");
    }
    let found = task(api, &id).await;
    assert_eq!(
        (&found["result"], &found["status"]),
        (&json!({"pages": 2}), &json!("completed"))
    );
    server.stop().await;
}

#[tokio::test]
async fn an_output_that_no_task_can_hold_is_refused_and_the_attempt_goes_on() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = remote(api, Value::Null).await;
    let claim = claim(api).await;
    let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"x": inner}));
    for output in [nested(101), json!({"x": "y".repeat(1 << 20)})] {
        let params = held(&claim, json!({"output": output}));
        let refusal = api.refusal("tasks.complete", params).await;
        assert_eq!(
            (refusal.code, &refusal.data["field"]),
            (-32602, &json!("output"))
        );
    }
    let mut socket = Socket::open(&api.url, None).await;
    let params = held(&claim, json!({"output": nested(101)}));
    let answer = socket.ask("tasks.complete", params).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(task(api, &id).await["status"], "in_progress");
    api.call(
        "tasks.complete",
        held(&claim, json!({"output": nested(100)})),
    )
    .await;
    assert_eq!(task(api, &id).await["status"], "completed");
    server.stop().await;
}

#[tokio::test]
async fn a_failure_is_tried_again_if_the_task_and_the_worker_allow_it() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let retry = json!({"retry": {"max_attempts": 3, "initial_delay_ms": 1}});
    let id = remote(api, retry).await;
    let first = claim(api).await;
    let failed = held(&first, json!({"error": "no paper"}));
    let pending = api.call("tasks.fail", failed.clone()).await;
    assert_eq!(pending["status"], "pending");
    assert!(pending["next_attempt_at"].is_string(), "{pending}");
    assert_eq!(api.call("tasks.fail", failed).await["status"], "pending");
    let second = claim(api).await;
    assert_eq!(second["lease"]["attempt"], 2);
    assert_eq!(
        not_held(api, "tasks.complete", held(&first, json!({"output": {}}))).await,
        "ended"
    );
    let last = held(&second, json!({"error": "no printer", "retryable": false}));
    let failed = api.call("tasks.fail", last).await;
    assert_eq!(failed, json!({"task_id": id, "status": "failed"}));
    assert_eq!(task(api, &id).await["error"], "no printer");
    server.stop().await;
}

#[tokio::test]
async fn a_released_task_goes_to_the_next_worker_and_keeps_its_retries() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = remote(api, Value::Null).await;
    for attempt in 1..=3 {
        let claim = claim(api).await;
        assert_eq!(claim["lease"]["attempt"], attempt);
        let release = held(&claim, json!({}));
        let released = api.call("tasks.release", release.clone()).await;
        assert_eq!(released["status"], "pending");
        assert_eq!(
            api.call("tasks.release", release).await["status"],
            "pending"
        );
    }
    let done = held(&claim(api).await, json!({"output": {}}));
    api.call("tasks.complete", done).await;
    assert_eq!(task(api, &id).await["status"], "completed");
    server.stop().await;
}

#[tokio::test]
async fn a_renewal_holds_the_lease_and_tells_how_far_the_task_is() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = remote(api, Value::Null).await;
    let claim = claim(api).await;
    let more = json!({"progress": 0.25, "message": "page 1 of 4", "lease_seconds": 600});
    let renewed = api.call("tasks.renew", held(&claim, more)).await;
    assert_eq!(renewed["cancel_requested"], false);
    let until = |value: &Value| value["expires_at"].as_str().unwrap().to_owned();
    assert!(until(&renewed) > until(&claim["lease"]));
    assert_eq!(task(api, &id).await["progress"], 0.25);
    let history = api.call("tasks.history", json!({"task_id": id})).await;
    assert!(history.to_string().contains("page 1 of 4"), "{history}");
    server.stop().await;
}

#[tokio::test]
async fn a_lease_that_ends_loses_its_attempt_to_another_worker() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = remote(api, Value::Null).await;
    let wanted = json!({"methods": [METHOD], "worker": "slow", "lease_seconds": SHORTEST_S});
    let lost = api.call("tasks.claim", wanted).await["claims"][0].take();
    // Waits until the lease of the other one has ended.
    let second = claim(api).await;
    assert_eq!(second["task"]["id"], json!(id));
    assert_eq!(second["lease"]["attempt"], 2);
    for (method, more) in [
        ("tasks.renew", json!({})),
        ("tasks.complete", json!({"output": {"by": "slow"}})),
    ] {
        assert_eq!(not_held(api, method, held(&lost, more)).await, "lost");
    }
    let done = held(&second, json!({"output": {"by": "w"}}));
    api.call("tasks.complete", done).await;
    assert_eq!(task(api, &id).await["result"], json!({"by": "w"}));
    server.stop().await;
}

#[tokio::test]
async fn a_cancelled_task_is_taken_from_its_worker_who_is_told_to_stop() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = remote(api, json!({"cancel_grace_seconds": 1})).await;
    let claim = claim(api).await;
    api.call("tasks.cancel", json!({"task_id": id})).await;
    let renewal = held(&claim, json!({"progress": 0.5}));
    let renewed = api.call("tasks.renew", renewal.clone()).await;
    assert_eq!(
        (&renewed["cancel_requested"], &renewed["reason"]),
        (&json!(true), &json!("cancelled"))
    );
    for (method, more) in [
        ("tasks.complete", json!({"output": {}})),
        ("tasks.fail", json!({"error": "e"})),
        ("tasks.release", json!({})),
    ] {
        let reason = not_held(api, method, held(&claim, more)).await;
        assert_eq!(reason, "cancelled", "{method}");
    }
    // When the grace is over there is nothing left to renew.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(not_held(api, "tasks.renew", renewal).await, "cancelled");
    assert_eq!(task(api, &id).await["status"], "cancelled");
    server.stop().await;
}

#[tokio::test]
async fn a_lease_that_nobody_has_is_unknown() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    remote(api, Value::Null).await;
    let claim = claim(api).await;
    for lease in ["not-a-lease", "0f8fad5b-d9cb-469f-a165-70867728950e"] {
        let mut params = held(&claim, json!({"output": {}}));
        params["lease"] = json!(lease);
        assert_eq!(not_held(api, "tasks.complete", params).await, "unknown");
    }
    api.call("tasks.complete", held(&claim, json!({"output": {}})))
        .await;
    server.stop().await;
}

#[tokio::test]
async fn a_lease_outlives_a_restart_of_the_server() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let id = remote(&server.api, Value::Null).await;
    let claim = claim(&server.api).await;
    server.kill().await;
    let server = Server::start(&folder).await;
    let api = &server.api;
    assert_eq!(task(api, &id).await["status"], "in_progress");
    let renewed = api.call("tasks.renew", held(&claim, json!({}))).await;
    assert_eq!(renewed["cancel_requested"], false);
    let done = held(&claim, json!({"output": {"a": 1}}));
    api.call("tasks.complete", done).await;
    assert_eq!(task(api, &id).await["result"], json!({"a": 1}));
    server.stop().await;
}

//! Callers cannot make a server show, or keep, more and more series.

use super::scrape::{scrape, server};
use serde_json::{Value, json};
use taskledger_testkit::server::{Api, Folder};

/// Names that are made up, by calls of a hundred.
const MADE_UP: usize = 10_000;
const BATCH: usize = 100;

/// Calls of methods that do not exist, and tasks whose executors do not.
async fn make_up(api: &Api, from: usize) {
    for begin in (from..from + MADE_UP).step_by(BATCH) {
        let calls: Vec<Value> = (begin..begin + BATCH)
            .map(|n| json!({"jsonrpc": "2.0", "id": n, "method": format!("made.up{n}")}))
            .collect();
        let (status, answers) = api.post(json!(calls).to_string()).await.unwrap();
        assert_eq!((status, answers.as_array().unwrap().len()), (200, BATCH));
        let tasks: Vec<Value> = (begin..begin + BATCH)
            .map(|n| {
                json!({
                    "id": format!("t{n}"), "name": "t", "user_id": format!("user{n}"),
                    "schemas": {"method": format!("made_up{n}")},
                    "parent_id": (n > begin).then(|| format!("t{begin}"))
                })
            })
            .collect();
        let params = json!({"tasks": tasks, "allow_unknown_executors": true});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.execute", "params": params});
        let (status, _) = api.post(call.to_string()).await.unwrap();
        assert_eq!(status, 200);
    }
}

#[tokio::test]
async fn ten_thousand_made_up_names_are_a_handful_of_series() {
    let folder = Folder::new();
    let server = server(&folder).await;
    let api = &server.api;
    make_up(api, 0).await;
    let first = scrape(api).await;
    let calls = "rpc_server_call_duration_seconds_count";
    assert_eq!(
        first.sum(calls, &[("rpc_method", "_OTHER")]),
        MADE_UP as f64
    );
    assert!(first.count(calls) < 10, "{}", first.text);
    for metric in [
        "taskledger_attempts_total",
        "taskledger_slots",
        "taskledger_waiting",
    ] {
        assert!(first.count(metric) <= 6 * 65, "{metric}");
    }
    assert!(
        !first.text.contains("made_up")
            && !first.text.contains("made.up")
            && !first.text.contains("user1")
    );
    // when
    make_up(api, MADE_UP).await;
    // then
    let second = scrape(api).await;
    let lines = |text: &str| text.lines().count();
    assert_eq!(lines(&first.text), lines(&second.text));
    server.stop().await;
}

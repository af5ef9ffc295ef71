//! How many streams there may be, and what those cost that nobody reads.

use crate::streams::sse::{everything, get, open, post, run, tasks};
use serde_json::{Value, json};
use taskledger_testkit::server::{Folder, Server};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

#[tokio::test]
async fn more_streams_than_there_may_be_are_told_to_come_back() {
    // given
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--max-streams", "2"]).await;
    let api = &server.api;
    let (one, two) = (open(api, "", None).await, open(api, "", None).await);
    // when
    let third = get(api, "", None).await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.execute", "params": {"tasks": tasks(1), "use_streaming": true}});
    let run = post(api, &body).await;
    // then
    for refused in [third, run] {
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.headers()["retry-after"], "1");
        let body: Value = refused.json().await.unwrap();
        assert_eq!(body["error"]["code"], -32013);
    }
    let list = api.call("tasks.list", json!({})).await;
    assert_eq!(list["total"], 0, "nothing was carried out");
    // A place is free again when a stream has ended.
    drop(one);
    api.eventually("there is a place", async || {
        (get(api, "", None).await.status() == 200).then_some(())
    })
    .await;
    drop(two);
    server.stop().await;
}

#[tokio::test]
async fn a_caller_who_calls_too_fast_is_told_when_to_come_back() {
    // given: room for two changes and a read
    let folder = Folder::new();
    let slow = ["--rate-per-second", "1", "--rate-burst", "11"];
    let server = Server::start_with(&folder, &slow).await;
    let api = &server.api;
    let task = api.call("tasks.create", json!({"name": "a"})).await["id"].clone();
    api.call("tasks.create", json!({"name": "b"})).await;
    let get =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.get", "params": {"task_id": task}});
    let cancel =
        json!({"jsonrpc": "2.0", "id": 2, "method": "tasks.cancel", "params": {"task_id": task}});
    let create =
        json!({"jsonrpc": "2.0", "id": 3, "method": "tasks.create", "params": {"name": "c"}});
    // when
    let (status, answers) = api.post(json!([create, cancel]).to_string()).await.unwrap();
    // then: each element of a batch by itself, and stopping is free
    assert_eq!(status, 200);
    let refused = &answers[0]["error"];
    assert_eq!(refused["code"], -32013, "{answers}");
    assert_eq!(refused["data"]["field"], "rate");
    let wait_ms = refused["data"]["retry_after_ms"].as_u64().unwrap();
    assert!((1..=5000).contains(&wait_ms), "{wait_ms}");
    assert_eq!(answers[1]["result"]["status"], "cancelled", "{answers}");
    // A stream is no call: its status says it.
    let streams = async || crate::streams::sse::get(api, "", None).await;
    api.eventually("the bucket is empty", async || {
        let (_, answer) = api.post(get.to_string()).await.unwrap();
        (answer["error"]["code"] == -32013).then_some(())
    })
    .await;
    let refused = streams().await;
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    // So do the headers of an answer all of whose calls were refused for it, whose status is that of all answers.
    for (body, is_said) in [
        (create.clone(), true),
        (json!([create, create]), true),
        (json!([create, cancel]), false),
    ] {
        let answer = api.http.post(api.url.as_str()).json(&body).send();
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), 200);
        let seconds = answer.headers().get("retry-after").cloned();
        assert_eq!(seconds.is_some(), is_said, "{body}");
        let limit = answer.headers().get("ratelimit").cloned();
        let seconds = seconds.map(|it| it.to_str().unwrap().parse::<u64>().unwrap());
        let expected = seconds.map(|seconds| format!("\"calls\";r=0;t={seconds}"));
        assert_eq!(limit.map(|it| it.to_str().unwrap().to_owned()), expected);
        assert!(seconds.is_none_or(|seconds| (1..=5).contains(&seconds)));
    }
    // Whoever waits is served.
    assert!(api.call("system.health", json!({})).await["checks"].is_array());
    api.eventually("there is room", async || {
        let (_, answer) = api.post(get.to_string()).await.unwrap();
        answer["result"].is_object().then_some(())
    })
    .await;
    server.stop().await;
}

/// Kilobytes of memory of the server.
fn memory(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_take_nothing_cost_little_and_change_nothing_for_others() {
    const STALLED: usize = 30;
    // given: readers that ask and never read, and one that reads
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let address = api
        .url
        .strip_prefix("http://")
        .unwrap()
        .trim_end_matches('/');
    let mut stalled = Vec::new();
    for _ in 0..STALLED {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let ask = format!("GET /events HTTP/1.1\r\nhost: {address}\r\n\r\n");
        socket.write_all(ask.as_bytes()).await.unwrap();
        stalled.push(socket);
    }
    let mut live = open(api, "", None).await;
    run(api, 1).await;
    let before = memory(&server);
    // when: more happens than the sockets of all of them hold
    let text = "x".repeat(100_000);
    let tasks: Vec<_> = (0..100)
        .map(|n| json!({"name": format!("t{n}"), "schemas": {"method": "echo_executor"}, "inputs": {"text": text}}))
        .collect();
    let params = json!({"name": "root", "children": tasks});
    let root = api.call("tasks.create", params).await["id"].take();
    api.call("tasks.execute", json!({"task_id": root})).await;
    let last = loop {
        let event = live.event().await.unwrap();
        if event.json()["task_id"] == root && event.json()["final"] == true {
            break event;
        }
    };
    // then
    let grown = memory(&server).saturating_sub(before) / 1024;
    assert!(
        grown < 200,
        "{grown} MB for {STALLED} readers of 10 MB each"
    );
    // One that was not read goes on whole.
    let all = everything(api).await;
    let mut back = open(api, "", all[3].id.as_deref()).await;
    let rest = back.events(all.len() - 4).await;
    assert!(rest == all[4..]);
    assert_eq!(rest.last().unwrap(), &last);
    drop(stalled);
    server.stop().await;
}

#[tokio::test]
async fn stopping_is_free_for_own_tasks_and_costs_a_change_for_those_of_others() {
    let folder = Folder::new();
    let slow = [
        "--auth",
        "on",
        "--rate-per-second",
        "1",
        "--rate-burst",
        "40",
    ];
    let server = Server::start_with(&folder, &slow).await;
    let admin = server.api.with_token(&folder.first_token());
    let new = json!({"name": "ann", "scopes": ["tasks:read", "tasks:write", "tasks:run"]});
    let made = admin.call("tokens.create", new).await;
    let ann = server.api.with_token(made["token"].as_str().unwrap());
    let hers = ann.call("tasks.create", json!({"name": "hers"})).await["id"].clone();
    let own = admin.call("tasks.create", json!({"name": "own"})).await["id"].clone();

    let cancels = async |task: &serde_json::Value, times: usize| {
        let mut refused = 0;
        for _ in 0..times {
            let cancel = json!({"task_id": task});
            let answer = admin.try_call("tasks.cancel", cancel, None).await;
            let is_rate = answer.is_err_and(|it| format!("{it:?}").contains("-32013"));
            refused += usize::from(is_rate);
        }
        refused
    };
    assert_eq!(cancels(&own, 20).await, 0);
    assert!(cancels(&hers, 20).await > 0);
    assert_eq!(
        cancels(&own, 5).await,
        0,
        "an empty bucket keeps nobody from stopping"
    );
    server.stop().await;
}

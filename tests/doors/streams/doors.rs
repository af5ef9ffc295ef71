//! `GET /events`: its bytes, its headers, its parameters.

use crate::streams::sse::{everything, get, open, run};
use serde_json::json;
use taskledger_testkit::server::{Folder, Server};

#[tokio::test]
async fn a_stream_opens_at_once_and_every_frame_is_exact() {
    // given
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let mut sse = open(api, "", None).await;
    // then: the first bytes come before anything has happened
    let greeting = sse.block().await.unwrap();
    assert_eq!(greeting.comments, ["taskledger"]);
    let retry: u32 = greeting.retry.unwrap().parse().unwrap();
    assert!((1000..=3000).contains(&retry), "{retry}");
    // when: texts hold what would break a line
    let odd = "a\r\nb\u{0}c\u{2028}d\rdata: e\n\nid: 9";
    let spread = "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tasks.execute\", \"params\": {\"tasks\": [{\"name\": \"x\",\r\n \"schemas\": {\"method\": \"echo_executor\"}, \"inputs\": {\"a\":\r\n [1,\n\n 2], \"odd\": ODD}}]}}";
    let body = spread.replace("ODD", &json!(odd).to_string());
    let (status, answer) = api.post(body).await.unwrap();
    assert_eq!(
        (status, &answer["result"]["status"]),
        (200, &json!("started"))
    );
    // then
    let events = sse.events(6).await;
    let kinds: Vec<_> = events.iter().map(|e| e.event.as_deref().unwrap()).collect();
    let update = "task_status_update";
    let ends = ["task_completed", "run_completed"];
    assert_eq!(kinds, [update, update, update, ends[0], ends[1], update]);
    let completed = events[3].json();
    assert_eq!(completed["result"]["odd"], odd);
    assert_eq!(completed["result"]["a"], json!([1, 2]));
    assert_eq!(completed["protocol"], "a2a");
    assert_eq!(completed["root_task_id"], answer["result"]["root_task_id"]);
    // The verdict on the run comes first, and its last message ends its stream.
    let verdict = events[4].json();
    assert_eq!(verdict["run"]["state"], "completed");
    assert_eq!(verdict["run"]["skipped"], 0);
    assert_eq!(verdict.get("final"), None);
    assert_eq!(events[5].json()["run"], verdict["run"]);
    assert_eq!(events[5].json()["final"], true);
    // Each names its task.
    for event in &events {
        assert_eq!(event.json()["name"], "x", "{}", event.json());
    }
    assert_eq!(events[0].json().get("parent_id"), None);
    // Each has a place of its own, and an identity of its own.
    for one in 0..events.len() {
        for other in 0..one {
            assert_ne!(events[one].id, events[other].id);
            assert_ne!(events[one].json()["id"], events[other].json()["id"]);
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn proxies_and_browsers_are_told_to_pass_everything_on() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--allow-origin", "https://app.example"]).await;
    let api = &server.api;
    let ask = api.http.get(format!("{}events", api.url));
    let response = ask
        .header("accept-encoding", "gzip, br")
        .header("origin", "https://app.example")
        .send()
        .await
        .unwrap();
    let header = |name: &str| response.headers().get(name).map(|v| v.to_str().unwrap());
    assert_eq!(header("cache-control"), Some("no-cache, no-transform"));
    assert_eq!(header("x-accel-buffering"), Some("no"));
    assert_eq!(header("content-encoding"), None);
    assert_eq!(header("content-length"), None);
    assert_eq!(
        header("access-control-allow-origin"),
        Some("https://app.example")
    );
    assert_eq!(header("access-control-allow-credentials"), None);
    assert!(
        header("access-control-expose-headers")
            .unwrap()
            .contains("x-taskledger-cursor")
    );
    assert!(header("x-taskledger-cursor").is_some());
    let ask = api.http.get(format!("{}events", api.url));
    let foreign = ask
        .header("origin", "https://evil.example")
        .send()
        .await
        .unwrap();
    assert_eq!(foreign.headers().get("access-control-allow-origin"), None);
    drop((response, foreign));
    server.stop().await;
}

#[tokio::test]
async fn what_the_route_does_not_take_is_refused_with_a_reason() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let url = format!("{}events", api.url);
    let head = api.http.head(&url).send().await.unwrap();
    assert_eq!(head.status(), 200);
    assert!(head.headers().contains_key("x-taskledger-cursor"));
    let post = api.http.post(&url).send().await.unwrap();
    assert_eq!(
        (post.status().as_u16(), &post.headers()["allow"]),
        (405, &"GET, HEAD".parse().unwrap())
    );
    let html = api
        .http
        .get(&url)
        .header("accept", "text/html")
        .send()
        .await
        .unwrap();
    assert_eq!(html.status(), 406);
    let unknown = "0f8fad5b-d9cb-469f-a165-70867728950e";
    for (query, status, field) in [
        ("?form=now", 400, "form"),
        ("?from=yesterday", 400, "from"),
        ("?from=now&from=now", 400, "from"),
        ("?types=task_done", 400, "types"),
        ("?flow=7", 400, "flow"),
        ("?user=%ff", 400, "user"),
        ("?%fe=1", 400, "\u{fffd}"),
        (&format!("?flow={unknown}"), 404, "flow"),
        (&format!("?task={unknown}"), 404, "task"),
    ] {
        let refused = get(api, query, None).await;
        assert_eq!(refused.status().as_u16(), status, "{query}");
        let body: serde_json::Value = refused.json().await.unwrap();
        let fault = &body["error"]["data"];
        assert_eq!(fault["field"], field, "{query}");
        assert!(fault["reason"].is_string() && fault["expected"].is_string());
    }
    server.stop().await;
}

#[tokio::test]
async fn a_page_whose_name_was_made_to_lead_here_learns_and_changes_nothing() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--allow-host", "ledger.example"]).await;
    let api = &server.api;
    let ask = async |path: &str, host: &str| {
        let request = api.http.get(format!("{}{path}", api.url));
        let request = request.header("host", host);
        request
            .header("origin", format!("http://{host}"))
            .send()
            .await
            .unwrap()
    };
    let port = api.url.trim_end_matches('/').rsplit(':').next().unwrap();
    let evil = format!("evil.example:{port}");
    for path in [
        "events",
        "ws",
        "openrpc.json",
        ".well-known/agent-card",
        "nothing",
    ] {
        let refused = ask(path, &evil).await;
        assert_eq!(refused.status(), 421, "{path}");
        let body: serde_json::Value = refused.json().await.unwrap();
        let fault = &body["error"]["data"];
        assert_eq!(
            (&fault["field"], &fault["actual"]),
            (&json!("host"), &json!(evil))
        );
        let expected = fault["expected"].as_str().unwrap();
        for part in ["--allow-host", "localhost", "ledger.example"] {
            assert!(expected.contains(part), "{expected}");
        }
    }
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.create", "params": {"name": "x"}});
    let call = api.http.post(&api.url).header("host", &evil).json(&body);
    assert_eq!(call.send().await.unwrap().status(), 421);
    assert_eq!(api.call("tasks.list", json!({})).await["total"], 0);
    // Names of ours; and probes under any.
    for own in ["localhost", "127.0.0.1:1", "[::1]", "ledger.example"] {
        assert_eq!(ask("openrpc.json", own).await.status(), 200, "{own}");
    }
    for probe in ["livez", "readyz", "healthz"] {
        assert_eq!(ask(probe, &evil).await.status(), 200, "{probe}");
    }
    server.stop().await;
    // Who listens for others takes any name, but no page for its own because of it.
    let command = [
        "serve",
        "--listen",
        "0.0.0.0:0",
        "--node-url",
        "http://127.0.0.1:1",
        "--auth",
        "off",
    ];
    let mut open = taskledger_testkit::program::command();
    open.args(command).args(folder.storage());
    let server = Server::spawn(open, folder.path()).await;
    let url = server.api.url.replace("0.0.0.0", "127.0.0.1");
    let named = server.api.http.get(format!("{url}openrpc.json"));
    assert_eq!(
        named
            .header("host", "any.example")
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
    let page = server
        .api
        .http
        .get(format!("{url}ws"))
        .header("host", "any.example");
    let page = page
        .header("origin", "http://any.example")
        .send()
        .await
        .unwrap();
    assert_eq!(page.status(), 403);
    server.stop().await;
}

#[tokio::test]
async fn a_cursor_that_is_no_place_here_is_answered_with_a_reset() {
    // given: a place in another log, and one behind the end of this
    let (folder, other) = (Folder::new(), Folder::new());
    let (server, elsewhere) = (Server::start(&folder).await, Server::start(&other).await);
    run(&elsewhere.api, 3).await;
    let foreign = everything(&elsewhere.api).await;
    let ahead = foreign.last().unwrap().id.clone().unwrap();
    server.api.call("tasks.create", json!({"name": "a"})).await;
    let another = foreign[0].id.clone().unwrap();
    for (last, reason) in [
        ("latest", "malformed"),
        (&*ahead, "ahead_of_log"),
        (&*another, "another_log"),
    ] {
        // when
        let mut sse = open(&server.api, "?from=beginning", Some(last)).await;
        // then
        assert_eq!(sse.header("x-taskledger-reset"), reason);
        let reset = sse.event().await.unwrap();
        assert_eq!(reset.event.as_deref(), Some("reset"));
        assert_eq!(reset.json()["reason"], reason);
        assert_eq!(reset.json()["cursor"], json!(reset.id));
        assert_eq!(reset.id, Some(sse.header("x-taskledger-cursor")));
        // It goes on from now.
        let created = server.api.call("tasks.create", json!({"name": "b"})).await;
        let event = sse.event().await.unwrap();
        assert_eq!(event.json()["task_id"], created["id"]);
    }
    server.stop().await;
    elsewhere.stop().await;
}

#[tokio::test]
async fn the_header_wins_over_the_query() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    run(&server.api, 2).await;
    let all = everything(&server.api).await;
    let (early, late) = (all[0].id.as_deref().unwrap(), all[3].id.as_deref().unwrap());
    let query = format!("?last_event_id={early}");
    assert_eq!(
        open(&server.api, &query, None).await.events(1).await,
        all[1..2]
    );
    let mut both = open(&server.api, &query, Some(late)).await;
    assert_eq!(both.header("x-taskledger-cursor"), late);
    assert_eq!(both.events(1).await, all[4..5]);
    server.stop().await;
}

#[tokio::test]
async fn users_types_and_tasks_are_chosen() {
    // given
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    for user in ["ann", "bob"] {
        let task = json!({"name": user, "user_id": user, "schemas": {"method": "echo_executor"}});
        let started = api.call("tasks.execute", json!({"tasks": [task]})).await;
        api.run_of(&started["root_task_id"]).await;
    }
    let all = everything(api).await;
    let bob = all.last().unwrap().json()["task_id"].clone();
    let of_bob: Vec<_> = all
        .iter()
        .filter(|e| e.json()["task_id"] == bob)
        .cloned()
        .collect();
    // then
    let id = bob.as_str().unwrap();
    for query in [
        "?user=bob&from=beginning".to_owned(),
        format!("?task={id}&from=beginning"),
        format!("?flow={id}&from=beginning"),
    ] {
        assert_eq!(
            open(api, &query, None).await.events(of_bob.len()).await,
            of_bob,
            "{query}"
        );
    }
    let completed = open(
        api,
        "?types=task_completed,task_failed&from=beginning",
        None,
    )
    .await
    .events(2)
    .await;
    assert!(
        completed
            .iter()
            .all(|e| e.event.as_deref() == Some("task_completed"))
    );
    server.stop().await;
}

//! Cursors of somebody else: a place in his list or stream is a place in one's own, and shows nothing of his.

use super::world::World;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// Longer than an event takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

async fn given_task(world: &World, token: &str, name: &str) -> String {
    let created = world.call(token, "tasks.create", json!({"name": name}));
    created.await["id"].as_str().unwrap().to_owned()
}

/// Three flows of Ann with two of Bob between them.
async fn given_flows(world: &World) {
    for (token, name) in [
        ("ann", "hers-1"),
        ("bob", "his-1"),
        ("ann", "hers-2"),
        ("bob", "his-2"),
        ("ann", "hers-3"),
    ] {
        given_task(world, token, name).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_of_somebody_elses_list_shows_ones_own_list_only() {
    let world = World::start().await;
    given_flows(&world).await;
    for (method, member) in [("tasks.list", "tasks"), ("events.query", "events")] {
        for limit in [1, 2] {
            let page = world.call("ann", method, json!({"limit": limit})).await;
            let cursor = page["next_cursor"].as_str().unwrap();
            let with_hers = json!({"limit": 10, "cursor": cursor});
            let (status, text) = world.ask(Some("bob"), method, &with_hers).await;
            assert_eq!(status, 200, "{text}");
            assert!(!text.contains("hers-"), "{method}: {text}");
            let answer: Value = serde_json::from_str(&text).unwrap();
            // Refused as any cursor that is not of this list, or read as a place in the own one.
            if let Some(result) = answer.get("result") {
                let shown = result[member].as_array().unwrap();
                assert!(!shown.is_empty() && shown.len() <= 2, "{method}: {text}");
                if method == "tasks.list" {
                    assert_eq!(result["total"], 2, "{text}");
                }
            }
        }
    }
    world.close().await;
}

/// The id of the first event of a stream, and its text.
async fn first_event(response: &mut reqwest::Response) -> (String, String) {
    let mut read = String::new();
    loop {
        let event = read.split("\n\n").find(|event| event.contains("data: "));
        let id = |event: &str| {
            let line = event.lines().find_map(|line| line.strip_prefix("id: "));
            line.map(str::to_owned)
        };
        if let Some(event) = event.filter(|_| read.contains("\n\n"))
            && let Some(id) = id(event)
        {
            return (id, event.to_owned());
        }
        let piece = timeout(PATIENCE, response.chunk()).await.unwrap();
        let piece = piece.unwrap().expect("the stream goes on");
        read.push_str(&String::from_utf8_lossy(&piece));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_of_somebody_elses_stream_resumes_ones_own_stream() {
    let world = World::start().await;
    let open = async |token: &str, from: &str, behind: Option<&str>| {
        let request = world.client.get(format!("{}/events{from}", world.url()));
        let request = match behind {
            Some(id) => request.header("last-event-id", id),
            None => request,
        };
        let request = world.as_caller(request, Some(token));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        response
    };
    let cancelled = async |token: &str| {
        let task = given_task(&world, token, "t").await;
        let cancel = json!({"task_id": task});
        world.call(token, "tasks.cancel", cancel).await;
        task
    };
    let hers = cancelled("ann").await;
    let mut stream = open("ann", "?from=beginning", None).await;
    let (place, event) = first_event(&mut stream).await;
    assert!(event.contains(&hers), "{event}");

    // Behind that place: one of each, hers first.
    let (more, his) = (cancelled("ann").await, cancelled("bob").await);
    let mut stream = open("bob", "", Some(&place)).await;
    let (_, event) = first_event(&mut stream).await;

    assert!(event.contains(&his), "{event}");
    for foreign in [&hers, &more] {
        assert!(!event.contains(foreign.as_str()), "{event}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_somebody_elses_runs_tells_nothing_of_how_many_there_are() {
    let world = World::start().await;
    let listed = async |token: &str, params: Value| {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": params});
        let request = world.client.post(format!("{}/a2a", world.url()));
        let request = request.header("a2a-version", "1.0").json(&call);
        let (_, text) = world.send(world.as_caller(request, Some(token))).await;
        serde_json::from_str::<Value>(&text).unwrap()
    };
    for _ in 0..3 {
        let tasks = json!({"tasks": [{"name": "a", "schemas": {"method": "echo_executor"}}]});
        world.call("ann", "tasks.execute", tasks).await;
    }
    let page = listed("ann", json!({"pageSize": 1})).await;
    let (token, total) = (
        &page["result"]["nextPageToken"],
        &page["result"]["totalSize"],
    );
    assert_eq!(total, 3, "{page}");
    let next = json!({"pageSize": 1, "pageToken": token});
    let own = listed("ann", next.clone()).await;
    assert_eq!(own["result"]["totalSize"], 3, "{own}");
    let foreign = listed("bob", next).await;
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
    assert!(foreign.to_string().contains("pageToken"), "{foreign}");
    world.close().await;
}

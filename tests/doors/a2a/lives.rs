//! Tasks that outlive their server: it is killed, and streams go on where they were, without a gap and without a
//! repetition.

use super::binding::all;
use super::pieces::{Held, begun};
use super::wire::{JSON, VERSION, call};
use super::{message, question, runs};
use crate::webhooks::in_both_places;
use serde_json::{Value, json};
use taskledger_a2a::Operation::{SendMessage, SubscribeToTask};
use taskledger_testkit::cluster::Cluster;
use taskledger_testkit::server::{Folder, Server};

in_both_places!(
    a_subscription_goes_on_after_a_kill_on_every_binding,
    a_task_that_was_running_is_told_to_its_end_after_a_kill,
);

/// Bindings with events that have ids.
const WITH_IDS: [bool; 2] = [true, false];
/// Tasks of which about half belong to the node that is killed.
const TASKS: usize = 6;

fn at(server: &Server, path: &str) -> String {
    format!("{}{path}", server.api.url.trim_end_matches('/'))
}

/// An event of a stream: its id and what it tells.
type Event = (String, Value);

/// A subscription over JSON-RPC or HTTP+JSON, as it comes.
struct Subscription {
    response: reqwest::Response,
    text: String,
}

impl Subscription {
    async fn open(server: &Server, task: &Value, is_rpc: bool, behind: Option<&str>) -> Self {
        let http = taskledger::tls::client().build().unwrap();
        let request = match is_rpc {
            true => {
                let body = call("SubscribeToTask", &json!({"id": task}));
                http.post(at(server, "/a2a"))
                    .header(JSON.0, JSON.1)
                    .body(body)
            }
            false => {
                let path = format!("/a2a/rest/tasks/{}:subscribe", task.as_str().unwrap());
                http.get(at(server, &path))
            }
        };
        let request = request.header(VERSION.0, VERSION.1);
        let request = match behind {
            None => request,
            Some(id) => request.header("last-event-id", id),
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            response,
            text: String::new(),
        }
    }

    fn events(&self) -> Vec<Event> {
        let whole = self.text.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
        let event = |text: &str| {
            let line = |begin: &str| text.lines().find_map(|it| it.strip_prefix(begin));
            let mut data: Value = serde_json::from_str(line("data: ")?).unwrap();
            if data.get("result").is_some() {
                data = data["result"].take();
            }
            Some((line("id: ")?.to_owned(), data))
        };
        whole.split("\n\n").filter_map(event).collect()
    }

    /// The first event.
    async fn first(&mut self) -> Event {
        loop {
            if let Some(first) = self.events().into_iter().next() {
                return first;
            }
            let chunk = self.response.chunk().await.unwrap().expect("an event");
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// All events to the end of the stream, or of the server.
    async fn all(mut self) -> Vec<Event> {
        while let Ok(Some(chunk)) = self.response.chunk().await {
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        self.events()
    }
}

/// What an item tells, in a word.
fn word(item: &Value) -> &str {
    let status = item["statusUpdate"]["status"]["state"].as_str();
    let status = status.or(item["task"]["status"]["state"].as_str());
    let made = item["artifactUpdate"]["artifact"]["artifactId"].as_str();
    status.or(made).unwrap_or("?")
}

fn words(events: &[Event]) -> Vec<&str> {
    events.iter().map(|(_, item)| word(item)).collect()
}

/// The stream over gRPC, to its end.
async fn over_grpc(server: &Server, task: &Value) -> tokio::task::JoinHandle<Vec<Value>> {
    let mut binding = all(&server.api.url).await.pop().unwrap();
    assert_eq!(binding.name(), "gRPC");
    let request = json!({"id": task});
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let stream = tokio::spawn(async move {
        let items = binding.follow(SubscribeToTask, request, Some(begun)).await;
        items.unwrap_or_default()
    });
    has_begun.await.unwrap();
    stream
}

fn answer(task: &Value) -> Value {
    let mut answer = message(json!([{"text": "red"}]));
    answer["message"]["messageId"] = json!("answer");
    answer["message"]["taskId"] = task.clone();
    answer
}

const BEHIND: [&str; 3] = ["TASK_STATE_WORKING", "result", "TASK_STATE_COMPLETED"];

async fn a_subscription_goes_on_after_a_kill_on_every_binding(folder: Folder) {
    let server = Server::start(&folder).await;
    let mut bindings = all(&server.api.url).await;
    let asked = bindings[0]
        .ask(SendMessage, runs(json!([question()])))
        .await
        .unwrap();
    let task = asked["task"]["id"].clone();
    let (mut open, mut places) = (Vec::new(), Vec::new());
    for is_rpc in WITH_IDS {
        let mut stream = Subscription::open(&server, &task, is_rpc, None).await;
        let (place, first) = stream.first().await;
        assert_eq!(word(&first), "TASK_STATE_INPUT_REQUIRED", "{first}");
        places.push((is_rpc, place));
        open.push(stream);
    }
    let cut = over_grpc(&server, &task).await;
    server.kill().await;
    for stream in open {
        assert_eq!(stream.all().await.len(), 1, "nothing was told in between");
    }
    cut.await.unwrap();

    // It waits still; who subscribes again is told everything behind the place that was reached, once.
    let server = Server::start(&folder).await;
    let mut bindings = all(&server.api.url).await;
    let mut streams = Vec::new();
    for (is_rpc, place) in &places {
        for _ in 0..2 {
            streams.push(Subscription::open(&server, &task, *is_rpc, Some(place)).await);
        }
    }
    let anew = over_grpc(&server, &task).await;
    let ended = bindings[0].ask(SendMessage, answer(&task)).await.unwrap();
    assert_eq!(
        ended["task"]["status"]["state"], "TASK_STATE_COMPLETED",
        "{ended}"
    );
    let mut told = Vec::new();
    for stream in streams {
        told.push(stream.all().await);
    }
    assert_eq!(words(&told[0]), BEHIND, "{told:?}");
    for other in &told[1..] {
        assert_eq!(other, &told[0], "all tell the same under the same ids");
    }
    let anew = anew.await.unwrap();
    let anew: Vec<_> = anew.iter().map(word).collect();
    assert_eq!(
        (anew[0], &anew[1..]),
        ("TASK_STATE_INPUT_REQUIRED", &BEHIND[..])
    );
    server.stop().await;
}

async fn a_task_that_was_running_is_told_to_its_end_after_a_kill(folder: Folder) {
    let server = Server::start(&folder).await;
    let mut bindings = all(&server.api.url).await;
    // A worker has the task, so that it runs until the worker says so, however slow the machine is.
    let task = begun(bindings[0].as_mut()).await;
    let held = Held::claim(&server.api).await;
    let mut places = Vec::new();
    for is_rpc in WITH_IDS {
        let mut stream = Subscription::open(&server, &task, is_rpc, None).await;
        places.push((is_rpc, stream.first().await.0));
    }
    server.kill().await;
    let server = Server::start(&folder).await;
    let mut streams = Vec::new();
    for (is_rpc, place) in &places {
        streams.push(Subscription::open(&server, &task, *is_rpc, Some(place)).await);
    }
    held.completes(&server.api, json!({"written": true})).await;
    let mut told = Vec::new();
    for stream in streams {
        told.push(stream.all().await);
    }
    assert_eq!(
        words(&told[0]),
        ["result", "TASK_STATE_COMPLETED"],
        "{told:?}"
    );
    assert_eq!(told[0], told[1]);
    // From the same place, later: the same events.
    let again = Subscription::open(&server, &task, true, Some(&places[0].1)).await;
    assert_eq!(again.all().await, told[0]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_a_node_that_is_killed_go_on_at_another() {
    let mut cluster = Cluster::of(2).await;
    let other = cluster.nodes.pop().unwrap();
    let one = cluster.nodes.pop().unwrap();
    let mut here = all(&one.api.url).await;
    let (mut tasks, mut places, mut stays) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TASKS {
        let asked = here[0]
            .ask(SendMessage, runs(json!([question()])))
            .await
            .unwrap();
        let task = asked["task"]["id"].clone();
        let mut stream = Subscription::open(&other, &task, true, None).await;
        places.push(stream.first().await.0);
        // This one is at the node that stays, whoever owns the flow.
        stays.push(Subscription::open(&one, &task, false, None).await);
        tasks.push(task);
    }
    other.kill().await;
    let mut moved = Vec::new();
    for (task, place) in tasks.iter().zip(&places) {
        moved.push(Subscription::open(&one, task, true, Some(place)).await);
    }
    for task in &tasks {
        // Flows of the other node move when its leases have ended.
        loop {
            match here[0].ask(SendMessage, answer(task)).await {
                Ok(ended) => {
                    assert_eq!(
                        ended["task"]["status"]["state"], "TASK_STATE_COMPLETED",
                        "{ended}"
                    );
                    break;
                }
                // Nobody owns it, or nobody knows what became of the call; the same message is heard once.
                Err(refused) => {
                    let reason = &*refused.reasons[0];
                    assert!(
                        ["UNAVAILABLE", "INTERNAL_ERROR"].contains(&reason),
                        "{refused:?}"
                    );
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            }
        }
    }
    for (moved, stays) in moved.into_iter().zip(stays) {
        let (moved, stays) = (moved.all().await, stays.all().await);
        assert_eq!(words(&moved), BEHIND, "{moved:?}");
        assert_eq!(words(&stays)[1..], BEHIND, "{stays:?}");
        assert_eq!(stays[1..], moved[..]);
    }
    one.stop().await;
}

//! A flow that is given to somebody else while everything is under way: open streams and sockets of both, reads, and a
//! rebuild of the read models (AU-5). Behind its position nothing of it reaches the owner before. So too for flows that
//! have ended, however that was.

use super::world::{Callers, Nodes, World};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Flows that are given away, each beside a rebuild.
const FLOWS: usize = 3;
/// Tasks below the root before and behind the change.
const TASKS: u64 = 20;
/// Tasks of other flows, which a rebuild has to read.
const OTHERS: usize = 2_000;
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What somebody is told, as it comes.
struct Told {
    name: &'static str,
    notices: mpsc::UnboundedReceiver<Value>,
    reading: JoinHandle<()>,
}

impl Told {
    /// By server-sent events of all flows.
    async fn by_events(world: &Callers, token: &str, name: &'static str) -> Self {
        let request = world.client.get(format!("{}/events", world.url()));
        let request = world.as_caller(request, Some(token));
        let mut response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let (sender, notices) = mpsc::unbounded_channel();
        let reading = tokio::spawn(async move {
            let mut read = String::new();
            while let Ok(Some(piece)) = response.chunk().await {
                read.push_str(std::str::from_utf8(&piece).unwrap());
                while let Some((event, rest)) = read.split_once("\n\n") {
                    let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                    if let Some(data) = data {
                        let _ = sender.send(serde_json::from_str(data).unwrap());
                    }
                    read = rest.to_owned();
                }
            }
        });
        Self {
            name,
            notices,
            reading,
        }
    }

    /// On a socket: of one flow, or of all.
    async fn on_a_socket(world: &Callers, token: &str, name: &'static str, of: Value) -> Self {
        let mut socket = connected(world, token).await;
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "subscribe", "params": of});
        let call = Message::text(call.to_string());
        socket.send(call).await.unwrap();
        let (sender, notices) = mpsc::unbounded_channel();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let reading = tokio::spawn(async move {
            let mut begun = Some(begun);
            while let Some(Ok(message)) = socket.next().await {
                let Message::Text(text) = message else {
                    continue;
                };
                let mut told: Value = serde_json::from_str(&text).unwrap();
                if told["id"] == 1 {
                    assert!(told["result"].is_object(), "{told}");
                    let _ = begun.take().map(|begun| begun.send(()));
                }
                let data = told["params"]["data"].take();
                if !data.is_null() {
                    let _ = sender.send(data);
                }
            }
        });
        timeout(PATIENCE, has_begun).await.unwrap().unwrap();
        Self {
            name,
            notices,
            reading,
        }
    }

    /// The numbers within a flow of what was told of it, until something of this task is told.
    async fn of_flow_until(&mut self, flow: &Value, last: &Value) -> Vec<u64> {
        let mut numbers = Vec::new();
        loop {
            let told = timeout(PATIENCE, self.notices.recv()).await;
            let told = told.unwrap_or_else(|_| panic!("{}: {last} is not told", self.name));
            let told = told.expect("the stream goes on");
            if told["root_task_id"] == *flow {
                numbers.push(told["sequence"].as_u64().unwrap());
            }
            if told["task_id"] == *last {
                return numbers;
            }
        }
    }

    /// The same of what has come until now.
    fn of_flow_now(&mut self, flow: &Value) -> Vec<u64> {
        let mut numbers = Vec::new();
        while let Ok(told) = self.notices.try_recv() {
            if told["root_task_id"] == *flow {
                numbers.push(told["sequence"].as_u64().unwrap());
            }
        }
        numbers
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

async fn connected(world: &Callers, token: &str) -> WebSocketStream<MaybeTlsStream<TcpStream>> {
    let url = format!("{}/ws", world.url().replace("http://", "ws://"));
    let mut request = url.into_client_request().unwrap();
    let bearer = format!("Bearer {}", world.token(token)).parse().unwrap();
    request.headers_mut().insert("authorization", bearer);
    connect_async(request).await.unwrap().0
}

async fn given_task(world: &Callers, token: &str, params: Value) -> Value {
    world.call(token, "tasks.create", params).await["id"].take()
}

/// Waits until no node makes its read models anew.
async fn rebuilt(world: &Callers) {
    loop {
        let health = world.call("chief", "system.health", json!({})).await;
        if health["projections"]["rebuild"]["state"] != "running" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether a caller sees a task, by each of these reads.
async fn sees(world: &Callers, token: &str, task: &Value) -> Vec<bool> {
    let mut seen = Vec::new();
    for (method, params) in [
        ("tasks.get", json!({"task_id": task})),
        ("tasks.tree", json!({"task_id": task})),
        ("tasks.list", json!({"parent_id": task, "limit": 1})),
        ("tasks.history", json!({"task_id": task})),
        ("events.query", json!({"flow": task, "limit": 1})),
    ] {
        let (_, text) = world.ask(Some(token), method, &params).await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        seen.push(match answer["result"]["tasks"].as_array() {
            Some(tasks) => !tasks.is_empty(),
            None => answer["error"].is_null(),
        });
    }
    seen
}

async fn assert_nothing_reaches_the_owner_before(world: &Callers) {
    let others = (0..500).map(|n| json!({"id": format!("t{n}"), "name": "other"}));
    let mut others: Vec<Value> = others.collect();
    for task in others.iter_mut().skip(1) {
        task["parent_id"] = json!("t0");
    }
    for _ in 0..OTHERS / others.len() {
        let tasks = json!({"tasks": others});
        world.call("chief", "tasks.create", tasks).await;
    }
    for _ in 0..FLOWS {
        let flow = given_task(world, "ann", json!({"name": "flow"})).await;
        let of_flow = json!({"flow": flow});
        let mut hers = [
            Told::by_events(world, "ann", "ann's events").await,
            Told::on_a_socket(world, "ann", "ann's socket", json!({})).await,
        ];
        let mut of_it = Told::on_a_socket(world, "ann", "ann's socket of the flow", of_flow).await;
        let mut his = [
            Told::by_events(world, "bob", "bob's events").await,
            Told::on_a_socket(world, "bob", "bob's socket", json!({})).await,
        ];
        let below = json!({"name": "below", "parent_id": flow});
        for _ in 0..TASKS {
            given_task(world, "chief", below.clone()).await;
        }
        world.call("chief", "system.rebuild", json!({})).await;
        let to_bob = json!({"task_id": flow, "updates": {"user_id": "bob"}});
        world.call("chief", "tasks.update", to_bob).await;
        // While the rebuild goes on, and others change the flow.
        let mut last = Value::Null;
        for _ in 0..TASKS {
            last = given_task(world, "chief", below.clone()).await;
            assert_eq!(sees(world, "ann", &flow).await, [false; 5]);
            assert_eq!(sees(world, "bob", &flow).await, [true; 5]);
        }
        rebuilt(world).await;
        assert_eq!(sees(world, "ann", &flow).await, [false; 5]);
        assert_eq!(sees(world, "bob", &flow).await, [true; 5]);

        let history = json!({"task_id": flow, "limit": 1000});
        let history = world.call("bob", "tasks.history", history).await;
        let mut events = history["events"].as_array().unwrap().iter();
        let change = events.find(|event| event["data"]["user_id"] == "bob");
        let change = change.expect("the change is told")["sequence"]
            .as_u64()
            .unwrap();
        let own = given_task(world, "ann", json!({"name": "own"})).await;
        for told in &mut hers {
            let numbers = told.of_flow_until(&flow, &own).await;
            let is_before = numbers.iter().all(|number| *number < change);
            assert!(is_before, "{}: {numbers:?}, {change}", told.name);
            assert!(numbers.len() as u64 >= TASKS, "{}: {numbers:?}", told.name);
        }
        for told in &mut his {
            let numbers = told.of_flow_until(&flow, &last).await;
            let is_behind = numbers.iter().all(|number| *number >= change);
            assert!(is_behind, "{}: {numbers:?}, {change}", told.name);
            assert!(numbers.len() as u64 >= TASKS, "{}: {numbers:?}", told.name);
        }
        // Others have been told all of it by now.
        let numbers = of_it.of_flow_now(&flow);
        let is_before = numbers.iter().all(|number| *number < change);
        assert!(is_before, "{}: {numbers:?}, {change}", of_it.name);
    }
}

/// A flow of Ann's with a remote task alone, or below a group, that is in progress: its root and its lease.
async fn under_way(world: &Callers, method: &str, group: bool) -> (Value, Value) {
    let remote = json!({"type": "remote", "method": method});
    let tasks = match group {
        true => {
            json!([{"id": "r", "name": "r"}, {"name": "t", "parent_id": "r", "schemas": remote}])
        }
        false => json!([{"id": "r", "name": "r", "schemas": remote}]),
    };
    let tasks = json!({"tasks": tasks});
    let mut started = world.call("ann", "tasks.execute", tasks).await;
    let poll = json!({"methods": [method], "wait_seconds": 20});
    let mut claimed = world.call("ann", "tasks.claim", poll).await;
    (started["root_task_id"].take(), claimed["claims"][0].take())
}

/// How many flows each of these callers is told of.
async fn totals(world: &Callers) -> [u64; 2] {
    let mut totals = [0; 2];
    for (total, who) in totals.iter_mut().zip(["ann", "bob"]) {
        let roots = json!({"root_only": true, "limit": 1});
        let listed = world.call(who, "tasks.list", roots).await;
        *total = listed["total"].as_u64().unwrap();
    }
    totals
}

async fn assert_flows_that_have_ended_are_given_away(world: &Callers) -> Vec<String> {
    let mut given = Vec::new();
    for (status, group) in [
        ("completed", false),
        ("completed", true),
        ("failed", false),
        ("failed", true),
        ("cancelled", false),
        ("cancelled", true),
    ] {
        let (root, claim) = under_way(world, &format!("{status}-{group}"), group).await;
        let to_bob = json!({"task_id": root, "updates": {"user_id": "bob"}});
        // An attempt works for the owner that it began for.
        let refused = world.refusal("chief", "tasks.update", to_bob.clone()).await;
        assert_eq!(refused["code"], -32008, "{refused}");
        let fault = &refused["data"]["errors"][0];
        assert!(
            fault["expected"].as_str().unwrap().contains("cancel"),
            "{fault}"
        );
        let of = json!({"task_id": claim["task"]["id"], "lease": claim["lease"]["token"]});
        let mut end = of.clone();
        match status {
            "completed" => {
                end["output"] = json!({});
                world.call("ann", "tasks.complete", end).await;
            }
            "failed" => {
                end["error"] = json!("no");
                world.call("ann", "tasks.fail", end).await;
            }
            _ => {
                let all = json!({"task_id": root, "cascade": true});
                world.call("ann", "tasks.cancel", all).await;
                // The worker learns of it, and gives up.
                end["error"] = json!("cancelled");
                let _ = world.ask(Some("ann"), "tasks.fail", &end).await;
            }
        }
        let ended = world
            .call("ann", "tasks.get", json!({"task_id": root}))
            .await;
        assert_eq!(ended["status"], status, "{ended}");
        let [hers, his] = totals(world).await;
        let mut stream = Told::by_events(world, "bob", "bob's events").await;
        // Its owner may not, and not to nobody either.
        let forbidden = world.refusal("ann", "tasks.update", to_bob.clone()).await;
        assert_eq!(forbidden["data"]["scope"], "users:any", "{forbidden}");
        world.call("chief", "tasks.update", to_bob.clone()).await;
        assert_eq!(sees(world, "ann", &root).await, [false; 5], "{status}");
        // What is below it is found where there is something.
        let all = [true, true, group, true, true];
        assert_eq!(sees(world, "bob", &root).await, all, "{status}");
        assert_eq!(totals(world).await, [hers - 1, his + 1], "{status}");
        // Said again, it changes nothing.
        world.call("chief", "tasks.update", to_bob).await;
        let now = world
            .call("bob", "tasks.get", json!({"task_id": root}))
            .await;
        assert_eq!(
            (&now["status"], &now["user_id"]),
            (&json!(status), &json!("bob"))
        );
        let below = json!({"name": "his", "parent_id": root});
        let below = given_task(world, "bob", below).await;
        let deleted = json!({"task_id": below});
        world.call("bob", "tasks.delete", deleted).await;
        let own = given_task(world, "bob", json!({"name": "own"})).await;
        let numbers = stream.of_flow_until(&root, &own).await;
        assert!(!numbers.is_empty(), "{status}: he is told of what follows");
        given.push((root.as_str().unwrap().to_owned(), all));
    }
    let before = totals(world).await;
    world.call("chief", "system.rebuild", json!({})).await;
    rebuilt(world).await;
    assert_eq!(totals(world).await, before);
    for (root, all) in &given {
        let root = json!(root);
        assert_eq!(sees(world, "ann", &root).await, [false; 5]);
        assert_eq!(sees(world, "bob", &root).await, *all);
    }
    given.into_iter().map(|(root, _)| root).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flows_that_have_ended_are_given_away_and_archived_as_their_new_owners() {
    let world = World::start().await;
    let given = assert_flows_that_have_ended_are_given_away(&world).await;
    let finished = &given[0];
    world.archive(&[finished]).await;
    for who in ["ann", "bob"] {
        let get = json!({"task_id": finished});
        assert_eq!(world.refusal(who, "tasks.get", get).await["code"], -32001);
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flows_that_have_ended_are_given_away_through_any_node_on_postgres() {
    let nodes = Nodes::start().await;
    let _ = assert_flows_that_have_ended_are_given_away(&nodes).await;
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_flow_reaches_the_owner_before_while_streams_are_open_and_tables_are_rebuilt()
{
    let world = World::start().await;
    assert_nothing_reaches_the_owner_before(&world).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_flow_reaches_the_owner_before_through_any_node_on_postgres() {
    let nodes = Nodes::start().await;
    assert_nothing_reaches_the_owner_before(&nodes).await;
    nodes.close().await;
}

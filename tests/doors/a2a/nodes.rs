//! Two nodes on one database: a task is read, followed, answered, cancelled and reported through either.

use super::binding::all;
use super::wire::{JSON, VERSION, call};
use super::{endless, message, question, runs};
use crate::webhooks::site::arguments;
use serde_json::{Value, json};
use taskledger_a2a::Operation::{
    CancelTask, CreateTaskPushNotificationConfig, GetTask, ListTaskPushNotificationConfigs,
    SendMessage,
};
use taskledger_testkit::cluster::Cluster;
use taskledger_testkit::receiver::Receiver;
use taskledger_testkit::server::{Folder, Server};
use tokio::task::JoinHandle;

/// Tasks, of which about half belong to the node that is not asked.
const TASKS: usize = 4;

fn at(node: &Server, path: &str) -> String {
    format!("{}{path}", node.api.url.trim_end_matches('/'))
}

/// A stream of a task that has begun, and its words once it has ended.
async fn followed(node: &Server, id: &Value) -> JoinHandle<Vec<String>> {
    let body = call("SubscribeToTask", &json!({"id": id}));
    let http = taskledger::tls::client().build().unwrap();
    let request = http.post(at(node, "/a2a")).header(JSON.0, JSON.1);
    let request = request.header(VERSION.0, VERSION.1).body(body);
    let mut answer = request.send().await.unwrap();
    // Its first words say how the task stands, so what happens from now on is told.
    let mut text = answer.chunk().await.unwrap().unwrap().to_vec();
    tokio::spawn(async move {
        text.extend(answer.bytes().await.unwrap());
        let text = String::from_utf8(text).unwrap();
        let lines = text.lines().filter_map(|it| it.strip_prefix("data: "));
        let items = lines.map(|it| serde_json::from_str::<Value>(it).unwrap());
        let word = |item: Value| {
            let result = &item["result"];
            let status = result["statusUpdate"]["status"]["state"].as_str();
            let status = status.or(result["task"]["status"]["state"].as_str());
            let made = result["artifactUpdate"]["artifact"]["artifactId"].as_str();
            status.or(made).unwrap_or("?").to_owned()
        };
        items.map(word).collect()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_everybodys_on_two_nodes() {
    let folder = Folder::with_database().await;
    let arguments = arguments(&folder);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let cluster = Cluster::start(folder, 2, &arguments).await;
    let [one, other] = &cluster.nodes[..] else {
        panic!("two nodes")
    };
    let mut here = all(&one.api.url).await;
    let mut there = all(&other.api.url).await;
    let (here, there) = (&mut *here[0], &mut *there[0]);
    for n in 0..TASKS {
        let asked = here
            .ask(SendMessage, runs(json!([question()])))
            .await
            .unwrap();
        let id = asked["task"]["id"].clone();
        let streams = [followed(one, &id).await, followed(other, &id).await];
        let read = there.ask(GetTask, json!({"id": id})).await.unwrap();
        assert_eq!(
            read["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
            "{read}"
        );
        let receiver = Receiver::start().await;
        let config = json!({"taskId": id, "id": "a", "url": receiver.url("/")});
        there
            .ask(CreateTaskPushNotificationConfig, config)
            .await
            .unwrap();
        let listed = json!({"taskId": id});
        let listed = here
            .ask(ListTaskPushNotificationConfigs, listed)
            .await
            .unwrap();
        assert_eq!(listed["configs"].as_array().unwrap().len(), 1);
        let mut answer = message(json!([{"text": "red"}]));
        answer["message"]["messageId"] = json!(format!("answer-{n}"));
        answer["message"]["taskId"] = id.clone();
        let ended = there.ask(SendMessage, answer).await.unwrap();
        assert_eq!(
            ended["task"]["status"]["state"], "TASK_STATE_COMPLETED",
            "{ended}"
        );
        let behind = ["TASK_STATE_WORKING", "result", "TASK_STATE_COMPLETED"];
        for stream in streams {
            let words = stream.await.unwrap();
            assert_eq!(words[0], "TASK_STATE_INPUT_REQUIRED", "{words:?}");
            assert_eq!(words[1..], behind);
        }
        let told = receiver.wait_for(behind.len()).await;
        let last: Value = serde_json::from_slice(&told[behind.len() - 1].body).unwrap();
        assert_eq!(
            last["statusUpdate"]["status"]["state"],
            "TASK_STATE_COMPLETED"
        );

        let mut endless = runs(json!([endless()]));
        endless["configuration"] = json!({"returnImmediately": true});
        let begun = here.ask(SendMessage, endless).await.unwrap();
        let id = json!({"id": begun["task"]["id"]});
        let gone = there.ask(CancelTask, id.clone()).await.unwrap();
        assert_eq!(gone["status"]["state"], "TASK_STATE_CANCELED", "{gone}");
        let refused = here.ask(CancelTask, id).await.unwrap_err();
        assert_eq!(refused.reasons[0], "TASK_NOT_CANCELABLE");
    }
    for node in cluster.nodes {
        node.stop().await;
    }
}

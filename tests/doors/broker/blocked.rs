//! Tasks that depend on others which do not complete: their requesters are told at once.

use super::{Bus, Peer, next, nothing, one, task};
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use serde_json::json;
use taskledger_eventbus::{TaskMessage, TaskResult, TaskStatus};
use taskledger_testkit::cluster::Cluster;
use tonic::{Code, Streaming};

fn text(text: &str) -> Kind {
    Kind::StringValue(text.to_owned())
}

/// A task below another one that depends on these.
fn below(parent: &str, id: &str, dependencies: &[&str]) -> TaskMessage {
    let values = dependencies.iter().map(|id| Value {
        kind: Some(text(id)),
    });
    let list = Kind::ListValue(ListValue {
        values: values.collect(),
    });
    let mut metadata: Struct = one("parent_id", text(parent));
    if !dependencies.is_empty() {
        metadata.fields.extend(one("dependencies", list).fields);
    }
    TaskMessage {
        metadata: Some(metadata),
        ..task(id, "x")
    }
}

async fn told(results: &mut Streaming<TaskResult>, id: &str) -> (TaskStatus, String) {
    let told = next(results).await;
    assert_eq!(told.task_id, id, "{told:?}");
    (told.status(), told.error_message)
}

fn failed(by: &str) -> (TaskStatus, String) {
    let reason = format!("DEPENDENCY_FAILED: `{by}` failed, so this task cannot run");
    (TaskStatus::Failed, reason)
}

/// A group whose run goes on, because nobody takes one of its tasks.
async fn group(bus: &Bus) -> String {
    let group = json!({"tasks": [{"id": "group", "name": "group"}, {"name": "first", "parent_id": "group",
        "schemas": {"type": "remote", "method": "nobody's"}}]});
    let started = bus.server.api.call("tasks.execute", group).await;
    started["root_task_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_waits_for_a_task_that_failed_is_told_so_while_the_run_goes_on() {
    let bus = Bus::start().await;
    let group = group(&bus).await;
    let mut stream = bus.subscribe("a", &["x"]).await;
    let mut results = bus.results("requester", &[]).await;
    for (id, dependencies) in [
        ("one", &[][..]),
        ("two", &["one"]),
        ("three", &["two"]),
        ("other", &[]),
        ("behind it", &["other"]),
    ] {
        bus.publish(below(&group, id, dependencies)).await.unwrap();
    }
    assert_eq!(next(&mut stream).await.task_id, "one");
    assert_eq!(next(&mut stream).await.task_id, "other");
    bus.end("a", "one", TaskStatus::Failed, None, "no")
        .await
        .unwrap();
    let no = (TaskStatus::Failed, "no".to_owned());
    assert_eq!(told(&mut results, "one").await, no);
    // Both have failed at once, and ids have no order.
    let mut both = [next(&mut results).await, next(&mut results).await];
    both.sort_by(|a, b| b.task_id.cmp(&a.task_id));
    for (result, id) in both.into_iter().zip(["two", "three"]) {
        let told = (result.status(), result.error_message.clone());
        assert_eq!((&*result.task_id, told), (id, failed("one")));
    }
    // What waits for others is not.
    nothing(&mut results).await;
    // One that is published when it is known already, and the same again.
    for _ in 0..2 {
        bus.publish(below(&group, "late", &["two"])).await.unwrap();
    }
    assert_eq!(told(&mut results, "late").await, failed("one"));
    bus.end("a", "other", TaskStatus::Cancelled, None, "off")
        .await
        .unwrap();
    let off = (TaskStatus::Cancelled, "off".to_owned());
    assert_eq!(told(&mut results, "other").await, off);
    let reason = "DEPENDENCY_CANCELLED: `other` was cancelled, so this task cannot run";
    let cancelled = (TaskStatus::Cancelled, reason.to_owned());
    assert_eq!(told(&mut results, "behind it").await, cancelled);
    // What becomes of them without having run is nothing new.
    let cancel = json!({"task_id": group});
    bus.server.api.call("tasks.cancel", cancel).await;
    nothing(&mut results).await;
}

/// The task that agents call so.
async fn called(bus: &Bus, group: &str, id: &str) -> serde_json::Value {
    let list = json!({"parent_id": group});
    let mut list = bus.server.api.call("tasks.list", list).await;
    let mut tasks = list["tasks"].as_array_mut().unwrap().iter_mut();
    let found = tasks.find(|task| task["params"]["eventbus"]["task_id"] == id);
    found.expect("it was published").take()
}

#[tokio::test]
async fn a_task_that_ran_after_all_and_is_cancelled_between_attempts_is_told_again() {
    let bus = Bus::start().await;
    let api = &bus.server.api;
    let group = group(&bus).await;
    let mut stream = bus.subscribe("a", &["x"]).await;
    let mut results = bus.results("requester", &[]).await;
    bus.publish(below(&group, "one", &[])).await.unwrap();
    bus.publish(below(&group, "two", &["one"])).await.unwrap();
    let one = called(&bus, &group, "one").await;
    let mut two = called(&bus, &group, "two").await;
    two["params"]["retry"] = json!({"max_attempts": 2, "initial_delay_ms": 600_000});
    let update = json!({"task_id": two["id"], "updates": {"params": two["params"]}});
    api.call("tasks.update", update).await;
    assert_eq!(next(&mut stream).await.task_id, "one");
    let end = bus.end("a", "one", TaskStatus::Failed, None, "no");
    end.await.unwrap();
    assert_eq!(told(&mut results, "one").await.1, "no");
    assert_eq!(told(&mut results, "two").await, failed("one"));
    // Its run ends, and both run again.
    let list = json!({"parent_id": group, "name": "first"});
    let list = api.call("tasks.list", list).await;
    let first = json!({"task_id": list["tasks"][0]["id"]});
    api.call("tasks.cancel", first).await;
    api.run_of(&json!(group)).await;
    nothing(&mut results).await;
    api.call("tasks.retry", json!({"task_id": one["id"]})).await;
    assert_eq!(next(&mut stream).await.task_id, "one");
    bus.complete("a", "one").await.unwrap();
    assert_eq!(told(&mut results, "one").await.0, TaskStatus::Completed);
    assert_eq!(next(&mut stream).await.task_id, "two");
    let end = bus.end("a", "two", TaskStatus::Failed, None, "not yet");
    end.await.unwrap();
    nothing(&mut results).await;
    api.call("tasks.cancel", json!({"task_id": two["id"]}))
        .await;
    assert_eq!(told(&mut results, "two").await.0, TaskStatus::Cancelled);
    nothing(&mut results).await;
}

#[tokio::test]
async fn what_was_told_is_told_again_after_a_kill_until_it_is_delivered() {
    let bus = Bus::start().await;
    let group = group(&bus).await;
    let mut stream = bus.subscribe("a", &["x"]).await;
    bus.publish(below(&group, "one", &[])).await.unwrap();
    bus.publish(below(&group, "two", &["one"])).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "one");
    bus.end("a", "one", TaskStatus::Failed, None, "no")
        .await
        .unwrap();
    let bus = bus.killed().await;
    for ids in [&[][..], &["two"]] {
        let mut results = bus.results("requester", ids).await;
        if ids.is_empty() {
            assert_eq!(told(&mut results, "one").await.1, "no");
        }
        assert_eq!(told(&mut results, "two").await, failed("one"));
        nothing(&mut results).await;
    }
}

#[tokio::test]
async fn what_waits_for_a_cancelled_task_of_a_run_that_is_over_is_told_when_it_is_published() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("a", &["x"]).await;
    let mut results = bus.results("requester", &[]).await;
    bus.publish(task("root", "x")).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "root");
    bus.complete("a", "root").await.unwrap();
    assert_eq!(told(&mut results, "root").await.0, TaskStatus::Completed);
    bus.publish(below("root", "one", &[])).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "one");
    // It has a run of its own, which is not ended by another one that would need it.
    let refused = bus
        .publish(below("root", "two", &["one"]))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    let text = "metadata.dependencies: ";
    assert!(refused.message().starts_with(text), "{refused}");
    bus.end("a", "one", TaskStatus::Cancelled, None, "off")
        .await
        .unwrap();
    assert_eq!(told(&mut results, "one").await.0, TaskStatus::Cancelled);
    bus.publish(below("root", "two", &["one"])).await.unwrap();
    let told = told(&mut results, "two").await;
    let reason = "DEPENDENCY_CANCELLED: `one` was cancelled, so this task cannot run";
    assert_eq!(told, (TaskStatus::Cancelled, reason.to_owned()));
}

#[tokio::test]
async fn a_task_that_its_run_leaves_out_is_told_so() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("a", &["x"]).await;
    let mut results = bus.results("requester", &[]).await;
    bus.publish(task("root", "x")).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "root");
    // Nobody runs this one.
    let root = bus.server.api.call("tasks.list", json!({})).await["tasks"][0]["id"].clone();
    let create = json!({"name": "left", "parent_id": root, "schemas": {"method": "x"}});
    bus.complete("a", "root").await.unwrap();
    assert_eq!(told(&mut results, "root").await.0, TaskStatus::Completed);
    let left = bus.server.api.call("tasks.create", create).await;
    let left = left["id"].as_str().unwrap();
    bus.publish(below("root", "one", &[])).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "one");
    bus.publish(below("one", "two", &[left])).await.unwrap();
    bus.complete("a", "one").await.unwrap();
    assert_eq!(told(&mut results, "one").await.0, TaskStatus::Completed);
    let reason = format!(
        "DEPENDENCY_FAILED: the run ended before `{left}` had completed, so this task cannot run"
    );
    assert_eq!(
        told(&mut results, "two").await,
        (TaskStatus::Failed, reason)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requesters_at_every_node_are_told_once_on_postgres() {
    let cluster = Cluster::of(3).await;
    let mut peers = Vec::new();
    for node in &cluster.nodes {
        peers.push(Peer::of(node).await);
    }
    let mut stream = peers[0].subscribe("a", &["x"]).await;
    let mut results = peers[1].results("requester", &[]).await;
    for n in 0..6 {
        let names = ["root", "one", "two"].map(|name| format!("{name} {n}"));
        let [root, one, two] = names.each_ref().map(String::as_str);
        peers[2].publish(task(root, "x")).await.unwrap();
        assert_eq!(next(&mut stream).await.task_id, root);
        peers[1].publish(below(root, one, &[])).await.unwrap();
        assert_eq!(next(&mut stream).await.task_id, one);
        peers[0].publish(below(root, two, &[one])).await.unwrap();
        let end = peers[0].end("a", one, TaskStatus::Failed, None, "no");
        end.await.unwrap();
        assert_eq!(told(&mut results, one).await.1, "no");
        assert_eq!(told(&mut results, two).await, failed(one));
        peers[0].complete("a", root).await.unwrap();
        assert_eq!(told(&mut results, root).await.0, TaskStatus::Completed);
    }
    nothing(&mut results).await;
    for node in cluster.nodes {
        node.stop().await;
    }
}

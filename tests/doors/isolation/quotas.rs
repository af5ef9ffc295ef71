//! Quotas of users, through the doors.

use super::inboxes::{KIND, NOW, client, with};
use super::world::World;
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::time::Duration;
use taskledger::application::limits::QuotaOptions;
use taskledger::clock::{Clock, SystemClock};
use taskledger_eventbus::{PublishTaskRequest, SubscribeToTasksRequest, TaskMessage};
use tokio::time::timeout;

/// Longer than a task takes to its agent on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn quotas() -> QuotaOptions {
    QuotaOptions {
        open_flows: NonZeroU32::new(2),
        webhooks: NonZeroU32::new(2),
        streams: NonZeroU32::new(1),
        callbacks: NonZeroU32::new(1),
        waiting_claims: NonZeroU32::new(2),
        ..QuotaOptions::default()
    }
}

/// Code, quota, limit and what is used; one more was asked for.
fn told(refusal: &Value) -> (i64, &str, u64, u64) {
    let data = &refusal["data"];
    assert_eq!(data["requested"], 1, "{refusal}");
    let expected = data["expected"].as_str().unwrap();
    assert!(expected.contains("asks for 1 more; what ends or is deleted makes room"));
    (
        refusal["code"].as_i64().unwrap(),
        data["quota"].as_str().unwrap(),
        data["limit"].as_u64().unwrap(),
        data["used"].as_u64().unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_has_enough_is_told_of_what_and_others_are_not_limited_by_it() {
    let world = World::with(quotas()).await;
    let hook = || json!({"url": "https://receiver.example.com/hook"});
    let task = || json!({"name": "a"});
    for (method, params, quota) in [
        ("webhooks.create", &hook as &dyn Fn() -> Value, "webhooks"),
        ("tasks.create", &task, "open_flows"),
    ] {
        for _ in 0..2 {
            world.call("ann", method, params()).await;
            world.call("bob", method, params()).await;
        }
        let refusal = world.refusal("ann", method, params()).await;
        assert_eq!(told(&refusal), (-32015, quota, 2, 2));
        for _ in 0..3 {
            world.call("chief", method, params()).await;
        }
    }
    let hooks = world.call("ann", "webhooks.list", json!({})).await;
    let first = json!({"id": hooks["webhooks"][0]["id"]});
    world.call("ann", "webhooks.delete", first).await;
    world.call("ann", "webhooks.create", hook()).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_with_as_many_streams_as_allowed_is_answered_429_until_one_ends() {
    let world = World::with(quotas()).await;
    let events = async |token| {
        let request = world.client.get(format!("{}/events", world.url()));
        world.as_caller(request, Some(token)).send().await.unwrap()
    };
    let first = events("ann").await;
    assert_eq!(first.status(), 200);
    let second = events("ann").await;
    assert_eq!(second.status(), 429);
    assert!(second.headers().contains_key("retry-after"));
    let refused: Value = second.json().await.unwrap();
    assert_eq!(told(&refused["error"]), (-32015, "streams", 1, 1));
    let other = events("bob").await;
    assert_eq!(other.status(), 200);
    drop(first);
    while events("ann").await.status() != 200 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    drop(other);
    world.close().await;
}

/// A run with a callback, whose task nobody does, so that it goes on.
async fn run(world: &World, who: &str, key: &str) -> Value {
    let body = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tasks.execute",
        "params": {"tasks": [{"name": "a", "schemas": {"type": "remote", "method": "nobody"}}]},
        "configuration": {"push_notification_config": {"url": "https://receiver.example.com/hook"}},
        "metadata": {"idempotency_key": key},
    });
    let request = world.client.post(world.url()).json(&body);
    let (_, text) = world.send(world.as_caller(request, Some(who))).await;
    serde_json::from_str(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_has_so_many_callbacks_of_runs_that_go_on() {
    let world = World::with(quotas()).await;
    let first = run(&world, "ann", "one").await;
    let refusal = run(&world, "ann", "two").await;
    assert_eq!(told(&refusal["error"]), (-32015, "callbacks", 1, 1));
    let again = run(&world, "ann", "one").await;
    assert_eq!(again, first, "a repetition adds nothing");
    assert!(run(&world, "bob", "one").await["result"].is_object());
    let task = json!({"task_id": first["result"]["root_task_id"]});
    world.call("ann", "tasks.cancel", task).await;
    // When the end of the run is noted there is room again.
    while run(&world, "ann", "three").await["result"].is_null() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_has_so_many_claims_that_wait() {
    let world = World::with(quotas()).await;
    let claim = |wait: u32| json!({"methods": ["nothing"], "wait_seconds": wait});
    let others = futures_util::future::join_all(
        ["ann", "ann", "bob", "chief", "chief", "chief"].map(async |who| {
            loop {
                let claim = claim(50);
                let (_, text) = world.ask(Some(who), "tasks.claim", &claim).await;
                // The call that is to be refused may have come first.
                if !text.contains("-32015") {
                    return text;
                }
            }
        }),
    );
    let refused = async {
        loop {
            let (_, text) = world.ask(Some("ann"), "tasks.claim", &claim(1)).await;
            let answer: Value = serde_json::from_str(&text).unwrap();
            if answer["error"].is_object() {
                return answer;
            }
        }
    };
    // Whoever goes away gives the places back.
    let refused = tokio::select! {
        refused = refused => refused,
        answers = others => panic!("{answers:?}"),
    };
    assert_eq!(told(&refused["error"]), (-32015, "waiting_claims", 2, 2));
    // Who does not wait needs no place.
    let now = world.call("ann", "tasks.claim", claim(0)).await;
    assert_eq!(now["claims"], json!([]));
    while world
        .ask(Some("ann"), "tasks.claim", &claim(1))
        .await
        .1
        .contains("-32015")
    {}
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_the_broker_that_may_not_wait_gets_tasks_all_the_same() {
    let world = World::with(quotas()).await;
    let claim = |wait: u32| json!({"methods": ["nothing"], "wait_seconds": wait});
    let long = claim(50);
    let wait = futures_util::future::join_all(["ann", "ann"].map(async |who| {
        loop {
            let (_, text) = world.ask(Some(who), "tasks.claim", &long).await;
            // The call that is to be refused may have come first.
            if !text.contains("-32015") {
                return text;
            }
        }
    }));
    let works = async {
        let short = claim(1);
        let one_more = || world.ask(Some("ann"), "tasks.claim", &short);
        while !one_more().await.1.contains("waiting_claims") {}
        let mut client = client(&world).await;
        let subscribe = SubscribeToTasksRequest {
            agent_id: "ann".to_owned(),
            task_types: vec![KIND.to_owned()],
        };
        let subscribe = with(&world, Some("ann"), subscribe);
        let stream = client.subscribe_to_tasks(subscribe).await.unwrap();
        let task = TaskMessage {
            task_id: SystemClock::default().uuid().to_string(),
            task_type: KIND.to_owned(),
            requester_agent_id: "ann".to_owned(),
            created_at: Some(NOW),
            ..TaskMessage::default()
        };
        let publish = with(
            &world,
            Some("ann"),
            PublishTaskRequest {
                task: Some(task.clone()),
            },
        );
        client.publish_task(publish).await.unwrap();
        let told = timeout(PATIENCE, stream.into_inner().message()).await;
        let told = told.expect("a task").unwrap().unwrap();
        assert_eq!(told.task_id, task.task_id);
        assert!(one_more().await.1.contains("waiting_claims"));
    };
    tokio::select! {
        () = works => {}
        answers = wait => panic!("{answers:?}"),
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_told_which_quota_is_used_up() {
    let world = World::with(quotas()).await;
    for _ in 0..2 {
        world
            .call("ann", "tasks.create", json!({"name": "a"}))
            .await;
    }
    let task = json!({"name": "a", "schemas": {"method": "echo_executor"}});
    let message =
        json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"tasks": [task]}}]});
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}});
    let request = world.client.post(format!("{}/a2a", world.url()));
    let request = request.header("a2a-version", "1.0").json(&call);
    let (_, text) = world.send(world.as_caller(request, Some("ann"))).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    let detail = &answer["error"]["data"][0];
    assert_eq!(detail["reason"], "RESOURCE_EXHAUSTED", "{text}");
    let told = json!({"quota": "open_flows", "limit": "2", "used": "2", "requested": "1"});
    assert_eq!(detail["metadata"], told, "{text}");
    world.close().await;
}

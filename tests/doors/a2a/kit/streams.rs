//! Streams: how they begin and end, and that all of a task tell the same.

use super::{agent, said, said_to, sent, state_of};
use crate::a2a::binding::{Binding, all};
use serde_json::{Value, json};
use taskledger_a2a::Operation::{
    self, CancelTask, GetTask, ListTasks, SendStreamingMessage, SubscribeToTask,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A stream that has begun, and what it will have told.
async fn followed(
    mut binding: Box<dyn Binding>,
    operation: Operation,
    request: Value,
) -> JoinHandle<Vec<Value>> {
    let (begun, has_begun) = oneshot::channel();
    let stream = tokio::spawn(async move {
        let items = binding.follow(operation, request, Some(begun)).await;
        items.unwrap_or_else(|refused| panic!("{}: {refused:?}", binding.name()))
    });
    has_begun.await.unwrap();
    stream
}

/// The same of a subscription over the binding of this number.
async fn followed_over(url: &str, i: usize, task: &Value) -> JoinHandle<Vec<Value>> {
    let binding = all(url).await.remove(i);
    followed(binding, SubscribeToTask, json!({"id": task["id"]})).await
}

/// Items without times, which bindings write with more or fewer digits.
fn timeless(items: &[Value]) -> Vec<Value> {
    let mut items = items.to_vec();
    for item in &mut items {
        for kind in ["task", "statusUpdate"] {
            let status = item.pointer_mut(&format!("/{kind}/status"));
            if let Some(status) = status.and_then(Value::as_object_mut) {
                status.remove("timestamp");
            }
        }
    }
    items
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_begins_with_the_task_and_ends_with_its_end() {
    let agent = agent().await;
    for mut binding in all(&agent.server.api.url).await {
        let binding = &mut *binding;
        for prefix in [
            "tck-stream-001",
            "tck-stream-003",
            "tck-stream-ordering-001",
        ] {
            let items = binding
                .stream(SendStreamingMessage, said(prefix, "Hello"))
                .await
                .unwrap();
            assert!(items[0].get("task").is_some(), "{items:?}");
            assert!(
                items[1..].iter().all(|it| it.get("task").is_none()),
                "{items:?}"
            );
            let states: Vec<_> = items.iter().filter_map(state_of).collect();
            assert_eq!(
                states.last(),
                Some(&"COMPLETED"),
                "{} {items:?}",
                binding.name()
            );
            // What it made comes before its end.
            let order = ["SUBMITTED", "WORKING", "COMPLETED"];
            let order: Vec<_> = states
                .iter()
                .map(|it| order.iter().position(|known| known == it))
                .collect();
            assert!(order.is_sorted(), "{states:?}");
        }
        let direct = said("tck-message-response", "Hello");
        let items = binding.stream(SendStreamingMessage, direct).await.unwrap();
        assert_eq!(items.len(), 1, "{items:?}");
        assert!(items[0].get("message").is_some(), "{items:?}");
        // A question ends it: its caller has the next word.
        let asks = said("tck-input-required", "Hello");
        let items = binding.stream(SendStreamingMessage, asks).await.unwrap();
        assert_eq!(
            items.last().and_then(state_of),
            Some("INPUT_REQUIRED"),
            "{items:?}"
        );
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_streams_of_a_task_tell_the_same_in_the_same_order() {
    let agent = agent().await;
    let mut sender = all(&agent.server.api.url).await.remove(0);
    let asked = sent(
        &mut *sender,
        said("tck-input-required", "Hello"),
        "INPUT_REQUIRED",
    )
    .await;
    let id = json!({"id": asked["id"]});
    let mut streams = Vec::new();
    // Two over each binding, and one that is closed.
    for _ in 0..2 {
        for binding in all(&agent.server.api.url).await {
            streams.push(followed(binding, SubscribeToTask, id.clone()).await);
        }
    }
    for binding in all(&agent.server.api.url).await {
        followed(binding, SubscribeToTask, id.clone()).await.abort();
    }
    // Over a question they stay open.
    let more = said_to(&asked["id"], "tck-input-required", "more");
    sent(&mut *sender, more, "INPUT_REQUIRED").await;
    let last = said_to(&asked["id"], "tck-complete-task", "last");
    sent(&mut *sender, last, "COMPLETED").await;
    let mut told = Vec::new();
    for stream in streams {
        told.push(timeless(&stream.await.unwrap()));
    }
    assert_eq!(told[0][0]["task"]["id"], asked["id"]);
    let states: Vec<_> = told[0].iter().filter_map(state_of).collect();
    let expected = [
        "INPUT_REQUIRED",
        "WORKING",
        "INPUT_REQUIRED",
        "WORKING",
        "COMPLETED",
    ];
    assert_eq!(states, expected, "{:?}", told[0]);
    for other in &told[1..] {
        assert_eq!(other, &told[0]);
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_ends_when_the_task_is_cancelled_or_fails() {
    let agent = agent().await;
    for (i, mut binding) in all(&agent.server.api.url).await.into_iter().enumerate() {
        let begin = async |binding: &mut dyn Binding| {
            sent(
                binding,
                said("tck-input-required", "Hello"),
                "INPUT_REQUIRED",
            )
            .await
        };
        let task = begin(&mut *binding).await;
        let stream = followed_over(&agent.server.api.url, i, &task).await;
        binding
            .ask(CancelTask, json!({"id": task["id"]}))
            .await
            .unwrap();
        let items = stream.await.unwrap();
        assert_eq!(
            items.last().and_then(state_of),
            Some("CANCELED"),
            "{items:?}"
        );
        let task = begin(&mut *binding).await;
        let stream = followed_over(&agent.server.api.url, i, &task).await;
        let more = said_to(&task["id"], "tck-task-failure", "more");
        sent(&mut *binding, more, "FAILED").await;
        let items = stream.await.unwrap();
        assert_eq!(items.last().and_then(state_of), Some("FAILED"), "{items:?}");
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_stays_open_while_the_task_waits_for_credentials() {
    let agent = agent().await;
    for (i, mut binding) in all(&agent.server.api.url).await.into_iter().enumerate() {
        let context = format!("credentials of {}", binding.name());
        let mut asks = said("tck-auth-required", "Hello");
        asks["message"]["contextId"] = json!(context);
        let other = all(&agent.server.api.url).await.remove(i);
        let stream = followed(other, SendStreamingMessage, asks).await;
        let waits = json!({"contextId": context, "status": "TASK_STATE_AUTH_REQUIRED"});
        let task = loop {
            let list = binding.ask(ListTasks, waits.clone()).await.unwrap();
            if let Some(task) = list["tasks"].get(0) {
                break task.clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        };
        let more = said_to(&task["id"], "tck-complete-task", "they are there");
        sent(&mut *binding, more, "COMPLETED").await;
        let items = stream.await.unwrap();
        let states: Vec<_> = items.iter().filter_map(state_of).collect();
        assert!(states.contains(&"AUTH_REQUIRED"), "{states:?}");
        assert_eq!(states.last(), Some(&"COMPLETED"), "{states:?}");
        let read = binding
            .ask(GetTask, json!({"id": task["id"]}))
            .await
            .unwrap();
        assert_eq!(read["status"]["state"], "TASK_STATE_COMPLETED");
    }
    agent.server.stop().await;
}

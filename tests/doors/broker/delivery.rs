//! What agents are given, and what they say of it.

use super::{Bus, NOW, next, nothing, one, task};
use prost_types::Timestamp;
use prost_types::value::Kind;
use serde_json::json;
use taskledger_eventbus::{Priority, TaskStatus};
use tonic::Code;

#[tokio::test]
async fn a_task_arrives_as_it_was_sent_and_all_doors_tell_one_story() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("agent", &["data.clean"]).await;
    let id = "6f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d11";
    let mut sent = task(id, "data.clean");
    sent.priority = Priority::Unspecified.into();
    sent.deadline = Some(Timestamp {
        seconds: 4_000_000_000,
        nanos: 987_654_321,
    });
    sent.metadata = Some(one("user_id", Kind::StringValue("ann".to_owned())));
    bus.publish(sent.clone()).await.unwrap();
    assert_eq!(next(&mut stream).await, sent);
    let api = &bus.server.api;
    let get = async || api.call("tasks.get", json!({"task_id": id})).await;
    let held = get().await;
    assert_eq!(
        (&held["status"], &held["user_id"], &held["inputs"]),
        (&json!("in_progress"), &json!("ann"), &json!({"page": 1}))
    );
    bus.progress("agent", id, 40).await.unwrap();
    assert_eq!(get().await["progress"], json!(0.4));
    bus.complete("agent", id).await.unwrap();
    let done = get().await;
    assert_eq!(
        (&done["status"], &done["result"]),
        (&json!("completed"), &json!({"n": 1}))
    );
    // The first end counts; the same again is heard once.
    bus.complete("agent", id).await.unwrap();
    let other = bus
        .end("agent", id, TaskStatus::Failed, None, "no")
        .await
        .unwrap_err();
    assert_eq!(other.code(), Code::FailedPrecondition, "{other}");
    let late = bus.progress("agent", id, 50).await.unwrap_err();
    assert_eq!(late.code(), Code::FailedPrecondition, "{late}");
    let history = api.call("tasks.history", json!({"task_id": id})).await;
    let types: Vec<_> = history["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types.iter().filter(|it| **it == "task_completed").count(),
        1,
        "{types:?}"
    );
}

#[tokio::test]
async fn failures_and_cancellations_end_tasks_with_their_reasons() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("a", &["x"]).await;
    for (id, status, reason, said) in [
        (
            "6f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d11",
            TaskStatus::Failed,
            "bad page",
            "bad page",
        ),
        (
            "7f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d11",
            TaskStatus::Failed,
            "",
            "the agent gave no reason",
        ),
        (
            "8f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d11",
            TaskStatus::Cancelled,
            "not needed",
            "not needed",
        ),
    ] {
        bus.publish(task(id, "x")).await.unwrap();
        assert_eq!(next(&mut stream).await.task_id, id);
        bus.end("a", id, status, None, reason).await.unwrap();
        bus.end("a", id, status, None, reason).await.unwrap();
        let found = bus
            .server
            .api
            .call("tasks.get", json!({"task_id": id}))
            .await;
        assert_eq!(found["error"], said, "{found}");
        let wanted = if status == TaskStatus::Failed {
            "failed"
        } else {
            "cancelled"
        };
        assert_eq!(found["status"], wanted);
    }
}

#[tokio::test]
async fn a_task_of_a_type_that_nobody_knew_wakes_who_asks_for_all_below_a_dot() {
    let bus = Bus::start().await;
    let mut below = bus.subscribe("below", &["y.*"]).await;
    let mut every = bus.subscribe("every", &[]).await;
    let began = tokio::time::Instant::now();
    for n in 0..8 {
        // Some types come again, when nothing of them is left.
        let task_type = format!("y.{}", n % 6);
        let id = format!("t{n}");
        bus.publish(task(&id, &task_type)).await.unwrap();
        let (agent, given) = tokio::select! {
            given = next(&mut below) => ("below", given),
            given = next(&mut every) => ("every", given),
        };
        assert_eq!(given.task_id, id);
        bus.complete(agent, &id).await.unwrap();
    }
    // Who looks each second takes half of one on average.
    let took = began.elapsed();
    assert!(took.as_secs() < 2, "{took:?}");
    bus.publish(task("other", "z")).await.unwrap();
    assert_eq!(next(&mut every).await.task_id, "other");
    nothing(&mut below).await;
}

#[tokio::test]
async fn types_are_exact_or_below_a_dot_and_addressed_tasks_go_to_their_agent() {
    let bus = Bus::start().await;
    let mut exact = bus.subscribe("exact", &["x"]).await;
    let mut below = bus.subscribe("below", &["y.*"]).await;
    let mut addressed = task("for-below", "x");
    addressed.responder_agent_id = "below".to_owned();
    bus.publish(addressed.clone()).await.unwrap();
    nothing(&mut exact).await;
    bus.publish(task("x", "x")).await.unwrap();
    assert_eq!(next(&mut exact).await.task_id, "x");
    bus.publish(task("y", "y.z")).await.unwrap();
    assert_eq!(next(&mut below).await.task_id, "y");
    bus.publish(task("yy", "yy")).await.unwrap();
    nothing(&mut below).await;
    let mut all = bus.subscribe("below", &[]).await;
    let mut given = [next(&mut all).await, next(&mut all).await];
    given.sort_by(|a, b| a.task_id.cmp(&b.task_id));
    assert_eq!(given[0], addressed);
    assert_eq!(given[1].task_id, "yy");
    bus.complete("below", "for-below").await.unwrap();
    bus.complete("below", "yy").await.unwrap();
}

#[tokio::test]
async fn urgent_tasks_go_first_and_a_window_bounds_what_an_agent_holds() {
    let bus = Bus::start().await;
    for (id, priority) in [
        ("low", Priority::Low),
        ("medium", Priority::Unspecified),
        ("critical", Priority::Critical),
        ("high", Priority::High),
    ] {
        let mut message = task(id, "x");
        message.priority = priority.into();
        bus.publish(message).await.unwrap();
    }
    let mut stream = bus.try_subscribe("a", &["x"], Some("1")).await.unwrap();
    for id in ["critical", "high", "medium", "low"] {
        assert_eq!(next(&mut stream).await.task_id, id);
        nothing(&mut stream).await;
        bus.complete("a", id).await.unwrap();
    }
    for window in ["0", "x", "100000"] {
        let refused = bus
            .try_subscribe("a", &["x"], Some(window))
            .await
            .unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
    }
}

#[tokio::test]
async fn what_a_stream_leaves_goes_to_another_one_of_its_agent_that_is_open_already() {
    let bus = Bus::start().await;
    let mut first = bus.subscribe("a", &["x"]).await;
    bus.publish(task("t", "x")).await.unwrap();
    let sent = next(&mut first).await;
    let mut back = bus.subscribe("a", &["x"]).await;
    nothing(&mut back).await;
    drop(first);
    assert_eq!(next(&mut back).await, sent, "the same attempt");
    bus.complete("a", "t").await.unwrap();
}

#[tokio::test]
async fn what_an_agent_leaves_goes_to_its_next_stream_or_to_others() {
    let bus = Bus::start().await;
    let mut first = bus.subscribe("a", &["x"]).await;
    bus.publish(task("t", "x")).await.unwrap();
    let sent = next(&mut first).await;
    drop(first);
    let mut back = bus.subscribe("a", &["x"]).await;
    let again = next(&mut back).await;
    assert_eq!(again, sent, "the same attempt");
    drop(back);
    let mut other = bus.subscribe("b", &["x"]).await;
    let mut moved = next(&mut other).await;
    let attempt = moved
        .metadata
        .take()
        .unwrap()
        .fields
        .remove("taskledger.attempt")
        .unwrap();
    assert_eq!(attempt.kind, Some(Kind::NumberValue(2.0)));
    assert_eq!(moved, sent);
    // It is not the first agent's any more.
    let refused = bus.progress("a", "t", 1).await.unwrap_err();
    assert!(
        [Code::FailedPrecondition, Code::NotFound].contains(&refused.code()),
        "{refused}"
    );
    bus.complete("b", "t").await.unwrap();
}

#[tokio::test]
async fn tasks_of_other_doors_are_done_by_agents_and_cancels_reach_them() {
    let bus = Bus::start().await;
    let api = &bus.server.api;
    let mut stream = bus.subscribe("a", &["x"]).await;
    let create = || json!({"tasks": [{"name": "n", "inputs": {"k": 1}, "schemas": {"type": "remote", "method": "x"}}]});
    let started = api.call("tasks.execute", create()).await;
    let id = started["root_task_id"].as_str().unwrap().to_owned();
    let given = next(&mut stream).await;
    assert_eq!(
        (
            given.task_id.as_str(),
            given.task_type.as_str(),
            given.requester_agent_id.as_str()
        ),
        (&*id, "x", "taskledger")
    );
    assert!(given.created_at.is_some_and(|at| at.seconds > NOW.seconds));
    bus.complete("a", &id).await.unwrap();
    let started = api.call("tasks.execute", create()).await;
    let id = started["root_task_id"].as_str().unwrap().to_owned();
    assert_eq!(next(&mut stream).await.task_id, id);
    api.call("tasks.cancel", json!({"task_id": id})).await;
    let refused = bus.progress("a", &id, 10).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    let refused = bus.complete("a", &id).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
}

#[tokio::test]
async fn a_result_without_a_stream_begins_and_ends_its_task() {
    let bus = Bus::start().await;
    let id = "6f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d11";
    bus.publish(task(id, "x")).await.unwrap();
    bus.progress("a", id, 10).await.unwrap();
    let refused = bus.complete("b", id).await.unwrap_err();
    assert_eq!(
        refused.code(),
        Code::FailedPrecondition,
        "another agent has it: {refused}"
    );
    bus.complete("a", id).await.unwrap();
    let mut addressed = task("7f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d11", "x");
    addressed.responder_agent_id = "b".to_owned();
    bus.publish(addressed.clone()).await.unwrap();
    let refused = bus.complete("a", &addressed.task_id).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    bus.complete("b", &addressed.task_id).await.unwrap();
}

#[tokio::test]
async fn subscriptions_to_tasks_that_make_no_sense_are_refused() {
    let bus = Bus::start().await;
    let many: Vec<String> = (0..65).map(|n| format!("t{n}")).collect();
    let many: Vec<&str> = many.iter().map(|it| &**it).collect();
    for (agent, types, text) in [
        ("", &[][..], "agent_id cannot be empty"),
        ("a\u{0}", &[], "agent_id: "),
        ("a", &[""], "task_types: "),
        ("a", &["x@b"], "task_types: `x@b`: "),
        (
            "a",
            &["x", "math*"],
            "task_types: `math*`: no type has a `*`; ",
        ),
        ("a", &["math.*.add"], "task_types: `math.*.add`: "),
        ("a", &many, "task_types: 65 types"),
    ] {
        let refused = bus.try_subscribe(agent, types, None).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().starts_with(text), "{refused}");
    }
}

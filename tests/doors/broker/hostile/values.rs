//! Values that are too deep, too long, too large, or unknown.

use super::serves;
use crate::broker::{Bus, NOW, next, one, task};
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use serde_json::json;
use taskledger_eventbus::{
    PublishTaskProgressRequest, PublishTaskResultRequest, TaskMessage, TaskProgress, TaskResult,
    TaskStatus,
};
use tonic::Code;

fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

/// What is wrong in a message.
type Fault = fn(&mut TaskMessage);
/// The same, with a text that is too long.
type LongText = fn(&mut TaskMessage, String);

/// So many objects in each other.
fn objects(depth: usize) -> Struct {
    let mut deep = one("k", Kind::BoolValue(true));
    for _ in 1..depth {
        deep = one("k", Kind::StructValue(deep));
    }
    deep
}

/// So many lists in each other, in an object.
fn lists(depth: usize) -> Struct {
    let mut deep = Kind::BoolValue(true);
    for _ in 0..depth {
        let values = vec![value(deep)];
        deep = Kind::ListValue(ListValue { values });
    }
    one("k", deep)
}

#[tokio::test]
async fn values_may_lie_as_deep_as_the_decoder_takes_them_and_no_deeper() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("a", &["x"]).await;
    for (n, deep) in [objects(32), lists(48)].into_iter().enumerate() {
        let mut message = task(&format!("deep{n}"), "x");
        message.parameters = Some(deep);
        bus.publish(message.clone()).await.unwrap();
        assert_eq!(next(&mut stream).await, message);
    }
    for deep in [objects(40), lists(60), objects(300), lists(500)] {
        let mut message = task("deeper", "x");
        message.parameters = Some(deep);
        let refused = bus.publish(message).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        let text = "parameters: values are nested too deeply";
        assert!(refused.message().starts_with(text), "{refused}");
        assert!(refused.message().len() < 200, "{refused}");
    }
    let list = bus.server.api.call("tasks.list", json!({})).await;
    assert_eq!(list["tasks"].as_array().unwrap().len(), 2);
    serves(&bus).await;
}

#[tokio::test]
async fn every_struct_of_every_message_is_checked() {
    let bus = Bus::start().await;
    let mut client = bus.client.clone();
    let id = "6f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d11";
    bus.publish(task(id, "x")).await.unwrap();
    let faults = [
        (Kind::NumberValue(f64::NAN), "NaN"),
        (Kind::NumberValue(f64::NEG_INFINITY), "NaN"),
        (Kind::NumberValue(9_007_199_254_740_994.0), "2^53"),
        (Kind::NumberValue(-1e300), "2^53"),
    ];
    for (kind, reason) in faults {
        let faulty = || Some(one("n", kind.clone()));
        let message = TaskMessage {
            metadata: faulty(),
            ..task("t", "x")
        };
        let result = TaskResult {
            task_id: id.to_owned(),
            status: TaskStatus::Completed.into(),
            executor_agent_id: "a".to_owned(),
            completed_at: Some(NOW),
            ..TaskResult::default()
        };
        let (returned, about) = (
            TaskResult {
                result: faulty(),
                ..result.clone()
            },
            TaskResult {
                execution_metadata: faulty(),
                ..result
            },
        );
        let progress = TaskProgress {
            task_id: id.to_owned(),
            status: TaskStatus::InProgress.into(),
            progress_percentage: 1,
            progress_data: faulty(),
            executor_agent_id: "a".to_owned(),
            updated_at: Some(NOW),
            ..TaskProgress::default()
        };
        let mut ended = async |result| {
            let request = PublishTaskResultRequest {
                result: Some(result),
            };
            client.publish_task_result(request).await.map(|_| ())
        };
        let (returned, about) = (ended(returned).await, ended(about).await);
        let request = PublishTaskProgressRequest {
            progress: Some(progress),
        };
        let going = client.publish_task_progress(request).await.map(|_| ());
        let published = bus.publish(message).await;
        for (place, answer) in [
            ("metadata.n", published),
            ("result.n", returned),
            ("execution_metadata.n", about),
            ("progress_data.n", going),
        ] {
            let refused = answer.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
            assert!(
                refused.message().starts_with(&format!("{place}: ")),
                "{refused}"
            );
            assert!(refused.message().contains(reason), "{refused}");
        }
    }
    // Nothing of it was recorded.
    let found = bus.server.api.call("tasks.get", json!({"task_id": id}));
    assert_eq!(found.await["status"], "pending");
}

#[tokio::test]
async fn long_texts_and_texts_with_nul_are_refused_or_shortened() {
    let bus = Bus::start().await;
    let long = "x".repeat(4_000_000);
    let faulty: [(&str, LongText); 5] = [
        ("task_id: 4000000 characters", |t, s| t.task_id = s),
        ("task_type: 4000000 characters", |t, s| t.task_type = s),
        ("requester_agent_id: 4000000", |t, s| {
            t.requester_agent_id = s
        }),
        ("responder_agent_id: 4000000", |t, s| {
            t.responder_agent_id = s
        }),
        ("metadata: ", |t, s| {
            t.metadata = Some(one("k", Kind::StringValue(s)));
        }),
    ];
    for (text, fault) in faulty {
        let mut message = task("t", "x");
        fault(&mut message, long.clone());
        let refused = bus.publish(message).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{text}: {refused}");
        let said: String = refused.message().chars().take(200).collect();
        assert!(said.starts_with(text), "{text}: {said}");
        assert!(refused.message().len() < 1000, "{text}");
    }
    let nul: [(&str, Fault); 3] = [
        ("task_type: ", |t| t.task_type = "x\0".to_owned()),
        ("requester_agent_id: ", |t| {
            t.requester_agent_id = "r\0".to_owned();
        }),
        ("responder_agent_id: ", |t| {
            t.responder_agent_id = "r\0".to_owned();
        }),
    ];
    for (field, fault) in nul {
        let mut message = task("t", "x");
        fault(&mut message);
        let refused = bus.publish(message).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().starts_with(field), "{refused}");
    }
    for refused in [
        bus.try_subscribe("a\0", &["x"], None).await.unwrap_err(),
        bus.try_subscribe("a", &["x\0"], None).await.unwrap_err(),
        bus.complete("a\0", "t").await.unwrap_err(),
        bus.complete("a", "t\0").await.unwrap_err(),
    ] {
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    }
    // Texts that may hold anything do, up to what is kept of them.
    let mut message = task("t", "x");
    message.parameters = Some(one("k\0", Kind::StringValue("v\0".to_owned())));
    let mut stream = bus.subscribe("a", &["x"]).await;
    bus.publish(message.clone()).await.unwrap();
    assert_eq!(next(&mut stream).await, message);
    let reason = format!("\0{long}");
    bus.end("a", "t", TaskStatus::Failed, None, &reason)
        .await
        .unwrap();
    let told = next(&mut bus.results("requester", &[]).await).await;
    assert!(reason.starts_with(&told.error_message), "cut");
    assert!((1000..100_000).contains(&told.error_message.len()));
    bus.end("a", "t", TaskStatus::Failed, None, &reason)
        .await
        .unwrap();
    serves(&bus).await;
}

#[tokio::test]
async fn numbers_that_no_enum_has_are_refused() {
    let bus = Bus::start().await;
    let mut client = bus.client.clone();
    for number in [-1, 6, 99, i32::MAX, i32::MIN] {
        let mut message = task("t", "x");
        message.priority = number;
        let published = bus.publish(message).await;
        let result = TaskResult {
            task_id: "t".to_owned(),
            status: number,
            executor_agent_id: "a".to_owned(),
            completed_at: Some(NOW),
            ..TaskResult::default()
        };
        let request = PublishTaskResultRequest {
            result: Some(result),
        };
        let ended = client.publish_task_result(request).await.map(|_| ());
        let progress = TaskProgress {
            task_id: "t".to_owned(),
            status: number,
            executor_agent_id: "a".to_owned(),
            updated_at: Some(NOW),
            ..TaskProgress::default()
        };
        let request = PublishTaskProgressRequest {
            progress: Some(progress),
        };
        let going = client.publish_task_progress(request).await.map(|_| ());
        for (field, answer) in [
            ("priority: ", published),
            ("status: ", ended),
            ("status: ", going),
        ] {
            let refused = answer.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
            assert!(refused.message().starts_with(field), "{refused}");
        }
    }
}

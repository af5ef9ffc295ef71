//! What requesters are told of tasks that run.

use super::{Bus, PATIENCE, next, nothing, task};
use prost_types::value::Kind;
use prost_types::{Struct, Timestamp, Value};
use taskledger_eventbus::{PublishTaskProgressRequest, TaskProgress, TaskStatus};
use tokio::time::timeout;
use tonic::Code;

#[tokio::test]
async fn progress_is_told_live_and_the_latest_of_what_runs_at_first() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("agent", &["x"]).await;
    let mut live = bus.going("requester", &[]).await;
    let mut named = bus.going("requester", &["other"]).await;
    let mut another = bus.going("another", &[]).await;
    for id in ["t", "other"] {
        bus.publish(task(id, "x")).await.unwrap();
        assert_eq!(next(&mut stream).await.task_id, id);
    }
    bus.progress("agent", "t", 40).await.unwrap();
    let told = next(&mut live).await;
    assert_eq!(
        (
            &*told.task_id,
            told.progress_percentage,
            &*told.progress_message,
            &*told.executor_agent_id,
            told.status()
        ),
        ("t", 40, "going", "agent", TaskStatus::InProgress)
    );
    let mut begun = bus.going("requester", &[]).await;
    let mut first = [next(&mut begun).await, next(&mut begun).await];
    first.sort_by(|a, b| a.task_id.cmp(&b.task_id));
    assert_eq!(
        (&*first[0].task_id, first[0].progress_percentage),
        ("other", 0)
    );
    // What was recorded has the time of the server.
    let told = TaskProgress {
        updated_at: first[1].updated_at,
        ..told
    };
    assert_eq!(first[1], told);
    bus.progress("agent", "other", 70).await.unwrap();
    for stream in [&mut live, &mut named, &mut begun] {
        let told = next(stream).await;
        assert_eq!((&*told.task_id, told.progress_percentage), ("other", 70));
    }
    nothing(&mut another).await;
    bus.complete("agent", "t").await.unwrap();
    nothing(&mut live).await;
}

#[tokio::test]
async fn each_message_of_progress_is_passed_on_as_it_was_sent() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("agent", &["x"]).await;
    let mut live = bus.going("requester", &[]).await;
    bus.publish(task("t", "x")).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "t");
    let mut sent = Vec::new();
    for (n, percent) in [0, 25, 50, 75, 100].into_iter().enumerate() {
        let step = Value {
            kind: Some(Kind::NumberValue(f64::from(percent))),
        };
        let progress = TaskProgress {
            task_id: "t".to_owned(),
            status: TaskStatus::InProgress.into(),
            progress_message: format!("step {n}"),
            progress_percentage: percent,
            progress_data: Some(Struct {
                fields: [("step".to_owned(), step)].into(),
            }),
            executor_agent_id: "agent".to_owned(),
            updated_at: Some(Timestamp {
                seconds: 1_767_225_600,
                nanos: 123_456_789,
            }),
        };
        sent.push(progress.clone());
        let request = PublishTaskProgressRequest {
            progress: Some(progress),
        };
        bus.client
            .clone()
            .publish_task_progress(request)
            .await
            .unwrap();
    }
    for expected in &sent {
        assert_eq!(next(&mut live).await, *expected);
    }
    // What was recorded of it is not told again: the next message is that of another task.
    bus.complete("agent", "t").await.unwrap();
    bus.publish(task("other", "x")).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "other");
    bus.progress("agent", "other", 30).await.unwrap();
    assert_eq!(next(&mut live).await.task_id, "other");
    nothing(&mut live).await;
}

#[tokio::test]
async fn streams_of_requesters_end_at_once_when_the_server_stops() {
    let bus = Bus::start().await;
    let mut results = bus.results("a", &[]).await;
    let mut going = bus.going("a", &[]).await;
    bus.server.ask_to_stop();
    let ends = [
        timeout(PATIENCE, results.message())
            .await
            .unwrap()
            .map(|_| ()),
        timeout(PATIENCE, going.message())
            .await
            .unwrap()
            .map(|_| ()),
    ];
    for end in ends {
        let end = end.unwrap_err();
        assert_eq!(end.code(), Code::Unavailable, "{end}");
    }
    let (status, _) = timeout(PATIENCE, bus.server.end()).await.unwrap();
    assert!(status.success());
}

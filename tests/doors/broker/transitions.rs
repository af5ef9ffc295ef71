//! What may follow what: which check comes first, what an agent may still say of a task that has ended, and who is
//! told.

use super::{Bus, next, nothing, one, task};
use prost_types::value::Kind;
use prost_types::{Struct, Timestamp};
use serde_json::json;
use taskledger_eventbus::{
    PublishTaskProgressRequest, PublishTaskRequest, PublishTaskResultRequest, TaskMessage,
    TaskProgress, TaskResult, TaskStatus,
};
use tonic::{Code, Status};

/// Faults in the order in which they are told, and how each is mended.
type Mending<T> = (&'static str, fn(&mut T));

const OUT_OF_CALENDAR: Option<Timestamp> = Some(Timestamp {
    seconds: i64::MAX,
    nanos: 0,
});

fn nan() -> Option<Struct> {
    Some(one("n", Kind::NumberValue(f64::NAN)))
}

/// Sends a message in which all is wrong, and mends what is told.
async fn mended<T>(mut message: T, faults: &[Mending<T>], send: impl AsyncFn(&T) -> Status) {
    for (text, mend) in faults {
        let refused = send(&message).await;
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().starts_with(text), "{text}: {refused}");
        mend(&mut message);
    }
}

#[tokio::test]
async fn of_several_faults_the_first_of_a_known_order_is_told() {
    let bus = Bus::start().await;
    let all = TaskMessage {
        priority: 9,
        parameters: nan(),
        deadline: OUT_OF_CALENDAR,
        metadata: nan(),
        ..TaskMessage::default()
    };
    let faults: [Mending<TaskMessage>; 8] = [
        ("task_id cannot be empty", |it| it.task_id = "t".to_owned()),
        ("task_type cannot be empty", |it| {
            it.task_type = "x".to_owned()
        }),
        ("requester_agent_id cannot be empty", |it| {
            it.requester_agent_id = "r".to_owned();
        }),
        ("created_at cannot be empty", |it| {
            it.created_at = Some(super::NOW)
        }),
        ("priority: 9 ", |it| it.priority = 0),
        ("parameters.n: ", |it| it.parameters = None),
        ("metadata.n: ", |it| it.metadata = None),
        ("deadline: ", |it| it.deadline = None),
    ];
    mended(all, &faults, async |message| {
        let request = PublishTaskRequest {
            task: Some(message.clone()),
        };
        bus.client.clone().publish_task(request).await.unwrap_err()
    })
    .await;
    let all = TaskResult {
        status: 9,
        result: nan(),
        execution_metadata: nan(),
        ..TaskResult::default()
    };
    let faults: [Mending<TaskResult>; 7] = [
        ("task_id cannot be empty", |it| it.task_id = "t".to_owned()),
        ("executor_agent_id cannot be empty", |it| {
            it.executor_agent_id = "a".to_owned();
        }),
        ("completed_at cannot be empty", |it| {
            it.completed_at = OUT_OF_CALENDAR;
        }),
        ("completed_at: ", |it| it.completed_at = Some(super::NOW)),
        ("execution_metadata.n: ", |it| it.execution_metadata = None),
        ("status: ", |it| it.status = TaskStatus::Completed.into()),
        ("result.n: ", |it| it.result = None),
    ];
    mended(all, &faults, async |message| {
        let request = PublishTaskResultRequest {
            result: Some(message.clone()),
        };
        let answer = bus.client.clone().publish_task_result(request).await;
        answer.unwrap_err()
    })
    .await;
    let all = TaskProgress {
        status: 9,
        progress_percentage: i32::MIN,
        progress_data: nan(),
        ..TaskProgress::default()
    };
    let faults: [Mending<TaskProgress>; 10] = [
        ("task_id cannot be empty", |it| it.task_id = "t".to_owned()),
        ("executor_agent_id cannot be empty", |it| {
            it.executor_agent_id = "a".to_owned();
        }),
        ("status: ", |it| it.status = TaskStatus::Pending.into()),
        ("status: ", |it| it.status = TaskStatus::Failed.into()),
        ("status: ", |it| it.status = TaskStatus::Cancelled.into()),
        ("status: ", |it| it.status = 0),
        ("progress_percentage: ", |it| it.progress_percentage = 100),
        ("updated_at cannot be empty", |it| {
            it.updated_at = OUT_OF_CALENDAR;
        }),
        ("updated_at: ", |it| it.updated_at = Some(super::NOW)),
        ("progress_data.n: ", |it| it.progress_data = None),
    ];
    mended(all, &faults, async |message| {
        let request = PublishTaskProgressRequest {
            progress: Some(message.clone()),
        };
        let answer = bus.client.clone().publish_task_progress(request).await;
        answer.unwrap_err()
    })
    .await;
    let list = bus.server.api.call("tasks.list", json!({})).await;
    assert_eq!(list["tasks"], json!([]), "nothing of it was recorded");
}

#[tokio::test]
async fn the_first_end_counts_whatever_is_said_afterwards() {
    use TaskStatus::{Cancelled, Completed, Failed};
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("a", &["*"]).await;
    let mut results = bus.results("requester", &[]).await;
    let result = |n: f64| Some(one("n", Kind::NumberValue(n)));
    let said = [
        (Completed, result(1.0), ""),
        (Completed, result(2.0), ""),
        (Completed, None, ""),
        (Failed, None, "no"),
        (Failed, None, "not at all"),
        (Failed, None, ""),
        (Cancelled, None, "off"),
        (Cancelled, None, ""),
    ];
    for (n, (status, result, error)) in said.iter().enumerate() {
        let id = format!("t{n}");
        bus.publish(task(&id, "x")).await.unwrap();
        assert_eq!(next(&mut stream).await.task_id, id);
        bus.progress("a", &id, 10).await.unwrap();
        let end = bus.end("a", &id, *status, result.clone(), error);
        end.await.unwrap();
        let told = next(&mut results).await;
        let expected = match (status, *error) {
            (Failed | Cancelled, "") => "the agent gave no reason",
            _ => error,
        };
        assert_eq!((told.status(), &*told.error_message), (*status, expected));
        // One that completed has a result, if an empty one.
        let is_completed = *status == Completed;
        let kept = is_completed.then(|| result.clone().unwrap_or_default());
        assert_eq!(told.result, kept);
        for (m, (status, result, error)) in said.iter().enumerate() {
            let again = bus.end("a", &id, *status, result.clone(), error).await;
            match (m == n, again) {
                (true, Ok(())) => {}
                (false, Err(refused)) => {
                    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
                }
                (_, other) => panic!("{:?} after {:?}: {other:?}", said[m], said[n]),
            }
        }
        let refused = bus.progress("a", &id, 50).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    }
    nothing(&mut results).await;
    nothing(&mut stream).await;
}

#[tokio::test]
async fn several_streams_of_a_requester_get_the_same_and_it_may_do_its_own_tasks() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("requester", &["x"]).await;
    let mut first = bus.results("requester", &[]).await;
    let mut second = bus.results("requester", &["t"]).await;
    let (mut going, mut likewise) = (
        bus.going("requester", &[]).await,
        bus.going("requester", &["t"]).await,
    );
    bus.publish(task("t", "x")).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "t");
    bus.progress("requester", "t", 30).await.unwrap();
    let progress = next(&mut going).await;
    assert_eq!(progress.progress_percentage, 30);
    assert_eq!(next(&mut likewise).await, progress);
    bus.complete("requester", "t").await.unwrap();
    let result = next(&mut first).await;
    assert_eq!(next(&mut second).await, result);
    nothing(&mut first).await;
}

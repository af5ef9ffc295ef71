//! What agents say beside numbers and texts: structured progress, partial results, how they did it. Requesters get
//! it as it was sent, also after a kill, and the history shows it.

use super::{Bus, NOW, next, one, task};
use prost_types::Struct;
use prost_types::value::Kind;
use serde_json::json;
use taskledger_eventbus::{
    PublishTaskProgressRequest, PublishTaskResultRequest, TaskProgress, TaskResult, TaskStatus,
};
use tonic::{Code, Status};

async fn ends(
    bus: &Bus,
    id: &str,
    status: TaskStatus,
    (result, execution): (Option<Struct>, Option<Struct>),
) -> Result<(), Status> {
    let result = TaskResult {
        task_id: id.to_owned(),
        status: status.into(),
        result,
        error_message: "the page is bad".to_owned(),
        executor_agent_id: "agent".to_owned(),
        completed_at: Some(NOW),
        execution_metadata: execution,
    };
    let request = PublishTaskResultRequest {
        result: Some(result),
    };
    let ended = bus.client.clone().publish_task_result(request).await;
    ended.map(|_| ())
}

async fn progresses(bus: &Bus, id: &str, data: Option<Struct>) -> Result<(), Status> {
    let progress = TaskProgress {
        task_id: id.to_owned(),
        status: TaskStatus::InProgress.into(),
        progress_percentage: 40,
        progress_data: data,
        executor_agent_id: "agent".to_owned(),
        updated_at: Some(NOW),
        ..TaskProgress::default()
    };
    let request = PublishTaskProgressRequest {
        progress: Some(progress),
    };
    let told = bus.client.clone().publish_task_progress(request).await;
    told.map(|_| ())
}

fn phase() -> Struct {
    one("phase", Kind::StringValue("correlation".to_owned()))
}

fn took() -> Struct {
    one("seconds", Kind::NumberValue(1.5))
}

fn partial() -> Struct {
    one("pages", Kind::NumberValue(3.0))
}

#[tokio::test]
async fn progress_data_is_told_live_and_with_the_latest_progress() {
    let bus = Bus::start().await;
    let mut live = bus.going("requester", &[]).await;
    bus.publish(task("t", "x")).await.unwrap();
    progresses(&bus, "t", Some(phase())).await.unwrap();
    let told = next(&mut live).await;
    assert_eq!(
        (told.progress_percentage, told.progress_data),
        (40, Some(phase()))
    );
    let bus = bus.killed().await;
    let told = next(&mut bus.going("requester", &[]).await).await;
    assert_eq!(
        (told.progress_percentage, told.progress_data),
        (40, Some(phase()))
    );
}

#[tokio::test]
async fn partial_results_and_execution_metadata_reach_the_requester_after_a_kill() {
    let bus = Bus::start().await;
    let cases = [
        ("done", TaskStatus::Completed),
        ("failed", TaskStatus::Failed),
        ("cancelled", TaskStatus::Cancelled),
    ];
    let mut stream = bus.subscribe("agent", &["held"]).await;
    for (id, status) in cases {
        // Held through a stream, and straight from pending.
        for (id, of) in [(id.to_owned(), "held"), (format!("{id} at once"), "x")] {
            bus.publish(task(&id, of)).await.unwrap();
            if of == "held" {
                assert_eq!(next(&mut stream).await.task_id, id);
            }
            let said = || (Some(partial()), Some(took()));
            ends(&bus, &id, status, said()).await.unwrap();
            ends(&bus, &id, status, said()).await.unwrap();
        }
    }
    bus.publish(task("bare", "x")).await.unwrap();
    ends(&bus, "bare", TaskStatus::Failed, (None, None))
        .await
        .unwrap();
    let bus = bus.killed().await;
    let mut results = bus.results("requester", &[]).await;
    for (id, status) in cases {
        for id in [id.to_owned(), format!("{id} at once")] {
            let told = next(&mut results).await;
            assert_eq!((&told.task_id, told.status()), (&id, status));
            assert_eq!(told.result, Some(partial()), "{id}");
            assert_eq!(told.execution_metadata, Some(took()), "{id}");
        }
    }
    let bare = next(&mut results).await;
    assert_eq!((bare.result, bare.execution_metadata), (None, None));
}

#[tokio::test]
async fn the_history_shows_what_agents_said_and_the_task_has_no_result() {
    let bus = Bus::start().await;
    let id = "6f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d11";
    bus.publish(task(id, "x")).await.unwrap();
    progresses(&bus, id, Some(phase())).await.unwrap();
    ends(
        &bus,
        id,
        TaskStatus::Failed,
        (Some(partial()), Some(took())),
    )
    .await
    .unwrap();
    let api = &bus.server.api;
    let history = api.call("tasks.history", json!({"task_id": id})).await;
    let events = history["events"].as_array().unwrap();
    let of = |kind: &str| {
        let found = events.iter().find(|it| it["type"] == kind);
        found.unwrap_or_else(|| panic!("{kind} is missing in {history}"))["data"].clone()
    };
    assert_eq!(
        of("task_progressed")["progress_data"],
        json!({"phase": "correlation"})
    );
    let failed = of("task_failed");
    assert_eq!(failed["partial_result"], json!({"pages": 3}));
    assert_eq!(failed["execution_metadata"], json!({"seconds": 1.5}));
    let found = api.call("tasks.get", json!({"task_id": id})).await;
    assert_eq!(found["result"], json!(null), "the protocol wants it so");
}

#[tokio::test]
async fn what_is_too_large_is_refused_with_its_name_and_ends_nothing() {
    let bus = Bus::start().await;
    let id = "6f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d12";
    bus.publish(task(id, "x")).await.unwrap();
    let large = |bytes: usize| Some(one("k", Kind::StringValue("x".repeat(bytes))));
    let refused = [
        progresses(&bus, id, large(300_000)).await,
        ends(&bus, id, TaskStatus::Completed, (None, large(300_000))).await,
        ends(&bus, id, TaskStatus::Failed, (large(2_000_000), None)).await,
        ends(&bus, id, TaskStatus::Completed, (large(2_000_000), None)).await,
    ];
    let names = [
        "progress_data: ",
        "execution_metadata: ",
        "result: ",
        "result: ",
    ];
    for (refused, name) in refused.into_iter().zip(names) {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().starts_with(name), "{refused}");
    }
    // Of a result that would have completed the task, its size is recorded.
    let refusals = json!({"task_id": id, "types": ["task_completion_rejected"]});
    let history = bus.server.api.call("tasks.history", refusals).await;
    let [refusal] = history["events"].as_array().unwrap().as_slice() else {
        panic!("{history}");
    };
    let told = &refusal["data"];
    assert_eq!(
        (&told["error"], &told["key"], &told["bytes"]),
        (
            &json!("OutputTooLargeError"),
            &json!("k"),
            &json!(2_000_008)
        )
    );
    ends(&bus, id, TaskStatus::Completed, (large(900_000), None))
        .await
        .unwrap();
    let told = next(&mut bus.results("requester", &[]).await).await;
    assert_eq!(told.result, large(900_000));
}

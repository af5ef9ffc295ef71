//! What requesters are told of tasks that run.

use super::{Bus, PATIENCE, next, nothing, task};
use taskledger_eventbus::TaskStatus;
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

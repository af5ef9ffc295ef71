//! Which task is next where there are more than agents get through.

use super::agent::stamp;
use super::{World, seed};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use taskledger_eventbus::{
    Priority, PublishTaskRequest, PublishTaskResultRequest, SubscribeToTasksRequest, TaskMessage,
    TaskResult, TaskStatus,
};
use taskledger_testkit::log;
use taskledger_testkit::random::Random;
use taskledger_testkit::server::{Folder, Server};
use tonic::Request;

const TASKS: usize = 300;
const AGENTS: usize = 4;
/// Claims that are under way at the same time may overtake each other on their way to the log.
const OVERTAKING_MAX: usize = 3 * AGENTS;

/// Ids that the log has too.
fn id(n: usize) -> String {
    format!("{n:08x}-0000-4000-8000-000000000000")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_go_by_priority_and_age_when_agents_are_the_bottleneck() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let world = World::over(std::slice::from_ref(&server.api), TASKS);
    let mut random = Random::new(seed());
    let mut client = world.connect(&mut random).await;
    let mut expected = Vec::new();
    for n in 0..TASKS {
        let priority = i32::try_from(random.below(5)).unwrap();
        let message = TaskMessage {
            task_id: id(n),
            task_type: "x".to_owned(),
            requester_agent_id: format!("requester-{}", n % 8),
            priority,
            created_at: Some(stamp(world.now())),
            ..TaskMessage::default()
        };
        let request = PublishTaskRequest {
            task: Some(message),
        };
        client.publish_task(request).await.unwrap();
        let urgency = match Priority::try_from(priority).unwrap() {
            Priority::Critical => 0,
            Priority::High => 1,
            Priority::Medium | Priority::Unspecified => 2,
            Priority::Low => 3,
        };
        expected.push((urgency, id(n)));
    }
    expected.sort_unstable();
    let done: Arc<AtomicUsize> = Arc::default();
    let mut agents = Vec::new();
    for agent in 0..AGENTS {
        let mut client = world.connect(&mut random).await;
        let done = done.clone();
        agents.push(tokio::spawn(async move {
            let name = format!("agent-{agent}");
            let mut asked = Request::new(SubscribeToTasksRequest {
                agent_id: name.clone(),
                task_types: vec!["x".to_owned()],
            });
            let one = "1".parse().unwrap();
            asked.metadata_mut().insert("taskledger-window", one);
            let stream = client.subscribe_to_tasks(asked).await.unwrap();
            let mut stream = stream.into_inner();
            while done.load(Ordering::Relaxed) < TASKS {
                let next = tokio::time::timeout(super::CONNECT, stream.message());
                let Ok(task) = next.await else { continue };
                let task = task.unwrap().unwrap();
                let result = TaskResult {
                    task_id: task.task_id,
                    status: TaskStatus::Completed.into(),
                    executor_agent_id: name.clone(),
                    completed_at: task.created_at,
                    ..TaskResult::default()
                };
                let result = PublishTaskResultRequest {
                    result: Some(result),
                };
                client.publish_task_result(result).await.unwrap();
                done.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    for agent in agents {
        agent.await.unwrap();
    }
    let events = log::export(&folder).await;
    let begun = events.iter().filter(|event| event.kind == "TaskStarted");
    let begun: Vec<&str> = begun.map(|event| event.task()).collect();
    assert_eq!(begun.len(), TASKS, "each has one attempt");
    for (place, task) in begun.iter().enumerate() {
        let due = expected.iter().position(|(_, id)| id == task).unwrap();
        assert!(
            place.abs_diff(due) <= OVERTAKING_MAX,
            "{task} began as number {place} instead of {due}: {begun:?}"
        );
    }
    server.stop().await;
}

//! Executes tasks of the type `text.words`: counts the words of a text.

use prost_types::{Struct, Timestamp, Value, value::Kind};
use std::{env, error::Error, time::Duration, time::SystemTime};
use taskledger_eventbus::*;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

const AGENT: &str = "rust-agent";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("TASKLEDGER_URL").unwrap_or_else(|_| "http://127.0.0.1:8000".into());
    let mut bus = EventBusClient::new(Endpoint::from_shared(url)?.connect_lazy());
    while let Err(end) = serve(&mut bus).await {
        if !matches!(end.code(), Code::Unavailable | Code::Unknown) {
            return Err(end.into());
        }
        // The server restarts. Tasks that were not finished come again.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

async fn serve(bus: &mut EventBusClient<Channel>) -> Result<(), Status> {
    let (agent_id, task_types) = (AGENT.into(), vec!["text.words".into()]);
    let request = with_token(SubscribeToTasksRequest {
        agent_id,
        task_types,
    });
    let mut tasks = bus.subscribe_to_tasks(request).await?.into_inner();
    while let Some(task) = tasks.message().await? {
        match execute(bus, &task).await {
            Ok(()) => println!("executed {}", task.task_id),
            // It has ended without us, for example because it was cancelled.
            Err(end) if end.code() == Code::FailedPrecondition => {
                println!("gave up {}", task.task_id)
            }
            Err(end) => return Err(end),
        }
    }
    Err(Status::unavailable("the stream has ended"))
}

async fn execute(bus: &mut EventBusClient<Channel>, task: &TaskMessage) -> Result<(), Status> {
    let progress = TaskProgress {
        task_id: task.task_id.clone(),
        status: TaskStatus::InProgress.into(),
        progress_message: "counting".into(),
        progress_percentage: 50,
        executor_agent_id: AGENT.into(),
        updated_at: Some(now()),
        ..TaskProgress::default()
    };
    let progress = Some(progress);
    let request = with_token(PublishTaskProgressRequest { progress });
    bus.publish_task_progress(request).await?;
    let result = Some(count(task));
    let request = with_token(PublishTaskResultRequest { result });
    bus.publish_task_result(request).await?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "an agent has its own clock")]
fn now() -> Timestamp {
    SystemTime::now().into()
}

fn count(task: &TaskMessage) -> TaskResult {
    let mut result = TaskResult {
        task_id: task.task_id.clone(),
        ..TaskResult::default()
    };
    result.executor_agent_id = AGENT.into();
    result.completed_at = Some(now());
    let text = task
        .parameters
        .as_ref()
        .and_then(|it| it.fields.get("text")?.kind.as_ref());
    if let Some(Kind::StringValue(text)) = text {
        let words = Value::from(text.split_whitespace().count() as f64);
        result.result = Some(Struct {
            fields: [("words".to_owned(), words)].into(),
        });
        result.set_status(TaskStatus::Completed);
    } else {
        result.error_message = "the parameter `text` must be a string".into();
        result.set_status(TaskStatus::Failed);
    }
    result
}

fn with_token<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    let token = env::var("TASKLEDGER_TOKEN")
        .ok()
        .and_then(|it| format!("Bearer {it}").parse().ok());
    if let Some(token) = token {
        request.metadata_mut().insert("authorization", token);
    }
    request
}

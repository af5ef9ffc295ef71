//! Executes tasks of the type `text.words`: counts the words of a text.

use prost_types::{Struct, Timestamp, Value, value::Kind};
use std::{env, error::Error, time::Duration, time::SystemTime};
use taskledger_eventbus::{
    EventBusClient, PublishTaskProgressRequest, PublishTaskResultRequest, SubscribeToTasksRequest,
    TaskMessage, TaskProgress, TaskResult, TaskStatus,
};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

const AGENT: &str = "rust-agent";

type Bus = EventBusClient<InterceptedService<Channel, fn(Request<()>) -> Checked>>;
type Checked = Result<Request<()>, Status>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("TASKLEDGER_URL").unwrap_or_else(|_| "http://127.0.0.1:8000".into());
    let channel = Endpoint::from_shared(url)?.connect_lazy();
    let mut bus: Bus = EventBusClient::with_interceptor(channel, with_credentials);
    loop {
        match serve(&mut bus).await {
            // The server restarts. Tasks that were not finished come again.
            Ok(()) => {}
            Err(status) if matches!(status.code(), Code::Unavailable | Code::Unknown) => {}
            Err(status) => return Err(status.into()),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn serve(bus: &mut Bus) -> Result<(), Status> {
    let request = SubscribeToTasksRequest {
        agent_id: AGENT.into(),
        task_types: vec!["text.words".into()],
    };
    let mut tasks = bus.subscribe_to_tasks(request).await?.into_inner();
    while let Some(task) = tasks.message().await? {
        match execute(bus, &task).await {
            Ok(()) => println!("executed {}", task.task_id),
            // The task has ended without us, for example because it was cancelled.
            Err(status) if status.code() == Code::FailedPrecondition => {
                println!("gave up {}: {}", task.task_id, status.message());
            }
            Err(status) => return Err(status),
        }
    }
    Ok(())
}

async fn execute(bus: &mut Bus, task: &TaskMessage) -> Result<(), Status> {
    let progress = Some(TaskProgress {
        task_id: task.task_id.clone(),
        status: TaskStatus::InProgress.into(),
        progress_message: "counting".into(),
        progress_percentage: 50,
        executor_agent_id: AGENT.into(),
        updated_at: now(),
        ..TaskProgress::default()
    });
    let request = PublishTaskProgressRequest { progress };
    bus.publish_task_progress(request).await?;

    let mut result = TaskResult {
        task_id: task.task_id.clone(),
        executor_agent_id: AGENT.into(),
        completed_at: now(),
        ..TaskResult::default()
    };
    if let Some(text) = text(task) {
        let words = text.split_whitespace().count() as f64;
        let fields = [("words".to_owned(), Value::from(words))].into();
        result.result = Some(Struct { fields });
        result.set_status(TaskStatus::Completed);
    } else {
        result.error_message = "the parameter `text` must be a string".into();
        result.set_status(TaskStatus::Failed);
    }
    let result = Some(result);
    let request = PublishTaskResultRequest { result };
    bus.publish_task_result(request).await.map(drop)
}

fn text(task: &TaskMessage) -> Option<&str> {
    match &task.parameters.as_ref()?.fields.get("text")?.kind {
        Some(Kind::StringValue(text)) => Some(text),
        _ => None,
    }
}

fn with_credentials(mut request: Request<()>) -> Checked {
    if let Ok(token) = env::var("TASKLEDGER_TOKEN") {
        let value = format!("Bearer {token}").parse();
        let value = value.map_err(|_| Status::unauthenticated("the token is not ASCII"))?;
        request.metadata_mut().insert("authorization", value);
    }
    Ok(request)
}

#[expect(clippy::disallowed_methods, reason = "an agent has its own clock")]
fn now() -> Option<Timestamp> {
    Some(SystemTime::now().into())
}

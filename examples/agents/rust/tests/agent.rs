//! The agent does tasks of a real server, and goes on when that was killed and has come back.

use prost_types::value::Kind;
use prost_types::{Struct, Timestamp, Value};
use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;
use taskledger_eventbus::{
    EventBusClient, PublishTaskRequest, SubscribeToTaskResultsRequest, TaskMessage, TaskStatus,
};
use taskledger_testkit::program::{command, command_of};
use taskledger_testkit::server::{Folder, Server};
use tokio::time::timeout;
use tonic::transport::Endpoint;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

async fn started(folder: &Folder, listen: &str) -> Server {
    let mut serve = command();
    serve
        .args(["serve", "--listen", listen])
        .args(folder.storage());
    Server::spawn(serve, folder.path()).await
}

/// The words of a text, as the agent counts them.
async fn words(url: &str, id: &str, text: &str) -> Option<Kind> {
    let endpoint = Endpoint::from_shared(url.to_owned()).expect("it is a URL");
    let mut bus = EventBusClient::new(endpoint.connect().await.expect("the server listens"));
    let text = Value::from(text);
    let task = TaskMessage {
        task_id: id.to_owned(),
        task_type: "text.words".to_owned(),
        parameters: Some(Struct {
            fields: [("text".to_owned(), text)].into(),
        }),
        requester_agent_id: "requester".to_owned(),
        created_at: Some(Timestamp::default()),
        ..TaskMessage::default()
    };
    let asked = SubscribeToTaskResultsRequest {
        requester_agent_id: "requester".to_owned(),
        task_ids: vec![id.to_owned()],
    };
    let progress = bus.subscribe_to_task_progress(asked.clone()).await;
    let mut progress = progress.expect("progress is told").into_inner();
    let task = Some(task);
    bus.publish_task(PublishTaskRequest { task })
        .await
        .expect("the task is accepted");
    let half = async {
        // What has just begun may be told first.
        while let Some(told) = progress.message().await.expect("the stream goes on") {
            if told.progress_percentage == 50 {
                break;
            }
        }
    };
    timeout(PATIENCE, half).await.expect("progress comes");
    let results = bus.subscribe_to_task_results(asked).await;
    let mut results = results.expect("there is an inbox").into_inner();
    let result = results.message().await.expect("the stream goes on");
    let result = result.expect("a result comes");
    assert_eq!(result.status(), TaskStatus::Completed);
    assert_eq!(result.executor_agent_id, "rust-agent");
    result.result?.fields.remove("words")?.kind
}

#[tokio::test]
async fn the_agent_does_tasks_and_goes_on_after_the_server_was_killed() {
    // One that is free, and stays the server's.
    let free = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let listen = free.local_addr().expect("it is bound").to_string();
    drop(free);
    let (folder, url) = (Folder::new(), format!("http://{listen}"));
    let server = started(&folder, &listen).await;
    let _agent = command_of(env!("CARGO_BIN_EXE_taskledger-example-agent"))
        .env("TASKLEDGER_URL", &url)
        .stdout(Stdio::null())
        .spawn()
        .expect("the agent starts");
    let six = words(&url, "first", "to be or not to be").await;
    assert_eq!(six, Some(Kind::NumberValue(6.0)));
    server.kill().await;
    let server = started(&folder, &listen).await;
    let three = words(&url, "second", "after the kill").await;
    assert_eq!(three, Some(Kind::NumberValue(3.0)));
    server.stop().await;
}

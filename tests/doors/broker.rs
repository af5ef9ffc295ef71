//! The AgentHub EventBus over gRPC, with the real program and a client that is not ours: what is published, delivered
//! and said, and which statuses it is answered with.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod blocked;
pub(crate) mod deadlines;
mod delivery;
mod hostile;
mod listeners;
mod marks;
mod namesakes;
mod nodes;
mod progress;
mod publishing;
mod remarks;
mod results;
mod services;
mod strangers;
mod transitions;

use prost_types::value::Kind;
use prost_types::{Struct, Timestamp};
use std::time::Duration;
use taskledger_eventbus::{
    EventBusClient, PublishTaskProgressRequest, PublishTaskRequest, PublishTaskResultRequest,
    SubscribeToTaskResultsRequest, SubscribeToTasksRequest, TaskMessage, TaskProgress, TaskResult,
    TaskStatus,
};
use taskledger_testkit::server::{Folder, Server};
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Shorter than it takes to wait for what does not come.
const SILENCE: Duration = Duration::from_millis(700);

const NOW: Timestamp = Timestamp {
    seconds: 1_767_225_600,
    nanos: 123_456_789,
};

/// A server with a client.
struct Bus {
    server: Server,
    peer: Peer,
    folder: Folder,
}

impl std::ops::Deref for Bus {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.peer
    }
}

/// A client of a server.
struct Peer {
    client: EventBusClient<Channel>,
}

async fn connected(server: &Server) -> EventBusClient<Channel> {
    let url = server.api.url.trim_end_matches('/').to_owned();
    let channel = Endpoint::from_shared(url).unwrap().connect().await.unwrap();
    EventBusClient::new(channel)
}

impl Bus {
    async fn start() -> Self {
        Self::of(Folder::new()).await
    }

    async fn of(folder: Folder) -> Self {
        let server = Server::start(&folder).await;
        let peer = Peer::of(&server).await;
        Self {
            server,
            peer,
            folder,
        }
    }

    /// The same data, after the server was killed.
    async fn killed(self) -> Self {
        self.server.kill().await;
        Self::of(self.folder).await
    }
}

impl Peer {
    async fn of(server: &Server) -> Self {
        let client = connected(server).await;
        Self { client }
    }

    /// Results for a requester, or only those of some tasks.
    async fn results(&self, requester: &str, ids: &[&str]) -> Streaming<TaskResult> {
        let request = of_requester(requester, ids);
        let mut client = self.client.clone();
        let stream = client.subscribe_to_task_results(request).await;
        stream.unwrap().into_inner()
    }

    /// Progress for a requester, or only that of some tasks.
    async fn going(&self, requester: &str, ids: &[&str]) -> Streaming<TaskProgress> {
        let request = of_requester(requester, ids);
        let mut client = self.client.clone();
        let stream = client.subscribe_to_task_progress(request).await;
        stream.unwrap().into_inner()
    }

    async fn publish(&self, task: TaskMessage) -> Result<(), Status> {
        let request = PublishTaskRequest { task: Some(task) };
        let answer = self.client.clone().publish_task(request).await?;
        assert!(answer.into_inner().success);
        Ok(())
    }

    async fn subscribe(&self, agent: &str, types: &[&str]) -> Streaming<TaskMessage> {
        self.try_subscribe(agent, types, None).await.unwrap()
    }

    async fn try_subscribe(
        &self,
        agent: &str,
        types: &[&str],
        window: Option<&'static str>,
    ) -> Result<Streaming<TaskMessage>, Status> {
        let mut request = Request::new(SubscribeToTasksRequest {
            agent_id: agent.to_owned(),
            task_types: types.iter().map(|it| (*it).to_owned()).collect(),
        });
        if let Some(window) = window {
            request
                .metadata_mut()
                .insert("taskledger-window", window.parse().unwrap());
        }
        let stream = self.client.clone().subscribe_to_tasks(request).await?;
        Ok(stream.into_inner())
    }

    async fn end(
        &self,
        agent: &str,
        id: &str,
        status: TaskStatus,
        result: Option<Struct>,
        error: &str,
    ) -> Result<(), Status> {
        let result = TaskResult {
            task_id: id.to_owned(),
            status: status.into(),
            result,
            error_message: error.to_owned(),
            executor_agent_id: agent.to_owned(),
            completed_at: Some(NOW),
            execution_metadata: None,
        };
        self.say(result).await
    }

    async fn say(&self, result: TaskResult) -> Result<(), Status> {
        let request = PublishTaskResultRequest {
            result: Some(result),
        };
        self.client
            .clone()
            .publish_task_result(request)
            .await
            .map(|_| ())
    }

    async fn complete(&self, agent: &str, id: &str) -> Result<(), Status> {
        self.end(
            agent,
            id,
            TaskStatus::Completed,
            Some(one("n", Kind::NumberValue(1.0))),
            "",
        )
        .await
    }

    async fn progress(&self, agent: &str, id: &str, percent: i32) -> Result<(), Status> {
        let progress = TaskProgress {
            task_id: id.to_owned(),
            status: TaskStatus::InProgress.into(),
            progress_message: "going".to_owned(),
            progress_percentage: percent,
            progress_data: None,
            executor_agent_id: agent.to_owned(),
            updated_at: Some(NOW),
        };
        let request = PublishTaskProgressRequest {
            progress: Some(progress),
        };
        self.client
            .clone()
            .publish_task_progress(request)
            .await
            .map(|_| ())
    }
}

fn of_requester(requester: &str, ids: &[&str]) -> SubscribeToTaskResultsRequest {
    SubscribeToTaskResultsRequest {
        requester_agent_id: requester.to_owned(),
        task_ids: ids.iter().map(|it| (*it).to_owned()).collect(),
    }
}

async fn next<T>(stream: &mut Streaming<T>) -> T {
    let message = timeout(PATIENCE, stream.message()).await;
    message
        .expect("a message comes")
        .unwrap()
        .expect("the stream goes on")
}

async fn nothing<T: std::fmt::Debug>(stream: &mut Streaming<T>) {
    let message = timeout(SILENCE, stream.message()).await;
    assert!(message.is_err(), "{message:?}");
}

fn one(key: &str, kind: Kind) -> Struct {
    let value = prost_types::Value { kind: Some(kind) };
    Struct {
        fields: [(key.to_owned(), value)].into(),
    }
}

fn task(id: &str, task_type: &str) -> TaskMessage {
    TaskMessage {
        task_id: id.to_owned(),
        task_type: task_type.to_owned(),
        parameters: Some(one("page", Kind::NumberValue(1.0))),
        requester_agent_id: "requester".to_owned(),
        created_at: Some(NOW),
        ..TaskMessage::default()
    }
}

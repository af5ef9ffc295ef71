//! Client and server meet at the paths of the protocol, without a network between them.

use prost::Message;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use taskledger_eventbus::{
    EventBus, EventBusClient, EventBusServer, FILE_DESCRIPTOR_SET, PublishResponse,
    PublishTaskProgressRequest, PublishTaskRequest, PublishTaskResultRequest, SERVICE_NAME,
    SubscribeToTaskResultsRequest, SubscribeToTasksRequest, TaskMessage, TaskProgress, TaskResult,
};
use tokio_stream::{Stream, StreamExt};
use tonic::codegen::{Service, http};
use tonic::{Code, Request, Response, Status};

type Answer<T> = Result<Response<T>, Status>;
type Items<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Accepts everything, and sends each subscriber one message that names what it asked for.
struct Echo;

fn accepted() -> Answer<PublishResponse> {
    Ok(Response::new(PublishResponse {
        success: true,
        error: String::new(),
    }))
}

fn one<T: Send + 'static>(item: T) -> Answer<Items<T>> {
    Ok(Response::new(Box::pin(tokio_stream::once(Ok(item)))))
}

#[tonic::async_trait]
impl EventBus for Echo {
    type SubscribeToTasksStream = Items<TaskMessage>;
    type SubscribeToTaskResultsStream = Items<TaskResult>;
    type SubscribeToTaskProgressStream = Items<TaskProgress>;

    async fn publish_task(&self, request: Request<PublishTaskRequest>) -> Answer<PublishResponse> {
        let given = request.into_inner().task;
        given.ok_or_else(|| Status::invalid_argument("task cannot be nil"))?;
        accepted()
    }

    async fn publish_task_result(
        &self,
        _: Request<PublishTaskResultRequest>,
    ) -> Answer<PublishResponse> {
        accepted()
    }

    async fn publish_task_progress(
        &self,
        _: Request<PublishTaskProgressRequest>,
    ) -> Answer<PublishResponse> {
        accepted()
    }

    async fn subscribe_to_tasks(
        &self,
        request: Request<SubscribeToTasksRequest>,
    ) -> Answer<Self::SubscribeToTasksStream> {
        one(TaskMessage {
            responder_agent_id: request.into_inner().agent_id,
            ..TaskMessage::default()
        })
    }

    async fn subscribe_to_task_results(
        &self,
        request: Request<SubscribeToTaskResultsRequest>,
    ) -> Answer<Self::SubscribeToTaskResultsStream> {
        one(TaskResult {
            task_id: request.into_inner().task_ids.concat(),
            ..TaskResult::default()
        })
    }

    async fn subscribe_to_task_progress(
        &self,
        request: Request<SubscribeToTaskResultsRequest>,
    ) -> Answer<Self::SubscribeToTaskProgressStream> {
        one(TaskProgress {
            task_id: request.into_inner().task_ids.concat(),
            ..TaskProgress::default()
        })
    }
}

/// The server, and the paths at which it was called.
#[derive(Clone)]
struct Recorded {
    server: EventBusServer<Echo>,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Recorded {
    fn new() -> Self {
        Self {
            server: EventBusServer::new(Echo),
            paths: Arc::default(),
        }
    }
}

impl Service<http::Request<tonic::body::Body>> for Recorded {
    type Response = http::Response<tonic::body::Body>;
    type Error = std::convert::Infallible;
    type Future = tonic::codegen::BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let path = request.uri().path().to_owned();
        self.paths.lock().expect("no test panicked").push(path);
        Service::call(&mut self.server, request)
    }
}

#[tokio::test]
async fn every_call_reaches_the_server_at_its_path() {
    let recorded = Recorded::new();
    let mut client = EventBusClient::new(recorded.clone());
    let results_of = |id: &str| SubscribeToTaskResultsRequest {
        requester_agent_id: "requester".into(),
        task_ids: vec![id.into()],
    };

    let request = PublishTaskRequest {
        task: Some(TaskMessage::default()),
    };
    let published = client.publish_task(request).await.expect("accepted");
    assert!(published.into_inner().success);
    let request = PublishTaskResultRequest::default();
    client.publish_task_result(request).await.expect("accepted");
    let request = PublishTaskProgressRequest::default();
    client
        .publish_task_progress(request)
        .await
        .expect("accepted");
    let request = SubscribeToTasksRequest {
        agent_id: "worker".into(),
        task_types: vec![],
    };
    let tasks = client.subscribe_to_tasks(request).await;
    assert_eq!(only(tasks).await.responder_agent_id, "worker");
    let results = client.subscribe_to_task_results(results_of("a")).await;
    assert_eq!(only(results).await.task_id, "a");
    let progress = client.subscribe_to_task_progress(results_of("b")).await;
    assert_eq!(only(progress).await.task_id, "b");

    assert_eq!(
        *recorded.paths.lock().expect("no test panicked"),
        [
            "/eventbus.EventBus/PublishTask",
            "/eventbus.EventBus/PublishTaskResult",
            "/eventbus.EventBus/PublishTaskProgress",
            "/eventbus.EventBus/SubscribeToTasks",
            "/eventbus.EventBus/SubscribeToTaskResults",
            "/eventbus.EventBus/SubscribeToTaskProgress",
        ]
    );
}

#[tokio::test]
async fn a_refusal_arrives_with_code_and_message() {
    let mut client = EventBusClient::new(Recorded::new());
    let request = PublishTaskRequest { task: None };
    let refused = client.publish_task(request).await.expect_err("refused");
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(refused.message(), "task cannot be nil");
}

/// The one message of a stream.
async fn only<T>(stream: Answer<tonic::Streaming<T>>) -> T {
    let mut stream = stream.expect("subscribed").into_inner();
    let first = stream.next().await.expect("one message").expect("decoded");
    assert!(stream.next().await.is_none(), "the stream has ended");
    first
}

#[test]
fn the_descriptor_set_holds_the_service_and_all_that_it_imports() {
    let described = prost_types::FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("decodes");
    let files: BTreeSet<_> = described.file.iter().map(|file| file.name()).collect();
    let ours = described
        .file
        .iter()
        .find(|file| file.package() == "eventbus")
        .expect("the .proto is in it");
    for import in &ours.dependency {
        assert!(files.contains(import.as_str()), "`{import}` is in it");
    }
    let services: Vec<_> = ours.service.iter().map(|service| service.name()).collect();
    assert_eq!(services, ["EventBus"]);
    assert_eq!(SERVICE_NAME, "eventbus.EventBus");

    // Each call: name, request, response, whether the response is a stream. No request is one.
    let calls: Vec<_> = ours.service[0]
        .method
        .iter()
        .map(|call| {
            assert!(!call.client_streaming());
            let streams = call.server_streaming();
            (call.name(), call.input_type(), call.output_type(), streams)
        })
        .collect();
    let published = ".eventbus.PublishResponse";
    let results = ".eventbus.SubscribeToTaskResultsRequest";
    assert_eq!(
        calls,
        [
            (
                "PublishTask",
                ".eventbus.PublishTaskRequest",
                published,
                false
            ),
            (
                "PublishTaskResult",
                ".eventbus.PublishTaskResultRequest",
                published,
                false
            ),
            (
                "PublishTaskProgress",
                ".eventbus.PublishTaskProgressRequest",
                published,
                false
            ),
            (
                "SubscribeToTasks",
                ".eventbus.SubscribeToTasksRequest",
                ".eventbus.TaskMessage",
                true
            ),
            (
                "SubscribeToTaskResults",
                results,
                ".eventbus.TaskResult",
                true
            ),
            (
                "SubscribeToTaskProgress",
                results,
                ".eventbus.TaskProgress",
                true
            ),
        ]
    );
}

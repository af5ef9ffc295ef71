//! With authentication: nobody speaks for another agent, and inboxes of others do not exist.

use super::{next, nothing, of_requester, task};
use crate::isolation::world::{World, user};
use serde_json::json;
use taskledger_auth::{Scope, Scopes};
use taskledger_eventbus::{
    EventBusClient, PublishTaskRequest, PublishTaskResultRequest, SubscribeToTasksRequest,
    TaskResult, TaskStatus,
};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

fn with<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let bearer = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    request
}

async fn client(world: &World) -> EventBusClient<Channel> {
    let url = world.url().to_owned();
    let channel = Endpoint::from_shared(url).unwrap().connect().await.unwrap();
    EventBusClient::new(channel)
}

fn ended(agent: &str) -> PublishTaskResultRequest {
    PublishTaskResultRequest {
        result: Some(TaskResult {
            task_id: "t".to_owned(),
            status: TaskStatus::Completed.into(),
            executor_agent_id: agent.to_owned(),
            completed_at: Some(super::NOW),
            ..TaskResult::default()
        }),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_get_nothing() {
    let world = World::start().await;
    let bare = user("ann", Scopes::of([Scope::Worker]));
    world.known.put("bare", bare);
    let mut client = client(&world).await;
    let mut message = task("t", "x");
    message.requester_agent_id = "ann".to_owned();
    let request = PublishTaskRequest {
        task: Some(message),
    };
    client
        .publish_task(with("ann", request.clone()))
        .await
        .unwrap();
    // Nobody speaks for another agent.
    let refused = client.publish_task(with("bob", request)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    // Nobody ends what he does not see.
    let refused = client
        .publish_task_result(with("bob", ended("bob")))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::NotFound, "{refused}");
    client
        .publish_task_result(with("ann", ended("ann")))
        .await
        .unwrap();
    let mut told = async |token: &str, requester: &str, ids: &[&str]| {
        let request = with(token, of_requester(requester, ids));
        client
            .subscribe_to_task_results(request)
            .await
            .map(tonic::Response::into_inner)
    };
    let refused = told("bob", "ann", &[]).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    let refused = told("bare", "ann", &[]).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    let refused = told("nobody", "ann", &[]).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    nothing(&mut told("bob", "bob", &["t"]).await.unwrap()).await;
    // Who may act for all users has an inbox of his own under that name.
    nothing(&mut told("chief", "ann", &["t"]).await.unwrap()).await;
    let mut own = told("ann", "ann", &[]).await.unwrap();
    assert_eq!(next(&mut own).await.task_id, "t");
    drop(own);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_another_principal_is_answered_after_the_end_as_its_publisher_would_be() {
    let world = World::start().await;
    let mut client = client(&world).await;
    let request = SubscribeToTasksRequest {
        agent_id: "chief".to_owned(),
        task_types: vec!["x".to_owned()],
    };
    let stream = client.subscribe_to_tasks(with("chief", request)).await;
    let mut stream = stream.unwrap().into_inner();
    let of = |requester: &str| {
        let mut message = task("t", "x");
        message.requester_agent_id = requester.to_owned();
        PublishTaskRequest {
            task: Some(message),
        }
    };
    client.publish_task(with("ann", of("ann"))).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "t");
    for _ in 0..2 {
        let said = with("chief", ended("chief"));
        client.publish_task_result(said).await.unwrap();
    }
    let mut other = ended("chief");
    let result = other.result.as_mut().unwrap();
    result.status = TaskStatus::Failed.into();
    let refused = client.publish_task_result(with("chief", other.clone()));
    let refused = refused.await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    // A cancel is told as the answer to what it says next.
    client.publish_task(with("bob", of("bob"))).await.unwrap();
    assert_eq!(next(&mut stream).await.requester_agent_id, "bob");
    let list = world.call("bob", "tasks.list", json!({})).await;
    let id = &list["tasks"][0]["id"];
    let cancel = world.call("bob", "tasks.cancel", json!({"task_id": id}));
    cancel.await;
    let refused = client.publish_task_result(with("chief", other));
    let refused = refused.await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    // An id that another principal has used is not free.
    let id = "6f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d11";
    let mut message = of("ann");
    message.task.as_mut().unwrap().task_id = id.to_owned();
    client.publish_task(with("ann", message)).await.unwrap();
    let mut message = of("bob");
    message.task.as_mut().unwrap().task_id = id.to_owned();
    let refused = client.publish_task(with("bob", message)).await.unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists, "{refused}");
    assert!(refused.message().starts_with("task_id: "), "{refused}");
    drop(stream);
    world.close().await;
}

//! With authentication: nobody speaks for another agent, and inboxes of others do not exist.

use super::{next, nothing, of_requester, task};
use crate::isolation::world::{World, user};
use taskledger_auth::{Scope, Scopes};
use taskledger_eventbus::{
    EventBusClient, PublishTaskRequest, PublishTaskResultRequest, TaskResult, TaskStatus,
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

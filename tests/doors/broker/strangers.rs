//! With authentication: nobody speaks for another agent, and inboxes of others do not exist.

use super::{next, nothing, of_requester, task};
use crate::isolation::world::{World, user};
use serde_json::json;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use taskledger::application::limits::QuotaOptions;
use taskledger_auth::{Scope, Scopes};
use taskledger_eventbus::{
    EventBusClient, PublishTaskRequest, PublishTaskResultRequest, SubscribeToTasksRequest,
    TaskResult, TaskStatus,
};
use tokio::time::timeout;
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
async fn a_token_speaks_for_the_agents_that_it_names_and_no_others() {
    let world = World::start().await;
    let scopes = Scopes::of([
        Scope::TasksRead,
        Scope::TasksRun,
        Scope::TasksWrite,
        Scope::Worker,
    ]);
    let fleet = user("ann", scopes).with_agents(Some([Arc::from("robot")].into()));
    world.known.put("fleet", fleet);
    let mut client = client(&world).await;
    for (agent, speaks) in [
        ("ann", true),
        ("robot", true),
        ("other", false),
        ("bob", false),
    ] {
        let mut message = task(agent, "x");
        message.requester_agent_id = agent.to_owned();
        let publish = PublishTaskRequest {
            task: Some(message),
        };
        let mut end = ended(agent);
        if let Some(result) = &mut end.result {
            result.task_id = agent.to_owned();
        }
        let tasks = SubscribeToTasksRequest {
            agent_id: agent.to_owned(),
            task_types: vec!["y".to_owned()],
        };
        let answers = [
            client.publish_task(with("fleet", publish)).await.map(drop),
            client
                .publish_task_result(with("fleet", end))
                .await
                .map(drop),
            client
                .subscribe_to_tasks(with("fleet", tasks))
                .await
                .map(drop),
            client
                .subscribe_to_task_results(with("fleet", of_requester(agent, &[])))
                .await
                .map(drop),
            client
                .subscribe_to_task_progress(with("fleet", of_requester(agent, &[])))
                .await
                .map(drop),
        ];
        for (call, answer) in answers.into_iter().enumerate() {
            let denied = answer.err().map(|status| status.code());
            let expected = (!speaks).then_some(Code::PermissionDenied);
            assert_eq!(denied, expected, "call {call} as {agent}");
        }
    }
    // Inboxes of agents of one principal are apart.
    let told = async |agent: &str| {
        let mut client = client.clone();
        let request = with("fleet", of_requester(agent, &[]));
        let results = client.subscribe_to_task_results(request).await;
        results.unwrap().into_inner()
    };
    let mut own = told("robot").await;
    assert_eq!(next(&mut own).await.task_id, "robot");
    nothing(&mut own).await;
    drop((own, client));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_another_principal_reports_by_the_id_that_it_was_given() {
    let world = World::start().await;
    let mut client = client(&world).await;
    let mut message = task("t", "x");
    message.requester_agent_id = "ann".to_owned();
    let request = PublishTaskRequest {
        task: Some(message),
    };
    client.publish_task(with("ann", request)).await.unwrap();
    // Its lease is all that the server knows: no stream has given it the task.
    let claim = json!({"methods": ["x"], "worker": "robot"});
    let claims = world.call("chief", "tasks.claim", claim).await;
    assert_eq!(claims["claims"].as_array().unwrap().len(), 1, "{claims}");
    let other = client
        .publish_task_result(with("chief", ended("drone")))
        .await;
    assert_eq!(other.unwrap_err().code(), Code::NotFound);
    let end = client.publish_task_result(with("chief", ended("robot")));
    end.await.unwrap();
    let request = with("ann", of_requester("ann", &[]));
    let results = client.subscribe_to_task_results(request).await;
    let mut results = results.unwrap().into_inner();
    let told = next(&mut results).await;
    assert_eq!((&*told.task_id, &*told.executor_agent_id), ("t", "robot"));
    drop((results, client));
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_as_much_as_it_may_publishes_again_what_was_accepted_and_nothing_more() {
    let world = World::with(QuotaOptions {
        open_flows: NonZeroU32::new(2),
        ..QuotaOptions::default()
    })
    .await;
    let mut client = client(&world).await;
    let of = |id: &str, task_type: &str| {
        let mut message = task(id, task_type);
        message.requester_agent_id = "ann".to_owned();
        PublishTaskRequest {
            task: Some(message),
        }
    };
    for id in ["t", "u", "t"] {
        let published = client.publish_task(with("ann", of(id, "x")));
        published.await.unwrap();
    }
    for (id, task_type) in [("v", "x"), ("t", "y")] {
        let published = client.publish_task(with("ann", of(id, task_type)));
        let refused = published.await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        assert!(refused.message().starts_with("open_flows: "), "{refused}");
    }
    let mut end = ended("ann");
    end.result.as_mut().unwrap().task_id = "u".to_owned();
    client.publish_task_result(with("ann", end)).await.unwrap();
    // What has ended makes room in a moment.
    timeout(super::PATIENCE, async {
        while let Err(refused) = client.publish_task(with("ann", of("v", "x"))).await {
            assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
    world.close().await;
}

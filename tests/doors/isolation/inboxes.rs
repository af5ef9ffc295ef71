//! Inboxes of the EventBus in the matrix: results and progress, by the name of the requester and by the ids of tasks.

use super::world::Callers;
use prost_types::{Struct, Timestamp};
use serde_json::json;
use std::fmt::Debug;
use std::time::Duration;
use taskledger_eventbus::{
    EventBusClient, PublishTaskProgressRequest, PublishTaskRequest, SubscribeToTaskResultsRequest,
    TaskMessage, TaskProgress, TaskStatus,
};
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};

/// After this time without a message, none is expected any more. What is there comes within milliseconds.
const SILENCE: Duration = Duration::from_millis(500);
/// A type that nobody works on.
pub(super) const KIND: &str = "of.the.matrix";
pub(super) const NOW: Timestamp = Timestamp {
    seconds: 1_767_225_600,
    nanos: 0,
};

/// What is asked for.
#[derive(Debug)]
pub(super) struct Inbox {
    of: Of,
    requester: String,
    /// Empty: all tasks.
    ids: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
enum Of {
    Results,
    Progress,
}

/// An inbox by the name of its agent, and tasks by their ids in the caller's own inbox.
pub(super) fn rows(agent: &str, own: &str, published: &[String; 2]) -> Vec<Inbox> {
    let row = |of, requester: &str, ids: &[String]| Inbox {
        of,
        requester: requester.to_owned(),
        ids: ids.to_vec(),
    };
    let of_both = [Of::Results, Of::Progress].into_iter();
    of_both
        .flat_map(|of| [row(of, agent, &[]), row(of, own, published)])
        .collect()
}

pub(super) fn with<T>(world: &Callers, token: Option<&str>, message: T) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(token) = token {
        let bearer = format!("Bearer {}", world.token(token)).parse().unwrap();
        request.metadata_mut().insert("authorization", bearer);
    }
    request
}

pub(super) async fn client(world: &Callers) -> EventBusClient<Channel> {
    let endpoint = Endpoint::from_shared(world.url().to_owned()).unwrap();
    EventBusClient::new(endpoint.connect().await.unwrap())
}

/// Publishes a task that ends and one that says how far it is, as the agent that is named like the caller.
pub(super) async fn fill(world: &Callers, token: &str, published: &[String; 2]) {
    let mut client = client(world).await;
    for id in published {
        let fields = [("page".to_owned(), 1.0.into())].into();
        let task = TaskMessage {
            task_id: id.clone(),
            task_type: KIND.to_owned(),
            parameters: Some(Struct { fields }),
            requester_agent_id: token.to_owned(),
            created_at: Some(NOW),
            ..TaskMessage::default()
        };
        let task = Some(task);
        let publish = with(world, Some(token), PublishTaskRequest { task });
        client.publish_task(publish).await.unwrap();
    }
    let [ends, works] = published;
    let cancel = json!({"task_id": ends});
    world.call(token, "tasks.cancel", cancel).await;
    let claim = json!({"task_id": works, "worker": token, "lease_seconds": 300});
    let claims = world.call(token, "tasks.claim", claim).await;
    assert_eq!(claims["claims"].as_array().unwrap().len(), 1, "{claims}");
    let progress = Some(TaskProgress {
        task_id: works.clone(),
        status: TaskStatus::InProgress.into(),
        progress_percentage: 50,
        executor_agent_id: token.to_owned(),
        updated_at: Some(NOW),
        ..TaskProgress::default()
    });
    let progress = with(world, Some(token), PublishTaskProgressRequest { progress });
    client.publish_task_progress(progress).await.unwrap();
}

/// What is told first, if anything is.
pub(super) async fn first<T: Debug>(
    stream: Result<tonic::Response<Streaming<T>>, Status>,
) -> (u16, String) {
    let told = match stream {
        Err(status) => Err(status),
        Ok(stream) => {
            let mut stream = stream.into_inner();
            match timeout(SILENCE, stream.message()).await {
                Err(_) => Ok("nothing".to_owned()),
                Ok(message) => message.map(|it| format!("{it:?}")),
            }
        }
    };
    match told {
        Ok(text) => (200, text),
        Err(status) => refused(&status),
    }
}

/// A refusal, with the status that HTTP has for it.
pub(super) fn refused(status: &Status) -> (u16, String) {
    let known = [(Code::Unauthenticated, 401), (Code::PermissionDenied, 403)];
    let found = known.iter().find(|(code, _)| *code == status.code());
    let number = found.map_or(400, |(_, number)| *number);
    (number, format!("{:?}: {}", status.code(), status.message()))
}

/// The answer to a subscription: its first message, or that none came.
pub(super) async fn answer(world: &Callers, token: Option<&str>, inbox: &Inbox) -> (u16, String) {
    let mut client = client(world).await;
    let asked = SubscribeToTaskResultsRequest {
        requester_agent_id: inbox.requester.clone(),
        task_ids: inbox.ids.clone(),
    };
    let asked = with(world, token, asked);
    match inbox.of {
        Of::Results => first(client.subscribe_to_task_results(asked).await).await,
        Of::Progress => first(client.subscribe_to_task_progress(asked).await).await,
    }
}

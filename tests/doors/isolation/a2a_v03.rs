//! Version 0.3 of Agent2Agent over gRPC in the matrix: the operations that it has, asked as 1.0 names what they are
//! about.

use super::a2a::{self, Named};
use super::world::Callers;
use serde_json::Value;
use std::fmt::Debug;
use std::time::Duration;
use taskledger::application::api::UseCase;
use taskledger_a2a::Operation;
use taskledger_a2a::grpc::status;
use taskledger_a2a::grpc::values::struct_of;
use taskledger_a2a::v03::grpc::{A2aServiceClient, pb};
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status, Streaming};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What asks for these use cases of runs: as in 1.0, without lists, which 0.3 has none of.
pub(super) fn rows(case: UseCase, of: &Named<'_>) -> Vec<(Operation, Value)> {
    let mut rows = a2a::rows(case, of);
    rows.retain(|(operation, _)| *operation != Operation::ListTasks);
    rows
}

/// The status of HTTP that stands for the answer, and its text; of a stream the beginning.
pub(super) async fn answer(
    world: &Callers,
    token: Option<&str>,
    operation: Operation,
    request: &Value,
) -> (u16, String) {
    let channel = Endpoint::from_shared(world.url().to_owned()).unwrap();
    let client = A2aServiceClient::new(channel.connect().await.unwrap());
    let token = token.map(|name| world.token(name));
    match timeout(PATIENCE, asked(client, token, operation, request))
        .await
        .unwrap()
    {
        Ok(text) => (200, text),
        Err(refused) => {
            let status = if refused.code() == Code::Unauthenticated {
                401
            } else if refused.code() == Code::PermissionDenied {
                403
            } else {
                200
            };
            let (message, reasons) = (refused.message(), status::reasons(&refused));
            (
                status,
                format!("{:?}: {message} {reasons:?}", refused.code()),
            )
        }
    }
}

async fn asked(
    mut client: A2aServiceClient<Channel>,
    token: Option<&str>,
    operation: Operation,
    request: &Value,
) -> Result<String, Status> {
    let (task, id) = (text(request, "taskId"), text(request, "id"));
    let parent = format!("tasks/{task}");
    let config = format!("{parent}/pushNotificationConfigs/{id}");
    let named = format!("tasks/{id}");
    match operation {
        Operation::SendMessage => whole(client.send_message(shown(token, message(request))).await),
        Operation::SendStreamingMessage => {
            let message = shown(token, message(request));
            begun(client.send_streaming_message(message).await).await
        }
        Operation::GetTask => {
            let message = pb::GetTaskRequest {
                name: named,
                history_length: 0,
            };
            whole(client.get_task(shown(token, message)).await)
        }
        Operation::CancelTask => {
            let message = pb::CancelTaskRequest { name: named };
            whole(client.cancel_task(shown(token, message)).await)
        }
        Operation::SubscribeToTask => {
            let message = pb::TaskSubscriptionRequest { name: named };
            begun(client.task_subscription(shown(token, message)).await).await
        }
        Operation::CreateTaskPushNotificationConfig => {
            let given = pb::TaskPushNotificationConfig {
                name: config,
                push_notification_config: Some(pb::PushNotificationConfig {
                    id: id.clone(),
                    url: text(request, "url"),
                    ..pb::PushNotificationConfig::default()
                }),
            };
            let message = pb::CreateTaskPushNotificationConfigRequest {
                parent,
                config_id: id,
                config: Some(given),
            };
            let message = shown(token, message);
            whole(client.create_task_push_notification_config(message).await)
        }
        Operation::GetTaskPushNotificationConfig => {
            let message = pb::GetTaskPushNotificationConfigRequest { name: config };
            let message = shown(token, message);
            whole(client.get_task_push_notification_config(message).await)
        }
        Operation::ListTaskPushNotificationConfigs => {
            let message = pb::ListTaskPushNotificationConfigRequest {
                parent,
                ..pb::ListTaskPushNotificationConfigRequest::default()
            };
            let message = shown(token, message);
            whole(client.list_task_push_notification_config(message).await)
        }
        Operation::DeleteTaskPushNotificationConfig => {
            let message = pb::DeleteTaskPushNotificationConfigRequest { name: config };
            let message = shown(token, message);
            whole(client.delete_task_push_notification_config(message).await)
        }
        Operation::GetExtendedAgentCard => {
            let message = shown(token, pb::GetAgentCardRequest {});
            whole(client.get_agent_card(message).await)
        }
        Operation::ListTasks => panic!("0.3 lists no tasks"),
    }
}

fn text(request: &Value, member: &str) -> String {
    request[member].as_str().unwrap_or_default().to_owned()
}

/// The message of a request of 1.0.
fn message(request: &Value) -> pb::SendMessageRequest {
    let given = &request["message"];
    let part = |part: &Value| {
        let part = match part.get("data") {
            Some(data) => pb::part::Part::Data(pb::DataPart {
                data: Some(struct_of(data.as_object().unwrap().clone())),
            }),
            None => pb::part::Part::Text(text(part, "text")),
        };
        pb::Part {
            metadata: None,
            part: Some(part),
        }
    };
    let parts = given["parts"].as_array().unwrap();
    pb::SendMessageRequest {
        request: Some(pb::Message {
            message_id: text(given, "messageId"),
            task_id: text(given, "taskId"),
            role: pb::Role::User.into(),
            content: parts.iter().map(part).collect(),
            ..pb::Message::default()
        }),
        ..pb::SendMessageRequest::default()
    }
}

fn shown<T>(token: Option<&str>, message: T) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(token) = token {
        let bearer = format!("Bearer {token}").parse().unwrap();
        request.metadata_mut().insert("authorization", bearer);
    }
    request
}

fn whole<T: Debug>(answer: Result<Response<T>, Status>) -> Result<String, Status> {
    answer.map(|answer| format!("{:?}", answer.into_inner()))
}

async fn begun<T>(answer: Result<Response<Streaming<T>>, Status>) -> Result<String, Status> {
    let mut stream = answer?.into_inner();
    stream.message().await.map(|_| "a stream".to_owned())
}

//! The gRPC binding. Connections, credentials and time limits are the listener's.

use super::calls::{keyed, out_of_time};
use super::{A2a, Agreed, Heard, Outcome, Told};
use crate::transport::eventbus::Came;
use std::pin::Pin;
use std::sync::Arc;
use taskledger_a2a::grpc::json::Json;
use taskledger_a2a::grpc::{A2aService, pb, status, to};
use taskledger_a2a::operation::Answer;
use taskledger_a2a::{Error, ErrorKind, Operation, headers};
use tokio::time::{Instant, timeout_at};
use tokio_stream::{Stream, StreamExt};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Response, Status};

/// The metadata that makes a repetition harmless.
pub(super) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// [`A2a`], shared by all calls.
#[derive(Debug, Clone)]
pub(in super::super) struct Shared(pub(in super::super) Arc<A2a>);

/// Until when a call is answered that could wait, and does not: put into its extensions by the listener.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Within(pub(in super::super) Instant);

/// The items of a stream.
type Items = Pin<Box<dyn Stream<Item = Result<pb::StreamResponse, Status>> + Send>>;

impl Shared {
    async fn outcome<M: Json>(
        &self,
        operation: Operation,
        request: Request<M>,
    ) -> Result<(Outcome, Heard, Agreed), Error> {
        let (metadata, mut extensions, message) = request.into_parts();
        let came = extensions
            .remove::<Came>()
            .ok_or_else(|| Error::new(ErrorKind::Internal, "the call has no caller"))?;
        let text = |name: &str| metadata.get(name).and_then(|it| it.to_str().ok());
        let agreed = self
            .0
            .agreed(text(headers::VERSION), announced(&metadata))?;
        let call = operation.read(message.members())?;
        let within = (!call.waits()).then(|| extensions.remove::<Within>());
        let deadline = within.flatten().map(|it| it.0);
        let mut heard = Heard {
            context: keyed(came.context, text(IDEMPOTENCY_KEY))?,
            nodes: agreed.nodes,
            v03: false,
            ending: came.ending,
            last_event: text("last-event-id").map(Arc::from),
        };
        let outcome = match deadline {
            None => self.0.call(&heard, call).await?,
            Some(deadline) => {
                heard.context = heard.context.until(Some(deadline));
                let asked = timeout_at(deadline, self.0.call(&heard, call)).await;
                asked.unwrap_or_else(|_| Err(out_of_time()))?
            }
        };
        Ok((outcome, heard, agreed))
    }

    async fn answer<M: Json, T>(
        &self,
        operation: Operation,
        request: Request<M>,
        take: impl FnOnce(Answer) -> Option<T>,
    ) -> Result<Response<T>, Status> {
        let asked = self.outcome(operation, request).await;
        let (outcome, _, agreed) = asked.map_err(|error| self.refused(&error))?;
        let message = match outcome {
            Outcome::Answer(answer) => take(answer),
            Outcome::Stream(_) => None,
        };
        let message = message.ok_or_else(|| Status::internal("an answer of another kind"))?;
        Ok(with_extensions(message, &agreed))
    }

    async fn stream<M: Json>(
        &self,
        operation: Operation,
        request: Request<M>,
    ) -> Result<Response<Items>, Status> {
        let asked = self.outcome(operation, request).await;
        let (outcome, heard, agreed) = asked.map_err(|error| self.refused(&error))?;
        let Outcome::Stream(followed) = outcome else {
            return Err(Status::internal("an answer of another kind"));
        };
        let edition = self.0.edition();
        let told = followed.told(heard.ending);
        let items = told.filter_map(move |told| match told {
            Told::Item(_, item) => Some(Ok(to::item(*item))),
            Told::Silence => None,
            Told::Failed(error) => Some(Err(status::of(&error, edition))),
        });
        let items: Items = Box::pin(items);
        Ok(with_extensions(items, &agreed))
    }

    fn refused(&self, error: &Error) -> Status {
        status::of(error, self.0.edition())
    }
}

fn announced(metadata: &MetadataMap) -> impl Iterator<Item = &str> {
    let all = metadata.get_all(headers::EXTENSIONS).iter();
    all.filter_map(|it| it.to_str().ok())
}

fn with_extensions<T>(message: T, agreed: &Agreed) -> Response<T> {
    let mut response = Response::new(message);
    let echo = agreed.echo.as_deref();
    if let Some(value) = echo.and_then(|it| MetadataValue::try_from(it).ok()) {
        response.metadata_mut().insert(headers::EXTENSIONS, value);
    }
    response
}

fn task(answer: Answer) -> Option<pb::Task> {
    match answer {
        Answer::Task(it) => Some(to::task(it)),
        Answer::Sent(_)
        | Answer::Tasks(_)
        | Answer::PushConfig(_)
        | Answer::PushConfigs(_)
        | Answer::Deleted
        | Answer::Card(_) => None,
    }
}

fn push_config(answer: Answer) -> Option<pb::TaskPushNotificationConfig> {
    match answer {
        Answer::PushConfig(it) => Some(to::push_config(it)),
        Answer::Sent(_)
        | Answer::Task(_)
        | Answer::Tasks(_)
        | Answer::PushConfigs(_)
        | Answer::Deleted
        | Answer::Card(_) => None,
    }
}

#[tonic::async_trait]
impl A2aService for Shared {
    type SendStreamingMessageStream = Items;
    type SubscribeToTaskStream = Items;

    async fn send_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> Result<Response<pb::SendMessageResponse>, Status> {
        let take = |answer| match answer {
            Answer::Sent(it) => Some(to::sent(it)),
            Answer::Task(_)
            | Answer::Tasks(_)
            | Answer::PushConfig(_)
            | Answer::PushConfigs(_)
            | Answer::Deleted
            | Answer::Card(_) => None,
        };
        self.answer(Operation::SendMessage, request, take).await
    }

    async fn send_streaming_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> Result<Response<Items>, Status> {
        self.stream(Operation::SendStreamingMessage, request).await
    }

    async fn get_task(
        &self,
        request: Request<pb::GetTaskRequest>,
    ) -> Result<Response<pb::Task>, Status> {
        self.answer(Operation::GetTask, request, task).await
    }

    async fn list_tasks(
        &self,
        request: Request<pb::ListTasksRequest>,
    ) -> Result<Response<pb::ListTasksResponse>, Status> {
        let take = |answer| match answer {
            Answer::Tasks(it) => Some(to::tasks(it)),
            Answer::Sent(_)
            | Answer::Task(_)
            | Answer::PushConfig(_)
            | Answer::PushConfigs(_)
            | Answer::Deleted
            | Answer::Card(_) => None,
        };
        self.answer(Operation::ListTasks, request, take).await
    }

    async fn cancel_task(
        &self,
        request: Request<pb::CancelTaskRequest>,
    ) -> Result<Response<pb::Task>, Status> {
        self.answer(Operation::CancelTask, request, task).await
    }

    async fn subscribe_to_task(
        &self,
        request: Request<pb::SubscribeToTaskRequest>,
    ) -> Result<Response<Items>, Status> {
        self.stream(Operation::SubscribeToTask, request).await
    }

    async fn create_task_push_notification_config(
        &self,
        request: Request<pb::TaskPushNotificationConfig>,
    ) -> Result<Response<pb::TaskPushNotificationConfig>, Status> {
        let operation = Operation::CreateTaskPushNotificationConfig;
        self.answer(operation, request, push_config).await
    }

    async fn get_task_push_notification_config(
        &self,
        request: Request<pb::GetTaskPushNotificationConfigRequest>,
    ) -> Result<Response<pb::TaskPushNotificationConfig>, Status> {
        let operation = Operation::GetTaskPushNotificationConfig;
        self.answer(operation, request, push_config).await
    }

    async fn list_task_push_notification_configs(
        &self,
        request: Request<pb::ListTaskPushNotificationConfigsRequest>,
    ) -> Result<Response<pb::ListTaskPushNotificationConfigsResponse>, Status> {
        let take = |answer| match answer {
            Answer::PushConfigs(it) => Some(to::push_configs(it)),
            Answer::Sent(_)
            | Answer::Task(_)
            | Answer::Tasks(_)
            | Answer::PushConfig(_)
            | Answer::Deleted
            | Answer::Card(_) => None,
        };
        let operation = Operation::ListTaskPushNotificationConfigs;
        self.answer(operation, request, take).await
    }

    async fn get_extended_agent_card(
        &self,
        request: Request<pb::GetExtendedAgentCardRequest>,
    ) -> Result<Response<pb::AgentCard>, Status> {
        let take = |answer| match answer {
            Answer::Card(it) => Some(to::card(*it)),
            Answer::Sent(_)
            | Answer::Task(_)
            | Answer::Tasks(_)
            | Answer::PushConfig(_)
            | Answer::PushConfigs(_)
            | Answer::Deleted => None,
        };
        self.answer(Operation::GetExtendedAgentCard, request, take)
            .await
    }

    async fn delete_task_push_notification_config(
        &self,
        request: Request<pb::DeleteTaskPushNotificationConfigRequest>,
    ) -> Result<Response<()>, Status> {
        let take = |answer| match answer {
            Answer::Deleted => Some(()),
            Answer::Sent(_)
            | Answer::Task(_)
            | Answer::Tasks(_)
            | Answer::PushConfig(_)
            | Answer::PushConfigs(_)
            | Answer::Card(_) => None,
        };
        let operation = Operation::DeleteTaskPushNotificationConfig;
        self.answer(operation, request, take).await
    }
}

//! The gRPC binding of Agent2Agent. Connections, credentials and time limits are the listener's.

use super::calls::{keyed, out_of_time};
use super::{A2a, Agreed, Heard, Outcome, StreamEvent};
use crate::transport::eventbus::Came;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use taskledger_a2a::card::AgentCard;
use taskledger_a2a::grpc::json::Json;
use taskledger_a2a::grpc::{A2aService, pb, status, to};
use taskledger_a2a::operation::Answer;
use taskledger_a2a::{Error, ErrorKind, Operation, StreamResponse, headers};
use tokio::time::{Instant, timeout_at};
use tokio_stream::{Stream, StreamExt};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Response, Status};

/// The metadata that makes a repetition harmless.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// [`A2a`], shared by all calls.
#[derive(Debug, Clone)]
pub(in super::super) struct Shared(pub(in super::super) Arc<A2a>);

/// Until when a call is answered that could wait, and does not: put into its extensions by the listener.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Within(pub(in super::super) Instant);

/// The items of a stream.
pub(super) type Items<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// What a call brings beside its message.
pub(super) struct Brought {
    metadata: MetadataMap,
    came: Came,
    within: Option<Within>,
}

impl Brought {
    pub(super) fn of<M>(request: Request<M>) -> Result<(Self, M), Error> {
        let (metadata, mut extensions, message) = request.into_parts();
        let came = extensions.remove::<Came>();
        let brought = Self {
            metadata,
            came: came.ok_or_else(|| Error::new(ErrorKind::Internal, "the call has no caller"))?,
            within: extensions.remove::<Within>(),
        };
        Ok((brought, message))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.metadata.get(name)?.to_str().ok()
    }

    /// The version that was asked for.
    pub(super) fn version(&self) -> Option<&str> {
        self.text(headers::VERSION)
    }

    /// The extensions that were announced under these names.
    pub(super) fn announced<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
        let all = names.iter().flat_map(|name| self.metadata.get_all(*name));
        all.filter_map(|it| it.to_str().ok())
    }

    /// How the call is heard, and until when it is answered. `waits`: for as long as a run takes.
    pub(super) fn heard(
        self,
        agreed: &Agreed,
        waits: bool,
        v03: bool,
    ) -> Result<(Heard, Option<Instant>), Error> {
        // The message was read.
        self.came.turn.end();
        let last_event = self.text("last-event-id").map(Arc::from);
        let key = self.text(IDEMPOTENCY_KEY).map(str::to_owned);
        let mut context = keyed(self.came.context, key.as_deref())?;
        let deadline = self.within.filter(|_| !waits).map(|it| it.0);
        if deadline.is_some() {
            context = context.until(deadline);
        }
        let heard = Heard {
            context,
            nodes: agreed.nodes,
            v03,
            ending: self.came.ending,
            last_event,
        };
        Ok((heard, deadline))
    }
}

/// What comes of `work` until `deadline`.
pub(super) async fn in_time<T>(
    deadline: Option<Instant>,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match deadline {
        None => work.await,
        Some(deadline) => {
            let done = timeout_at(deadline, work).await;
            done.unwrap_or_else(|_| Err(out_of_time()))
        }
    }
}

/// The answer of a call that has one.
pub(super) fn answered<T>(
    outcome: Outcome,
    take: impl FnOnce(Answer) -> Option<T>,
) -> Result<T, Status> {
    let message = match outcome {
        Outcome::Answer(answer) => take(answer),
        Outcome::Stream(_) => None,
    };
    message.ok_or_else(other_kind)
}

/// The items of a call that is answered with many.
pub(super) fn items<T: 'static>(
    outcome: Outcome,
    heard: Heard,
    item: impl Fn(StreamResponse) -> T + Send + 'static,
    refused: impl Fn(Error) -> Status + Send + 'static,
) -> Result<Items<T>, Status> {
    let Outcome::Stream(followed) = outcome else {
        return Err(other_kind());
    };
    let told = followed.told(heard.ending);
    Ok(Box::pin(told.filter_map(move |told| match told {
        StreamEvent::Item(_, it) => Some(Ok(item(*it))),
        StreamEvent::Silence => None,
        StreamEvent::Failed(error) => Some(Err(refused(error))),
    })))
}

fn other_kind() -> Status {
    Status::internal("an answer of another kind")
}

/// A message with the extensions that are activated, under a name.
pub(super) fn with_extensions<T>(message: T, agreed: &Agreed, name: &'static str) -> Response<T> {
    let mut response = Response::new(message);
    let echo = agreed.echo.as_deref();
    if let Some(value) = echo.and_then(|it| MetadataValue::try_from(it).ok()) {
        response.metadata_mut().insert(name, value);
    }
    response
}

/// One kind of answer as a message.
macro_rules! taken {
    ($kind:ident, $to:expr) => {
        |answer| {
            let taskledger_a2a::operation::Answer::$kind(it) = answer else {
                return None;
            };
            Some($to(it))
        }
    };
}
pub(super) use taken;

impl Shared {
    async fn outcome<M: Json>(
        &self,
        operation: Operation,
        request: Request<M>,
    ) -> Result<(Outcome, Heard, Agreed), Error> {
        let (brought, message) = Brought::of(request)?;
        let announced = brought.announced(&[headers::EXTENSIONS]);
        let agreed = self.0.agreed(brought.version(), announced)?;
        let call = operation.read(message.members())?;
        let (heard, deadline) = brought.heard(&agreed, call.waits(), false)?;
        let outcome = in_time(deadline, self.0.call(&heard, call)).await?;
        Ok((outcome, heard, agreed))
    }

    async fn answer<M: Json, T>(
        &self,
        operation: Operation,
        request: Request<M>,
        take: impl FnOnce(Answer) -> Option<T>,
    ) -> Result<Response<T>, Status> {
        let asked = self.outcome(operation, request).await;
        let edition = self.0.edition();
        let (outcome, _, agreed) = asked.map_err(|error| status::of(&error, edition))?;
        let message = answered(outcome, take)?;
        Ok(with_extensions(message, &agreed, headers::EXTENSIONS))
    }

    async fn stream<M: Json>(
        &self,
        operation: Operation,
        request: Request<M>,
    ) -> Result<Response<Items<pb::StreamResponse>>, Status> {
        let asked = self.outcome(operation, request).await;
        let edition = self.0.edition();
        let refused = move |error| status::of(&error, edition);
        let (outcome, heard, agreed) = asked.map_err(refused)?;
        let items = items(outcome, heard, to::item, refused)?;
        Ok(with_extensions(items, &agreed, headers::EXTENSIONS))
    }
}

#[tonic::async_trait]
impl A2aService for Shared {
    type SendStreamingMessageStream = Items<pb::StreamResponse>;
    type SubscribeToTaskStream = Items<pb::StreamResponse>;

    async fn send_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> Result<Response<pb::SendMessageResponse>, Status> {
        let take = taken!(Sent, to::sent);
        self.answer(Operation::SendMessage, request, take).await
    }

    async fn send_streaming_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> Result<Response<Items<pb::StreamResponse>>, Status> {
        self.stream(Operation::SendStreamingMessage, request).await
    }

    async fn get_task(
        &self,
        request: Request<pb::GetTaskRequest>,
    ) -> Result<Response<pb::Task>, Status> {
        self.answer(Operation::GetTask, request, taken!(Task, to::task))
            .await
    }

    async fn list_tasks(
        &self,
        request: Request<pb::ListTasksRequest>,
    ) -> Result<Response<pb::ListTasksResponse>, Status> {
        let take = taken!(Tasks, to::tasks);
        self.answer(Operation::ListTasks, request, take).await
    }

    async fn cancel_task(
        &self,
        request: Request<pb::CancelTaskRequest>,
    ) -> Result<Response<pb::Task>, Status> {
        self.answer(Operation::CancelTask, request, taken!(Task, to::task))
            .await
    }

    async fn subscribe_to_task(
        &self,
        request: Request<pb::SubscribeToTaskRequest>,
    ) -> Result<Response<Items<pb::StreamResponse>>, Status> {
        self.stream(Operation::SubscribeToTask, request).await
    }

    async fn create_task_push_notification_config(
        &self,
        request: Request<pb::TaskPushNotificationConfig>,
    ) -> Result<Response<pb::TaskPushNotificationConfig>, Status> {
        let operation = Operation::CreateTaskPushNotificationConfig;
        self.answer(operation, request, taken!(PushConfig, to::push_config))
            .await
    }

    async fn get_task_push_notification_config(
        &self,
        request: Request<pb::GetTaskPushNotificationConfigRequest>,
    ) -> Result<Response<pb::TaskPushNotificationConfig>, Status> {
        let operation = Operation::GetTaskPushNotificationConfig;
        self.answer(operation, request, taken!(PushConfig, to::push_config))
            .await
    }

    async fn list_task_push_notification_configs(
        &self,
        request: Request<pb::ListTaskPushNotificationConfigsRequest>,
    ) -> Result<Response<pb::ListTaskPushNotificationConfigsResponse>, Status> {
        let take = taken!(PushConfigs, to::push_configs);
        let operation = Operation::ListTaskPushNotificationConfigs;
        self.answer(operation, request, take).await
    }

    async fn get_extended_agent_card(
        &self,
        request: Request<pb::GetExtendedAgentCardRequest>,
    ) -> Result<Response<pb::AgentCard>, Status> {
        let take = taken!(Card, |it: Box<AgentCard>| to::card(*it));
        self.answer(Operation::GetExtendedAgentCard, request, take)
            .await
    }

    async fn delete_task_push_notification_config(
        &self,
        request: Request<pb::DeleteTaskPushNotificationConfigRequest>,
    ) -> Result<Response<()>, Status> {
        let take = |answer| matches!(answer, Answer::Deleted).then_some(());
        let operation = Operation::DeleteTaskPushNotificationConfig;
        self.answer(operation, request, take).await
    }
}

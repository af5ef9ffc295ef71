//! The gRPC service of 0.3. Connections, credentials and time limits are the listener's.

use super::super::grpc::{IDEMPOTENCY_KEY, Within};
use super::super::{A2a, Agreed, Heard, Outcome, Told, keyed, out_of_time};
use super::card_of;
use crate::transport::eventbus::Came;
use std::pin::Pin;
use std::sync::Arc;
use taskledger_a2a::card::AgentCard;
use taskledger_a2a::grpc::status::with_code;
use taskledger_a2a::operation::{Answer, Call};
use taskledger_a2a::v03::grpc::{self as wire, A2aService, Old, pb};
use taskledger_a2a::v03::{self, Answering};
use taskledger_a2a::{Error, ErrorKind, Operation, headers};
use tokio::time::timeout_at;
use tokio_stream::{Stream, StreamExt};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Response, Status};

/// [`A2a`], shared by all calls.
#[derive(Debug, Clone)]
pub(in super::super::super) struct Shared(pub(in super::super::super) Arc<A2a>);

/// The items of a stream.
type Items = Pin<Box<dyn Stream<Item = Result<pb::StreamResponse, Status>> + Send>>;

/// What a call leads to, and how it is answered.
struct Asked {
    outcome: Outcome,
    heard: Heard,
    agreed: Agreed,
    answering: Answering,
}

impl Shared {
    async fn outcome<M: Old>(
        &self,
        operation: Operation,
        request: Request<M>,
    ) -> Result<Asked, Error> {
        let (metadata, mut extensions, message) = request.into_parts();
        let came = extensions
            .remove::<Came>()
            .ok_or_else(|| Error::new(ErrorKind::Internal, "the call has no caller"))?;
        let text = |name: &str| metadata.get(name).and_then(|it| it.to_str().ok());
        let agreed = self
            .0
            .agreed_v03(text(headers::VERSION), announced(&metadata))?;
        let asked = message.asked(operation);
        let answering = asked.answering;
        let call = asked.read()?;
        let within = (!call.waits()).then(|| extensions.remove::<Within>());
        let deadline = within.flatten().map(|it| it.0);
        let mut heard = Heard {
            context: keyed(came.context, text(IDEMPOTENCY_KEY))?,
            nodes: agreed.nodes,
            v03: true,
            ending: came.ending,
            last_event: text("last-event-id").map(Arc::from),
        };
        heard.context = heard.context.until(deadline);
        let outcome = match deadline {
            None => self.carried_out(&heard, operation, call).await?,
            Some(deadline) => {
                let asked = timeout_at(deadline, self.carried_out(&heard, operation, call)).await;
                asked.unwrap_or_else(|_| Err(out_of_time()))?
            }
        };
        Ok(Asked {
            outcome,
            heard,
            agreed,
            answering,
        })
    }

    async fn carried_out(
        &self,
        heard: &Heard,
        operation: Operation,
        call: Call,
    ) -> Result<Outcome, Error> {
        match card_of(&self.0, operation) {
            Some(card) => Ok(Outcome::Answer(card)),
            None => self.0.call(heard, call).await,
        }
    }

    async fn answer<M: Old, T>(
        &self,
        operation: Operation,
        request: Request<M>,
        take: impl FnOnce(Answer) -> Option<T>,
    ) -> Result<Response<T>, Status> {
        let asked = self.outcome(operation, request).await;
        let asked = asked.map_err(|error| refused(operation, error))?;
        let message = match asked.outcome {
            Outcome::Answer(answer) => take(answer),
            Outcome::Stream(_) => None,
        };
        let message = message.ok_or_else(|| Status::internal("an answer of another kind"))?;
        Ok(with_extensions(message, &asked.agreed))
    }

    async fn stream<M: Old>(
        &self,
        operation: Operation,
        request: Request<M>,
    ) -> Result<Response<Items>, Status> {
        let asked = self.outcome(operation, request).await;
        let asked = asked.map_err(|error| refused(operation, error))?;
        let Outcome::Stream(followed) = asked.outcome else {
            return Err(Status::internal("an answer of another kind"));
        };
        let answering = asked.answering;
        let told = followed.told(asked.heard.ending);
        let items = told.filter_map(move |told| match told {
            Told::Item(_, item) => Some(Ok(wire::item(*item, answering))),
            Told::Silence => None,
            Told::Failed(error) => Some(Err(refused(operation, error))),
        });
        let items: Items = Box::pin(items);
        Ok(with_extensions(items, &asked.agreed))
    }
}

fn refused(operation: Operation, error: Error) -> Status {
    let error = v03::error::of(operation, error);
    with_code(&error, v03::error::grpc_code(error.kind))
}

/// Extensions by the name of 0.3, and by that of later versions.
fn announced(metadata: &MetadataMap) -> impl Iterator<Item = &str> {
    let names = [v03::EXTENSIONS, headers::EXTENSIONS];
    let all = names
        .into_iter()
        .flat_map(|name| metadata.get_all(name).iter());
    all.filter_map(|it| it.to_str().ok())
}

fn with_extensions<T>(message: T, agreed: &Agreed) -> Response<T> {
    let mut response = Response::new(message);
    let echo = agreed.echo.as_deref();
    if let Some(value) = echo.and_then(|it| MetadataValue::try_from(it).ok()) {
        response.metadata_mut().insert(v03::EXTENSIONS, value);
    }
    response
}

/// One kind of answer as a message.
macro_rules! taken {
    ($kind:ident, $to:expr) => {
        |answer| {
            let Answer::$kind(it) = answer else {
                return None;
            };
            Some($to(it))
        }
    };
}

#[tonic::async_trait]
impl A2aService for Shared {
    type SendStreamingMessageStream = Items;
    type TaskSubscriptionStream = Items;

    async fn send_message(
        &self,
        request: Request<pb::SendMessageRequest>,
    ) -> Result<Response<pb::SendMessageResponse>, Status> {
        let take = taken!(Sent, wire::sent);
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
        let take = taken!(Task, wire::task);
        self.answer(Operation::GetTask, request, take).await
    }

    async fn cancel_task(
        &self,
        request: Request<pb::CancelTaskRequest>,
    ) -> Result<Response<pb::Task>, Status> {
        let take = taken!(Task, wire::task);
        self.answer(Operation::CancelTask, request, take).await
    }

    async fn task_subscription(
        &self,
        request: Request<pb::TaskSubscriptionRequest>,
    ) -> Result<Response<Items>, Status> {
        self.stream(Operation::SubscribeToTask, request).await
    }

    async fn create_task_push_notification_config(
        &self,
        request: Request<pb::CreateTaskPushNotificationConfigRequest>,
    ) -> Result<Response<pb::TaskPushNotificationConfig>, Status> {
        let operation = Operation::CreateTaskPushNotificationConfig;
        let take = taken!(PushConfig, wire::push_config);
        self.answer(operation, request, take).await
    }

    async fn get_task_push_notification_config(
        &self,
        request: Request<pb::GetTaskPushNotificationConfigRequest>,
    ) -> Result<Response<pb::TaskPushNotificationConfig>, Status> {
        let operation = Operation::GetTaskPushNotificationConfig;
        let take = taken!(PushConfig, wire::push_config);
        self.answer(operation, request, take).await
    }

    async fn list_task_push_notification_config(
        &self,
        request: Request<pb::ListTaskPushNotificationConfigRequest>,
    ) -> Result<Response<pb::ListTaskPushNotificationConfigResponse>, Status> {
        let operation = Operation::ListTaskPushNotificationConfigs;
        let take = taken!(PushConfigs, wire::push_configs);
        self.answer(operation, request, take).await
    }

    async fn get_agent_card(
        &self,
        request: Request<pb::GetAgentCardRequest>,
    ) -> Result<Response<pb::AgentCard>, Status> {
        let operation = Operation::GetExtendedAgentCard;
        let take = taken!(Card, |it: Box<AgentCard>| wire::card(*it));
        self.answer(operation, request, take).await
    }

    async fn delete_task_push_notification_config(
        &self,
        request: Request<pb::DeleteTaskPushNotificationConfigRequest>,
    ) -> Result<Response<()>, Status> {
        let operation = Operation::DeleteTaskPushNotificationConfig;
        let take = |answer| matches!(answer, Answer::Deleted).then_some(());
        self.answer(operation, request, take).await
    }
}

//! The gRPC service of 0.3. Connections, credentials and time limits are the listener's.

use super::super::grpc::{Brought, Items, answered, in_time, items, taken, with_extensions};
use super::super::{A2a, Agreed, Heard, Outcome};
use super::card_of;
use std::sync::Arc;
use taskledger_a2a::card::AgentCard;
use taskledger_a2a::grpc::status::with_code;
use taskledger_a2a::operation::Answer;
use taskledger_a2a::v03::grpc::{self as wire, A2aService, Old, pb};
use taskledger_a2a::v03::{self, Answering};
use taskledger_a2a::{Error, Operation, headers};
use tonic::{Request, Response, Status};

/// [`A2a`], shared by all calls.
#[derive(Debug, Clone)]
pub(in super::super::super) struct Shared(pub(in super::super::super) Arc<A2a>);

/// The extensions by the name of 0.3, and by that of later versions.
const EXTENSIONS: [&str; 2] = [v03::EXTENSIONS, headers::EXTENSIONS];

/// What a call leads to, and how it is answered.
struct GrpcCall {
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
    ) -> Result<GrpcCall, Error> {
        let (brought, message) = Brought::of(request)?;
        let announced = brought.announced(&EXTENSIONS);
        let agreed = self.0.agreed_v03(brought.version(), announced)?;
        let asked = message.asked(operation);
        let answering = asked.answering;
        let call = asked.read()?;
        let (heard, deadline) = brought.heard(&agreed, call.waits(), true)?;
        let outcome = match card_of(&self.0, operation) {
            Some(card) => Outcome::Answer(card),
            None => in_time(deadline, self.0.call(&heard, call)).await?,
        };
        Ok(GrpcCall {
            outcome,
            heard,
            agreed,
            answering,
        })
    }

    async fn answer<M: Old, T>(
        &self,
        operation: Operation,
        request: Request<M>,
        take: impl FnOnce(Answer) -> Option<T>,
    ) -> Result<Response<T>, Status> {
        let asked = self.outcome(operation, request).await;
        let asked = asked.map_err(|error| refused(operation, error))?;
        let message = answered(asked.outcome, take)?;
        Ok(with_extensions(message, &asked.agreed, v03::EXTENSIONS))
    }

    async fn stream<M: Old>(
        &self,
        operation: Operation,
        request: Request<M>,
    ) -> Result<Response<Items<pb::StreamResponse>>, Status> {
        let refused = move |error| refused(operation, error);
        let asked = self.outcome(operation, request).await.map_err(refused)?;
        let answering = asked.answering;
        let item = move |it| wire::item(it, answering);
        let items = items(asked.outcome, asked.heard, item, refused)?;
        Ok(with_extensions(items, &asked.agreed, v03::EXTENSIONS))
    }
}

fn refused(operation: Operation, error: Error) -> Status {
    let error = v03::error::to_grpc(v03::error::of(operation, error));
    with_code(&error, v03::error::grpc_code(error.kind))
}

#[tonic::async_trait]
impl A2aService for Shared {
    type SendStreamingMessageStream = Items<pb::StreamResponse>;
    type TaskSubscriptionStream = Items<pb::StreamResponse>;

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
    ) -> Result<Response<Items<pb::StreamResponse>>, Status> {
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
    ) -> Result<Response<Items<pb::StreamResponse>>, Status> {
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

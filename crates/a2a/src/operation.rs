//! The eleven operations, with their requests and answers.

use crate::card::AgentCard;
use crate::event::SendMessageResponse;
use crate::read::{Faults, Wire, whole};
use crate::request::{
    CancelTaskRequest, GetExtendedAgentCardRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    ListTasksRequest, ListTasksResponse, PushNotificationConfigRequest, SendMessageRequest,
    SubscribeToTaskRequest, TaskPushNotificationConfig,
};
use crate::task::Task;
use serde_json::{Map, Value};

/// The members that came with a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Given {
    /// The members of the request.
    pub members: Map<String, Value>,
    /// What the members cannot say, as it is no JSON.
    pub faults: Faults,
}

impl From<Map<String, Value>> for Given {
    fn from(members: Map<String, Value>) -> Self {
        Self {
            members,
            faults: Faults::default(),
        }
    }
}

/// The operations of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Says something and waits.
    SendMessage,
    /// Says something and follows what comes of it.
    SendStreamingMessage,
    /// Reads a task.
    GetTask,
    /// Lists tasks.
    ListTasks,
    /// Cancels a task.
    CancelTask,
    /// Follows a task.
    SubscribeToTask,
    /// Has changes of a task reported.
    CreateTaskPushNotificationConfig,
    /// Reads where they are reported.
    GetTaskPushNotificationConfig,
    /// Lists where they are reported.
    ListTaskPushNotificationConfigs,
    /// Has them not reported any more.
    DeleteTaskPushNotificationConfig,
    /// Reads the card for callers with credentials.
    GetExtendedAgentCard,
}

impl Operation {
    /// All variants.
    pub const ALL: [Self; 11] = [
        Self::SendMessage,
        Self::SendStreamingMessage,
        Self::GetTask,
        Self::ListTasks,
        Self::CancelTask,
        Self::SubscribeToTask,
        Self::CreateTaskPushNotificationConfig,
        Self::GetTaskPushNotificationConfig,
        Self::ListTaskPushNotificationConfigs,
        Self::DeleteTaskPushNotificationConfig,
        Self::GetExtendedAgentCard,
    ];

    /// Its name, as JSON-RPC and gRPC have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SendMessage => "SendMessage",
            Self::SendStreamingMessage => "SendStreamingMessage",
            Self::GetTask => "GetTask",
            Self::ListTasks => "ListTasks",
            Self::CancelTask => "CancelTask",
            Self::SubscribeToTask => "SubscribeToTask",
            Self::CreateTaskPushNotificationConfig => "CreateTaskPushNotificationConfig",
            Self::GetTaskPushNotificationConfig => "GetTaskPushNotificationConfig",
            Self::ListTaskPushNotificationConfigs => "ListTaskPushNotificationConfigs",
            Self::DeleteTaskPushNotificationConfig => "DeleteTaskPushNotificationConfig",
            Self::GetExtendedAgentCard => "GetExtendedAgentCard",
        }
    }

    /// The operation of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Whether it is answered with a stream.
    #[must_use]
    pub const fn streams(self) -> bool {
        match self {
            Self::SendStreamingMessage | Self::SubscribeToTask => true,
            Self::SendMessage
            | Self::GetTask
            | Self::ListTasks
            | Self::CancelTask
            | Self::CreateTaskPushNotificationConfig
            | Self::GetTaskPushNotificationConfig
            | Self::ListTaskPushNotificationConfigs
            | Self::DeleteTaskPushNotificationConfig
            | Self::GetExtendedAgentCard => false,
        }
    }

    /// Reads what it is asked with.
    ///
    /// # Errors
    /// All faults, with paths within the request.
    pub fn read(self, given: impl Into<Given>) -> Result<Call, Faults> {
        let Given {
            members,
            faults: mut all,
        } = given.into();
        match self.read_members(members) {
            Ok(call) if all.is_empty() => Ok(call),
            Ok(_) => Err(all),
            Err(found) => {
                all.more += found.more;
                found.listed.into_iter().for_each(|it| all.note(it));
                Err(all)
            }
        }
    }

    fn read_members(self, members: Map<String, Value>) -> Result<Call, Faults> {
        Ok(match self {
            Self::SendMessage => Call::SendMessage(whole(members, Wire::read)?),
            Self::SendStreamingMessage => Call::SendStreamingMessage(whole(members, Wire::read)?),
            Self::GetTask => Call::GetTask(whole(members, Wire::read)?),
            Self::ListTasks => Call::ListTasks(whole(members, Wire::read)?),
            Self::CancelTask => Call::CancelTask(whole(members, Wire::read)?),
            Self::SubscribeToTask => Call::SubscribeToTask(whole(members, Wire::read)?),
            Self::CreateTaskPushNotificationConfig => {
                // Here, and only here, the configuration must name its task.
                let config = whole(members, |from| {
                    let config = TaskPushNotificationConfig::read(from);
                    if config.as_ref().is_some_and(|it| it.task_id.is_none()) {
                        from.fault("taskId", "missing; a string that is not empty is required");
                    }
                    config
                })?;
                Call::CreatePushConfig(config)
            }
            Self::GetTaskPushNotificationConfig => Call::GetPushConfig(whole(members, Wire::read)?),
            Self::ListTaskPushNotificationConfigs => {
                Call::ListPushConfigs(whole(members, Wire::read)?)
            }
            Self::DeleteTaskPushNotificationConfig => {
                Call::DeletePushConfig(whole(members, Wire::read)?)
            }
            Self::GetExtendedAgentCard => Call::GetExtendedAgentCard(whole(members, Wire::read)?),
        })
    }
}

/// An operation with what it is asked with.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // one of them, on its way in
pub enum Call {
    /// Says something and waits.
    SendMessage(SendMessageRequest),
    /// Says something and follows what comes of it.
    SendStreamingMessage(SendMessageRequest),
    /// Reads a task.
    GetTask(GetTaskRequest),
    /// Lists tasks.
    ListTasks(ListTasksRequest),
    /// Cancels a task.
    CancelTask(CancelTaskRequest),
    /// Follows a task.
    SubscribeToTask(SubscribeToTaskRequest),
    /// Has changes of a task reported.
    CreatePushConfig(TaskPushNotificationConfig),
    /// Reads where they are reported.
    GetPushConfig(PushNotificationConfigRequest),
    /// Lists where they are reported.
    ListPushConfigs(ListTaskPushNotificationConfigsRequest),
    /// Has them not reported any more.
    DeletePushConfig(PushNotificationConfigRequest),
    /// Reads the card for callers with credentials.
    GetExtendedAgentCard(GetExtendedAgentCardRequest),
}

impl Call {
    /// Whether it is answered only once what it began has ended, or waits for its caller.
    #[must_use]
    pub const fn waits(&self) -> bool {
        match self {
            Self::SendMessage(request) => !request.configuration.return_immediately,
            Self::SendStreamingMessage(_)
            | Self::GetTask(_)
            | Self::ListTasks(_)
            | Self::CancelTask(_)
            | Self::SubscribeToTask(_)
            | Self::CreatePushConfig(_)
            | Self::GetPushConfig(_)
            | Self::ListPushConfigs(_)
            | Self::DeletePushConfig(_)
            | Self::GetExtendedAgentCard(_) => false,
        }
    }
}

/// The answer to a call that is not answered with a stream.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // one of them, on its way out
pub enum Answer {
    /// What a message has led to.
    Sent(SendMessageResponse),
    /// A single task.
    Task(Task),
    /// A page of tasks.
    Tasks(ListTasksResponse),
    /// Where changes are reported.
    PushConfig(TaskPushNotificationConfig),
    /// A page of those.
    PushConfigs(ListTaskPushNotificationConfigsResponse),
    /// It is deleted, or was not there.
    Deleted,
    /// The card for callers with credentials.
    Card(Box<AgentCard>),
}

impl Answer {
    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Sent(it) => it.to_json(),
            Self::Task(it) => it.to_json(),
            Self::Tasks(it) => it.to_json(),
            Self::PushConfig(it) => it.to_json(),
            Self::PushConfigs(it) => it.to_json(),
            Self::Deleted => Value::Object(Map::new()),
            Self::Card(it) => it.to_json(),
        }
    }
}

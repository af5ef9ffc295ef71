//! The requests of clients.

use crate::message::Message;
use crate::read::{Object, Wire};
use crate::task::{Task, TaskState};
use crate::write::{Members, time};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

/// Says something to the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct SendMessageRequest {
    /// The tenant whose agent is called.
    pub tenant: Option<String>,
    /// What is said.
    pub message: Message,
    /// How it is to be answered.
    pub configuration: SendMessageConfiguration,
    /// Free-form members, which the protocol does not interpret.
    pub metadata: Option<Map<String, Value>>,
}

/// Settings for the answer to a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SendMessageConfiguration {
    /// Media types that the client takes; empty: any.
    pub accepted_output_modes: Vec<String>,
    /// Where changes of the task are to be reported.
    pub task_push_notification_config: Option<TaskPushNotificationConfig>,
    /// How many messages of its history are wanted; `None`: the server's choice.
    pub history_length: Option<i32>,
    /// Whether the answer comes as soon as the task exists.
    pub return_immediately: bool,
}

impl Wire for SendMessageRequest {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let tenant = from.text("tenant");
        let message = from.required("message");
        let configuration = from.one("configuration").unwrap_or_default();
        let metadata = from.map("metadata");
        Some(Self {
            tenant,
            message: message?,
            configuration,
            metadata,
        })
    }

    fn write(&self) -> Map<String, Value> {
        let is_default = self.configuration == SendMessageConfiguration::default();
        Members::new()
            .text("tenant", self.tenant.as_deref())
            .one("message", Some(&self.message))
            .one(
                "configuration",
                (!is_default).then_some(&self.configuration),
            )
            .map("metadata", self.metadata.as_ref())
            .done()
    }
}

impl Wire for SendMessageConfiguration {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        Some(Self {
            accepted_output_modes: from.texts("acceptedOutputModes"),
            task_push_notification_config: from.one("taskPushNotificationConfig"),
            history_length: length(from),
            return_immediately: from.flag("returnImmediately").unwrap_or(false),
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .texts("acceptedOutputModes", &self.accepted_output_modes)
            .one(
                "taskPushNotificationConfig",
                self.task_push_notification_config.as_ref(),
            )
            .set("historyLength", self.history_length)
            .flag("returnImmediately", self.return_immediately)
            .done()
    }
}

/// How many messages of a history are wanted; not less than none.
fn length(from: &mut Object<'_>) -> Option<i32> {
    let length = from.int("historyLength")?;
    if length < 0 {
        from.fault(
            "historyLength",
            format!("{length} is given, 0 or more is required"),
        );
    }
    Some(length)
}

/// Reads a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetTaskRequest {
    /// The tenant whose agent is called.
    pub tenant: Option<String>,
    /// The id of the task to read.
    pub id: String,
    /// How many messages of its history are wanted.
    pub history_length: Option<i32>,
}

impl Wire for GetTaskRequest {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let tenant = from.text("tenant");
        let id = from.required_text("id");
        let history_length = length(from);
        Some(Self {
            tenant,
            id: id?,
            history_length,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .text("tenant", self.tenant.as_deref())
            .with("id", &*self.id)
            .set("historyLength", self.history_length)
            .done()
    }
}

/// Tasks of a page, unless said otherwise.
pub const PAGE_SIZE_DEFAULT: i32 = 50;
/// Tasks of a page at most.
pub const PAGE_SIZE_MAX: i32 = 100;

/// Lists tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListTasksRequest {
    /// The tenant whose agent is called.
    pub tenant: Option<String>,
    /// Only those of a conversation.
    pub context_id: Option<String>,
    /// Only those in a state.
    pub status: Option<TaskState>,
    /// How many, from 1 to [`PAGE_SIZE_MAX`].
    pub page_size: Option<i32>,
    /// The token that the previous page printed.
    pub page_token: Option<String>,
    /// How many messages of each history are wanted.
    pub history_length: Option<i32>,
    /// Only those whose status is of this time or later.
    pub status_timestamp_after: Option<DateTime<Utc>>,
    /// Whether they come with what they have made.
    pub include_artifacts: bool,
}

impl Wire for ListTasksRequest {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let page_size = from.int("pageSize");
        if let Some(size) = page_size.filter(|it| !(1..=PAGE_SIZE_MAX).contains(it)) {
            let reason = format!("{size} is given, a number from 1 to {PAGE_SIZE_MAX} is required");
            from.fault("pageSize", reason);
        }
        Some(Self {
            tenant: from.text("tenant"),
            context_id: from.text("contextId"),
            status: from.named("status"),
            page_size,
            page_token: from.text("pageToken"),
            history_length: length(from),
            status_timestamp_after: from.time("statusTimestampAfter"),
            include_artifacts: from.flag("includeArtifacts").unwrap_or(false),
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .text("tenant", self.tenant.as_deref())
            .text("contextId", self.context_id.as_deref())
            .set("status", self.status.map(crate::write::name_of))
            .set("pageSize", self.page_size)
            .text("pageToken", self.page_token.as_deref())
            .set("historyLength", self.history_length)
            .set(
                "statusTimestampAfter",
                self.status_timestamp_after.map(time),
            )
            .flag("includeArtifacts", self.include_artifacts)
            .done()
    }
}

/// A page of tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct ListTasksResponse {
    /// The tasks of this page.
    pub tasks: Vec<Task>,
    /// Where the next page begins; empty behind the last.
    pub next_page_token: String,
    /// How many tasks a page has.
    pub page_size: i32,
    /// How many there are on all pages.
    pub total_size: i32,
}

impl Wire for ListTasksResponse {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        Some(Self {
            tasks: from.many("tasks"),
            next_page_token: from.text("nextPageToken").unwrap_or_default(),
            page_size: from.int("pageSize").unwrap_or(0),
            total_size: from.int("totalSize").unwrap_or(0),
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .all("tasks", &self.tasks)
            .with("nextPageToken", &*self.next_page_token)
            .with("pageSize", self.page_size)
            .with("totalSize", self.total_size)
            .done()
    }
}

/// Cancels a task.
#[derive(Debug, Clone, PartialEq)]
pub struct CancelTaskRequest {
    /// The tenant whose agent is called.
    pub tenant: Option<String>,
    /// The id of the task to cancel.
    pub id: String,
    /// Free-form members, which the protocol does not interpret.
    pub metadata: Option<Map<String, Value>>,
}

impl Wire for CancelTaskRequest {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let tenant = from.text("tenant");
        let id = from.required_text("id");
        let metadata = from.map("metadata");
        Some(Self {
            tenant,
            id: id?,
            metadata,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .text("tenant", self.tenant.as_deref())
            .with("id", &*self.id)
            .map("metadata", self.metadata.as_ref())
            .done()
    }
}

/// Follows a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscribeToTaskRequest {
    /// The tenant whose agent is called.
    pub tenant: Option<String>,
    /// The id of the task to follow.
    pub id: String,
}

impl Wire for SubscribeToTaskRequest {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let tenant = from.text("tenant");
        let id = from.required_text("id");
        Some(Self { tenant, id: id? })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .text("tenant", self.tenant.as_deref())
            .with("id", &*self.id)
            .done()
    }
}

/// An address that changes of a task are reported to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPushNotificationConfig {
    /// The tenant whose agent is called.
    pub tenant: Option<String>,
    /// Unique within the task; by the client or the server.
    pub id: Option<String>,
    /// The id of the task that is reported; absent beside a message that begins one.
    pub task_id: Option<String>,
    /// The URL that updates are sent to.
    pub url: String,
    /// What comes along in a header.
    pub token: Option<String>,
    /// How the server authenticates itself there.
    pub authentication: Option<AuthenticationInfo>,
}

/// The credentials that the server shows a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthenticationInfo {
    /// The scheme of the header `Authorization`.
    pub scheme: String,
    /// What follows it.
    pub credentials: Option<String>,
}

impl Wire for TaskPushNotificationConfig {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let tenant = from.text("tenant");
        let id = from.text("id");
        let task_id = from.text("taskId");
        let url = from.required_text("url");
        let token = from.text("token");
        let authentication = from.one("authentication");
        Some(Self {
            tenant,
            id,
            task_id,
            url: url?,
            token,
            authentication,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .text("tenant", self.tenant.as_deref())
            .text("id", self.id.as_deref())
            .text("taskId", self.task_id.as_deref())
            .with("url", &*self.url)
            .text("token", self.token.as_deref())
            .one("authentication", self.authentication.as_ref())
            .done()
    }
}

impl Wire for AuthenticationInfo {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let scheme = from.required_text("scheme");
        let credentials = from.text("credentials");
        Some(Self {
            scheme: scheme?,
            credentials,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .with("scheme", &*self.scheme)
            .text("credentials", self.credentials.as_deref())
            .done()
    }
}

/// Names one configuration of a task: to read it or to delete it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushNotificationConfigRequest {
    /// The tenant whose agent is called.
    pub tenant: Option<String>,
    /// The id of the task that is reported.
    pub task_id: String,
    /// The configuration.
    pub id: String,
}

impl Wire for PushNotificationConfigRequest {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let tenant = from.text("tenant");
        let task_id = from.required_text("taskId");
        let id = from.required_text("id");
        Some(Self {
            tenant,
            task_id: task_id?,
            id: id?,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .text("tenant", self.tenant.as_deref())
            .with("taskId", &*self.task_id)
            .with("id", &*self.id)
            .done()
    }
}

/// Lists the configurations of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListTaskPushNotificationConfigsRequest {
    /// The tenant whose agent is called.
    pub tenant: Option<String>,
    /// The id of the task that is reported.
    pub task_id: String,
    /// How many; 0 and unset: the server's choice.
    pub page_size: Option<i32>,
    /// The token that the previous page printed.
    pub page_token: Option<String>,
}

impl Wire for ListTaskPushNotificationConfigsRequest {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let tenant = from.text("tenant");
        let task_id = from.required_text("taskId");
        let page_size = from.int("pageSize").filter(|it| *it != 0);
        if let Some(size) = page_size.filter(|it| *it < 0) {
            from.fault(
                "pageSize",
                format!("{size} is given, 0 or more is required"),
            );
        }
        let page_token = from.text("pageToken");
        Some(Self {
            tenant,
            task_id: task_id?,
            page_size,
            page_token,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .text("tenant", self.tenant.as_deref())
            .with("taskId", &*self.task_id)
            .set("pageSize", self.page_size)
            .text("pageToken", self.page_token.as_deref())
            .done()
    }
}

/// A page of configurations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListTaskPushNotificationConfigsResponse {
    /// The configurations.
    pub configs: Vec<TaskPushNotificationConfig>,
    /// Where the next page begins; empty behind the last.
    pub next_page_token: String,
}

impl Wire for ListTaskPushNotificationConfigsResponse {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        Some(Self {
            configs: from.many("configs"),
            next_page_token: from.text("nextPageToken").unwrap_or_default(),
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .all("configs", &self.configs)
            .with("nextPageToken", &*self.next_page_token)
            .done()
    }
}

/// Asks for the card that only callers with credentials see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetExtendedAgentCardRequest {
    /// The tenant whose agent is called.
    pub tenant: Option<String>,
}

impl Wire for GetExtendedAgentCardRequest {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        Some(Self {
            tenant: from.text("tenant"),
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new().text("tenant", self.tenant.as_deref()).done()
    }
}

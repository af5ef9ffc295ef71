//! The bindings, as clients speak them.

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::time::Duration;
use taskledger_a2a::grpc::json::Json;
use taskledger_a2a::grpc::values::timestamp_of;
use taskledger_a2a::grpc::{A2aServiceClient, pb, status, to};
use taskledger_a2a::request::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, SendMessageRequest,
    SubscribeToTaskRequest, TaskPushNotificationConfig,
};
use taskledger_a2a::{Operation, Wire};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// An error as every binding tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The reason of the first detail, and what this server calls it.
    pub(crate) reasons: Vec<String>,
    /// The fields of the request that are at fault.
    pub(crate) fields: Vec<String>,
}

/// A way to the agent.
#[async_trait]
pub(crate) trait Binding: Send {
    fn name(&self) -> &'static str;

    /// Asks, and awaits the answer.
    async fn ask(&mut self, operation: Operation, request: Value) -> Result<Value, Refused>;

    /// Asks, and reads the stream to its end. `begun` is told when it has begun.
    async fn follow(
        &mut self,
        operation: Operation,
        request: Value,
        begun: Begun,
    ) -> Result<Vec<Value>, Refused>;

    /// Asks, and reads the stream to its end.
    async fn stream(
        &mut self,
        operation: Operation,
        request: Value,
    ) -> Result<Vec<Value>, Refused> {
        self.follow(operation, request, None).await
    }
}

/// Is told that a stream has begun.
pub(crate) type Begun = Option<oneshot::Sender<()>>;

fn has_begun(begun: Begun) {
    if let Some(begun) = begun {
        // Nobody may wait for it any more.
        let _ = begun.send(());
    }
}

/// All of them, of the agent at this URL.
pub(crate) async fn all(url: &str) -> Vec<Box<dyn Binding>> {
    all_as(url, None).await
}

/// The same, with these credentials.
pub(crate) async fn all_as(url: &str, token: Option<&str>) -> Vec<Box<dyn Binding>> {
    let token = token.map(str::to_owned);
    let http = taskledger::tls::client().build().unwrap();
    let url = url.trim_end_matches('/').to_owned();
    let channel = Endpoint::from_shared(url.clone()).unwrap();
    let channel = channel.connect().await.unwrap();
    let rpc = |name, path: &str| Rpc {
        name,
        http: http.clone(),
        url: format!("{url}{path}"),
        token: token.clone(),
    };
    vec![
        Box::new(rpc("JSON-RPC at /a2a", "/a2a")),
        Box::new(rpc("JSON-RPC at /", "/")),
        Box::new(Rest {
            name: "HTTP+JSON",
            http: http.clone(),
            url: format!("{url}/a2a/rest"),
            token: token.clone(),
        }),
        Box::new(Rest {
            name: "HTTP+JSON of a tenant",
            http,
            url: format!("{url}/a2a/rest/acme"),
            token: token.clone(),
        }),
        Box::new(Grpc {
            client: A2aServiceClient::new(channel),
            token,
        }),
    ]
}

/// The details of an error, in JSON.
fn refused(details: &Value) -> Refused {
    let of_kind = |kind: &str| {
        let name = format!("type.googleapis.com/google.rpc.{kind}");
        let details = details.as_array().unwrap().iter();
        details
            .filter(|it| it["@type"] == name.as_str())
            .cloned()
            .collect::<Vec<_>>()
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let violations = of_kind("BadRequest");
    let violations = violations
        .iter()
        .flat_map(|it| it["fieldViolations"].as_array().unwrap());
    Refused {
        reasons: (of_kind("ErrorInfo").iter())
            .map(|it| text(&it["reason"]))
            .collect(),
        fields: violations.map(|it| text(&it["field"])).collect(),
    }
}

/// The data of events, whose stream has ended.
fn events(text: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|it| it.strip_prefix("data: "));
    lines.map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// The request with credentials.
fn shown(request: reqwest::RequestBuilder, token: Option<&str>) -> reqwest::RequestBuilder {
    match token {
        None => request,
        Some(token) => request.bearer_auth(token),
    }
}

struct Rpc {
    name: &'static str,
    http: reqwest::Client,
    url: String,
    token: Option<String>,
}

impl Rpc {
    async fn send(&self, operation: Operation, request: &Value) -> reqwest::Response {
        let call =
            json!({"jsonrpc": "2.0", "id": "c-1", "method": operation.name(), "params": request});
        let request = self.http.post(&self.url).header("a2a-version", "1.0");
        let response = shown(request, self.token.as_deref()).json(&call).send();
        let response = timeout(PATIENCE, response).await.unwrap().unwrap();
        // What concerns credentials is said by HTTP, too.
        assert!([200, 401, 403].contains(&response.status().as_u16()));
        response
    }
}

fn answered(mut answer: Value) -> Result<Value, Refused> {
    assert_eq!(answer["id"], "c-1", "{answer}");
    match answer.get("error") {
        None => Ok(answer["result"].take()),
        Some(error) => Err(refused(&error["data"])),
    }
}

#[async_trait]
impl Binding for Rpc {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn ask(&mut self, operation: Operation, request: Value) -> Result<Value, Refused> {
        answered(self.send(operation, &request).await.json().await.unwrap())
    }

    async fn follow(
        &mut self,
        operation: Operation,
        request: Value,
        begun: Begun,
    ) -> Result<Vec<Value>, Refused> {
        let response = self.send(operation, &request).await;
        let is_stream = response.headers()["content-type"] == "text/event-stream";
        has_begun(begun.filter(|_| is_stream));
        let text = timeout(PATIENCE, response.text()).await.unwrap().unwrap();
        if !is_stream {
            return answered(serde_json::from_str(&text).unwrap()).map(|it| panic!("{it}"));
        }
        events(&text).into_iter().map(answered).collect()
    }
}

struct Rest {
    name: &'static str,
    http: reqwest::Client,
    url: String,
    token: Option<String>,
}

impl Rest {
    async fn send(&self, operation: Operation, request: &Value) -> reqwest::Response {
        let text = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
        let (task, id) = (text("taskId"), text("id"));
        let configs = format!("/tasks/{task}/pushNotificationConfigs");
        let (method, path) = match operation {
            Operation::SendMessage => ("POST", "/message:send".to_owned()),
            Operation::SendStreamingMessage => ("POST", "/message:stream".to_owned()),
            Operation::GetTask => ("GET", format!("/tasks/{id}")),
            Operation::ListTasks => ("GET", "/tasks".to_owned()),
            Operation::CancelTask => ("POST", format!("/tasks/{id}:cancel")),
            Operation::SubscribeToTask => ("GET", format!("/tasks/{id}:subscribe")),
            Operation::CreateTaskPushNotificationConfig => ("POST", configs),
            Operation::GetTaskPushNotificationConfig => ("GET", format!("{configs}/{id}")),
            Operation::ListTaskPushNotificationConfigs => ("GET", configs),
            Operation::DeleteTaskPushNotificationConfig => ("DELETE", format!("{configs}/{id}")),
            Operation::GetExtendedAgentCard => ("GET", "/extendedAgentCard".to_owned()),
        };
        let url = format!("{}{path}", self.url);
        let asked = self.http.request(method.parse().unwrap(), url);
        let asked = shown(asked.header("a2a-version", "1.0"), self.token.as_deref());
        let asked = match method {
            "POST" => {
                let body = asked.header("content-type", "application/a2a+json");
                body.body(request.to_string())
            }
            _ => {
                let named = request.as_object().unwrap().iter();
                let named = named.filter(|(name, _)| !["id", "taskId"].contains(&name.as_str()));
                let query: Vec<(String, String)> = named
                    .map(|(name, value)| {
                        let text = value.as_str().map(str::to_owned);
                        (name.clone(), text.unwrap_or_else(|| value.to_string()))
                    })
                    .collect();
                asked.query(&query)
            }
        };
        timeout(PATIENCE, asked.send()).await.unwrap().unwrap()
    }
}

fn rest_answer(status: u16, mut answer: Value) -> Result<Value, Refused> {
    match answer.get_mut("error") {
        None => {
            assert_eq!(status, 200, "{answer}");
            Ok(answer)
        }
        Some(error) => {
            assert_eq!(error["code"], status, "{error}");
            Err(refused(&error["details"]))
        }
    }
}

#[async_trait]
impl Binding for Rest {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn ask(&mut self, operation: Operation, request: Value) -> Result<Value, Refused> {
        let response = self.send(operation, &request).await;
        assert_eq!(response.headers()["content-type"], "application/a2a+json");
        let status = response.status().as_u16();
        rest_answer(status, response.json().await.unwrap())
    }

    async fn follow(
        &mut self,
        operation: Operation,
        request: Value,
        begun: Begun,
    ) -> Result<Vec<Value>, Refused> {
        let response = self.send(operation, &request).await;
        let is_stream = response.headers()["content-type"] == "text/event-stream";
        has_begun(begun.filter(|_| is_stream));
        let status = response.status().as_u16();
        let text = timeout(PATIENCE, response.text()).await.unwrap().unwrap();
        if !is_stream {
            return rest_answer(status, serde_json::from_str(&text).unwrap())
                .map(|it| panic!("{it}"));
        }
        Ok(events(&text))
    }
}

struct Grpc {
    client: A2aServiceClient<Channel>,
    token: Option<String>,
}

pub(super) fn with_version<T>(message: T, token: Option<&str>) -> Request<T> {
    let mut request = Request::new(message);
    let version = "1.0".parse().unwrap();
    request.metadata_mut().insert("a2a-version", version);
    if let Some(token) = token {
        let value = format!("Bearer {token}").parse().unwrap();
        request.metadata_mut().insert("authorization", value);
    }
    request
}

fn told(status: &Status) -> Refused {
    Refused {
        reasons: (status::reasons(status).into_iter())
            .map(|(reason, _)| reason)
            .collect(),
        fields: (status::faults(status).into_iter())
            .map(|it| it.field)
            .collect(),
    }
}

/// The request as its message; what the reader of this crate refuses cannot be said in gRPC either.
fn read<T: Wire>(request: Value) -> T {
    T::from_json(request).unwrap_or_else(|faults| panic!("{faults:?}"))
}

pub(super) fn send_message(request: Value) -> pb::SendMessageRequest {
    let request: SendMessageRequest = read(request);
    let given = request.configuration;
    pb::SendMessageRequest {
        tenant: request.tenant.unwrap_or_default(),
        message: Some(to::message(request.message)),
        configuration: Some(pb::SendMessageConfiguration {
            accepted_output_modes: given.accepted_output_modes,
            task_push_notification_config: given.task_push_notification_config.map(to::push_config),
            history_length: given.history_length,
            return_immediately: given.return_immediately,
        }),
        metadata: request
            .metadata
            .map(taskledger_a2a::grpc::values::struct_of),
    }
}

#[async_trait]
impl Binding for Grpc {
    fn name(&self) -> &'static str {
        "gRPC"
    }

    async fn ask(&mut self, operation: Operation, request: Value) -> Result<Value, Refused> {
        let text = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
        let (task_id, id) = (text("taskId"), text("id"));
        let token = self.token.as_deref();
        macro_rules! asked {
            ($call:ident, $message:expr) => {{
                let asked = self.client.$call(with_version($message, token));
                let answer = timeout(PATIENCE, asked).await.unwrap();
                answer.map(|it| it.into_inner().members())
            }};
        }
        let tenant = String::new();
        let answer: Result<Map<String, Value>, Status> = match operation {
            Operation::SendMessage => asked!(send_message, send_message(request)),
            Operation::GetTask => {
                let it: GetTaskRequest = read(request);
                let history_length = it.history_length;
                asked!(
                    get_task,
                    pb::GetTaskRequest {
                        tenant,
                        id,
                        history_length
                    }
                )
            }
            Operation::ListTasks => {
                let it: ListTasksRequest = read(request);
                let message = pb::ListTasksRequest {
                    context_id: it.context_id.unwrap_or_default(),
                    status: it.status.map(taskledger_a2a::write::number_of).unwrap_or(0),
                    page_size: it.page_size,
                    page_token: it.page_token.unwrap_or_default(),
                    history_length: it.history_length,
                    status_timestamp_after: it.status_timestamp_after.map(timestamp_of),
                    include_artifacts: Some(it.include_artifacts),
                    ..pb::ListTasksRequest::default()
                };
                asked!(list_tasks, message).map(|mut members| {
                    // What gRPC leaves out because it is a default.
                    members.entry("tasks").or_insert_with(|| json!([]));
                    members.entry("nextPageToken").or_insert_with(|| json!(""));
                    members.entry("totalSize").or_insert_with(|| json!(0));
                    members
                })
            }
            Operation::CancelTask => {
                let _: CancelTaskRequest = read(request);
                let metadata = None;
                asked!(
                    cancel_task,
                    pb::CancelTaskRequest {
                        tenant,
                        id,
                        metadata
                    }
                )
            }
            Operation::CreateTaskPushNotificationConfig => {
                let it: TaskPushNotificationConfig = read(request);
                asked!(create_task_push_notification_config, to::push_config(it))
            }
            Operation::GetTaskPushNotificationConfig => {
                let message = pb::GetTaskPushNotificationConfigRequest {
                    tenant,
                    task_id,
                    id,
                };
                asked!(get_task_push_notification_config, message)
            }
            Operation::ListTaskPushNotificationConfigs => {
                let message = pb::ListTaskPushNotificationConfigsRequest {
                    task_id,
                    ..pb::ListTaskPushNotificationConfigsRequest::default()
                };
                asked!(list_task_push_notification_configs, message).map(|mut members| {
                    members.entry("nextPageToken").or_insert_with(|| json!(""));
                    members
                })
            }
            Operation::DeleteTaskPushNotificationConfig => {
                let message = pb::DeleteTaskPushNotificationConfigRequest {
                    tenant,
                    task_id,
                    id,
                };
                let message = with_version(message, token);
                let asked = self.client.delete_task_push_notification_config(message);
                asked.await.map(|_| Map::new())
            }
            Operation::GetExtendedAgentCard => {
                let message = pb::GetExtendedAgentCardRequest { tenant };
                let message = with_version(message, token);
                let asked = self.client.get_extended_agent_card(message);
                asked.await.map(|it| {
                    let name = it.into_inner().name;
                    Map::from_iter([("name".to_owned(), Value::from(name))])
                })
            }
            Operation::SendStreamingMessage | Operation::SubscribeToTask => panic!("a stream"),
        };
        answer.map(Value::Object).map_err(|status| told(&status))
    }

    async fn follow(
        &mut self,
        operation: Operation,
        request: Value,
        begun: Begun,
    ) -> Result<Vec<Value>, Refused> {
        let token = self.token.as_deref();
        let stream = match operation {
            Operation::SendStreamingMessage => {
                let message = with_version(send_message(request), token);
                self.client.send_streaming_message(message).await
            }
            Operation::SubscribeToTask => {
                let it: SubscribeToTaskRequest = read(request);
                let message = pb::SubscribeToTaskRequest {
                    tenant: String::new(),
                    id: it.id,
                };
                self.client
                    .subscribe_to_task(with_version(message, token))
                    .await
            }
            Operation::SendMessage
            | Operation::GetTask
            | Operation::ListTasks
            | Operation::CancelTask
            | Operation::CreateTaskPushNotificationConfig
            | Operation::GetTaskPushNotificationConfig
            | Operation::ListTaskPushNotificationConfigs
            | Operation::DeleteTaskPushNotificationConfig
            | Operation::GetExtendedAgentCard => panic!("no stream"),
        };
        let mut stream = stream.map_err(|status| told(&status))?.into_inner();
        has_begun(begun);
        let mut items = Vec::new();
        loop {
            let item = timeout(PATIENCE, stream.message()).await.unwrap();
            match item.map_err(|status| told(&status))? {
                Some(item) => items.push(Value::Object(item.members())),
                None => return Ok(items),
            }
        }
    }
}

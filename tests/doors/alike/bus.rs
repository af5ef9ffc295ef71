//! Workers of the EventBus beside those of JSON-RPC: what a worker takes, says and ends through either leaves the same
//! behind in the task, its history and its stream, and is refused alike.

use super::normal::Normal;
use crate::streams::sse;
use async_trait::async_trait;
use prost_types::{Struct, Timestamp};
use serde_json::{Value, json};
use taskledger::clock::{Clock, SystemClock};
use taskledger_eventbus::{
    EventBusClient, PublishTaskProgressRequest, PublishTaskResultRequest, SubscribeToTasksRequest,
    TaskMessage, TaskProgress, TaskResult, TaskStatus,
};
use taskledger_testkit::server::Api;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

/// What came of something that a worker said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    Done,
    /// The task is not the worker's any more.
    Over,
}

/// A worker of one method, who holds one task at a time.
#[async_trait(?Send)]
trait Worker {
    fn name(&self) -> &'static str;
    /// Takes the next task.
    async fn take(&mut self) -> String;
    /// Says that the task is half done.
    async fn half(&mut self, task: &str) -> Heard;
    async fn complete(&mut self, task: &str, text: &str) -> Heard;
    async fn fail(&mut self, task: &str, error: &str) -> Heard;
}

/// A worker that claims, over HTTP.
struct Claimer {
    api: Api,
    name: String,
    method: String,
    lease: String,
}

impl Claimer {
    async fn says(&self, method: &str, task: &str, more: Value) -> Heard {
        let mut params = json!({"task_id": task, "lease": self.lease});
        let members = params.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (_, answer) = self.api.post(call.to_string()).await.unwrap();
        match answer["error"]["code"].as_i64() {
            None if answer["result"]["stop"].is_object() => Heard::Over,
            None => Heard::Done,
            Some(-31010) => Heard::Over,
            Some(other) => panic!("{method}: {other}: {answer}"),
        }
    }
}

#[async_trait(?Send)]
impl Worker for Claimer {
    fn name(&self) -> &'static str {
        "by calls"
    }

    async fn take(&mut self) -> String {
        let wanted = json!({"methods": [self.method], "worker": self.name, "wait_seconds": 20});
        let claimed = self.api.call("tasks.claim", wanted).await;
        let claim = &claimed["claims"][0];
        self.lease = claim["lease"]["token"].as_str().unwrap().to_owned();
        claim["task"]["id"].as_str().unwrap().to_owned()
    }

    async fn half(&mut self, task: &str) -> Heard {
        let said = json!({"progress": 0.5, "message": "half"});
        self.says("tasks.renew", task, said).await
    }

    async fn complete(&mut self, task: &str, text: &str) -> Heard {
        let output = json!({"output": {"text": text}});
        self.says("tasks.complete", task, output).await
    }

    async fn fail(&mut self, task: &str, error: &str) -> Heard {
        let failed = json!({"error": error, "retryable": true});
        self.says("tasks.fail", task, failed).await
    }
}

/// An agent of the EventBus.
struct Agent {
    client: EventBusClient<Channel>,
    tasks: Streaming<TaskMessage>,
    name: String,
}

/// Two ends in the same words are one that is told again, unless their times differ.
fn now() -> Timestamp {
    let micros = SystemClock::default().now().0;
    Timestamp {
        seconds: micros.div_euclid(1_000_000),
        nanos: i32::try_from(micros.rem_euclid(1_000_000) * 1_000).unwrap(),
    }
}

impl Agent {
    async fn subscribed(api: &Api, name: &str, method: &str) -> Self {
        let url = api.url.trim_end_matches('/').to_owned();
        let channel = Endpoint::from_shared(url).unwrap().connect().await.unwrap();
        let mut client = EventBusClient::new(channel);
        let wanted = SubscribeToTasksRequest {
            agent_id: name.to_owned(),
            task_types: vec![method.to_owned()],
        };
        let tasks = client.subscribe_to_tasks(wanted).await.unwrap();
        Self {
            client,
            tasks: tasks.into_inner(),
            name: name.to_owned(),
        }
    }

    async fn ends(&mut self, task: &str, status: TaskStatus, text: &str, error: &str) -> Heard {
        let fields = [("text".to_owned(), text.to_owned().into())].into();
        let is_completed = status == TaskStatus::Completed;
        let result = TaskResult {
            task_id: task.to_owned(),
            status: status.into(),
            result: is_completed.then_some(Struct { fields }),
            error_message: error.to_owned(),
            executor_agent_id: self.name.clone(),
            completed_at: Some(now()),
            execution_metadata: None,
        };
        let request = PublishTaskResultRequest {
            result: Some(result),
        };
        heard(self.client.publish_task_result(request).await)
    }
}

fn heard<T>(answer: Result<T, Status>) -> Heard {
    match answer.map_err(|status| (status.code(), status)) {
        Ok(_) => Heard::Done,
        Err((Code::FailedPrecondition, _)) => Heard::Over,
        Err((_, status)) => panic!("{status}"),
    }
}

#[async_trait(?Send)]
impl Worker for Agent {
    fn name(&self) -> &'static str {
        "through the EventBus"
    }

    async fn take(&mut self) -> String {
        let told = timeout(sse::PATIENCE, self.tasks.message()).await;
        told.expect("a task comes").unwrap().unwrap().task_id
    }

    async fn half(&mut self, task: &str) -> Heard {
        let progress = TaskProgress {
            task_id: task.to_owned(),
            status: TaskStatus::InProgress.into(),
            progress_message: "half".to_owned(),
            progress_percentage: 50,
            progress_data: None,
            executor_agent_id: self.name.clone(),
            updated_at: Some(now()),
        };
        let request = PublishTaskProgressRequest {
            progress: Some(progress),
        };
        heard(self.client.publish_task_progress(request).await)
    }

    async fn complete(&mut self, task: &str, text: &str) -> Heard {
        self.ends(task, TaskStatus::Completed, text, "").await
    }

    async fn fail(&mut self, task: &str, error: &str) -> Heard {
        self.ends(task, TaskStatus::Failed, "", error).await
    }
}

/// What a worker does with a task, one thing after the other.
#[derive(Debug, Clone, Copy)]
enum Step {
    Take,
    Half(Heard),
    Complete(&'static str, Heard),
    Fail(Heard),
    /// Somebody cancels the task.
    Cancelled,
}

const CASES: [(&str, &[Step]); 4] = [
    (
        "a task is completed, once",
        &[
            Step::Take,
            Step::Half(Heard::Done),
            Step::Complete("one", Heard::Done),
            Step::Complete("one", Heard::Done),
            Step::Complete("two", Heard::Over),
            Step::Half(Heard::Over),
        ],
    ),
    (
        "a task fails, is tried again and completed",
        &[
            Step::Take,
            Step::Fail(Heard::Done),
            Step::Take,
            Step::Complete("one", Heard::Done),
        ],
    ),
    (
        "a task fails as often as it may",
        &[
            Step::Take,
            Step::Fail(Heard::Done),
            Step::Take,
            Step::Half(Heard::Done),
            Step::Fail(Heard::Done),
            Step::Complete("late", Heard::Over),
        ],
    ),
    (
        "a task is taken back",
        &[
            Step::Take,
            Step::Cancelled,
            Step::Complete("late", Heard::Over),
            Step::Fail(Heard::Over),
        ],
    ),
];

/// Takes out which call caused an event: all that is taken from one stream of an agent is of one call.
fn without_calls(left: &mut Value) {
    match left {
        Value::Object(members) => {
            members.remove("correlation_id");
            members.values_mut().for_each(without_calls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_calls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What is left of a run of one task that a worker does.
async fn left(api: &Api, worker: &mut dyn Worker, method: &str, steps: &[Step]) -> String {
    let task = json!({"id": "far", "name": "far", "params": {"retry_count": 1},
        "schemas": {"type": "remote", "method": method}});
    let run = api.call("tasks.execute", json!({"tasks": [task]})).await;
    let root = run["root_task_id"].as_str().unwrap().to_owned();
    for step in steps {
        let (heard, expected) = match step {
            Step::Take => {
                assert_eq!(worker.take().await, root);
                continue;
            }
            Step::Cancelled => {
                api.call("tasks.cancel", json!({"task_id": root})).await;
                continue;
            }
            Step::Half(expected) => (worker.half(&root).await, expected),
            Step::Complete(text, expected) => (worker.complete(&root, text).await, expected),
            Step::Fail(expected) => (worker.fail(&root, "no paper").await, expected),
        };
        assert_eq!(heard, *expected, "{step:?} of {steps:?}, {}", worker.name());
    }
    let mut left = vec![Value::Array(super::door::events(api, &root).await)];
    for method in ["tasks.get", "tasks.history", "tasks.explain"] {
        left.push(api.call(method, json!({"task_id": root})).await);
    }
    let mut left = Value::Array(left);
    without_calls(&mut left);
    let mut normal = Normal::new(method);
    format!("{:#}", normal.value(left))
}

/// Whatever a worker does through the EventBus is as if he had done it by calls.
pub(super) async fn assert_alike(api: &Api) {
    for (number, (name, steps)) in CASES.iter().enumerate() {
        let clock = SystemClock::default();
        let methods = [(); 2].map(|()| format!("of-case-{number}-{}", clock.uuid()));
        let mut claimer = Claimer {
            api: api.clone(),
            name: "w".to_owned(),
            method: methods[0].clone(),
            lease: String::new(),
        };
        let mut agent = Agent::subscribed(api, "w", &methods[1]).await;
        let by_calls = left(api, &mut claimer, &methods[0], steps).await;
        let by_bus = left(api, &mut agent, &methods[1], steps).await;
        let different = by_bus.lines().zip(by_calls.lines()).find(|(a, b)| a != b);
        assert!(
            by_bus == by_calls,
            "`{name}`: {different:#?}\n{by_bus}\n{by_calls}"
        );
    }
}

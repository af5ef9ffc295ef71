//! One table of scenarios of Agent2Agent through each of its bindings, on one server and on every node: whatever the
//! binding, the server does the same and says the same. Answers are compared after ids and times were replaced.

use super::normal::Normal;
use crate::a2a::binding::{Binding, Refused, all};
use crate::webhooks::site::arguments;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use taskledger_a2a::Operation::{
    self, CancelTask, CreateTaskPushNotificationConfig as CreatePush,
    DeleteTaskPushNotificationConfig as DeletePush, GetExtendedAgentCard, GetTask,
    GetTaskPushNotificationConfig as GetPush, ListTaskPushNotificationConfigs as ListPush,
    ListTasks, SendMessage, SendStreamingMessage, SubscribeToTask,
};
use taskledger_testkit::cluster::Cluster;
use taskledger_testkit::server::{Folder, Server};
use tokio::sync::oneshot;

const UNKNOWN: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

/// What must come of a step.
#[derive(Debug, Clone, Copy)]
enum Expected {
    Done,
    /// A refusal with this reason first.
    Refused(&'static str),
}

/// One step. `{name}` in a request is what an earlier step has learned under that name.
#[derive(Debug)]
struct Step {
    operation: Operation,
    request: Value,
    expected: Expected,
    /// A name, and where in the answer its value stands.
    learns: Option<(&'static str, &'static str)>,
    /// What is asked once the stream of this step has begun.
    meanwhile: Option<(Operation, Value)>,
}

/// Steps that are taken one after the other.
struct Case {
    name: &'static str,
    steps: Vec<Step>,
}

fn done(operation: Operation, request: Value) -> Step {
    Step {
        operation,
        request,
        expected: Expected::Done,
        learns: None,
        meanwhile: None,
    }
}

fn refused(reason: &'static str, operation: Operation, request: Value) -> Step {
    Step {
        expected: Expected::Refused(reason),
        ..done(operation, request)
    }
}

impl Step {
    fn learning(mut self, name: &'static str, at: &'static str) -> Self {
        self.learns = Some((name, at));
        self
    }

    fn while_asking(mut self, operation: Operation, request: Value) -> Self {
        self.meanwhile = Some((operation, request));
        self
    }
}

/// A message in the case's own context.
fn message(parts: Value) -> Value {
    json!({"message": {"messageId": "m-1", "role": "ROLE_USER", "contextId": "{context}", "parts": parts}})
}

fn runs(tasks: Value) -> Value {
    message(json!([{"text": "please"}, {"data": {"tasks": tasks}}]))
}

/// A message to the task that the case calls so.
fn says(task: &str, id: &str, text: &str) -> Value {
    json!({"message": {"messageId": id, "role": "ROLE_USER", "taskId": task, "parts": [{"text": text}]}})
}

fn echo(name: &str) -> Value {
    json!({"id": name, "name": name, "schemas": {"method": "echo_executor"}, "inputs": {"text": name, "n": 7, "x": 0.5}})
}

fn asks() -> Value {
    json!({"name": "ask", "schemas": {"method": "approval_executor"},
        "inputs": {"question": "Which colour?", "response_type": "choice", "choices": [{"value": "red"}, {"value": "blue"}]}})
}

fn id(task: &str) -> Value {
    json!({"id": task})
}

fn cases() -> Vec<Case> {
    let mut cases = lives();
    cases.extend(receivers());
    cases.extend(errors());
    cases
}

fn lives() -> Vec<Case> {
    let tree = json!([
        {"id": "all", "name": "all"},
        {"id": "first", "name": "first", "parent_id": "all", "schemas": {"method": "echo_executor"}, "inputs": {"a": [1, null]}},
        {"id": "second", "name": "second", "parent_id": "all", "dependencies": [{"id": "first"}],
            "schemas": {"method": "echo_executor"}, "inputs": {"b": {"c": true}}}]);
    let failing = json!([{"name": "late", "schemas": {"method": "sleep_executor"},
        "inputs": {"duration_ms": 600_000}, "params": {"timeout_seconds": 0.05}}]);
    let list = |more: Value| {
        let mut filter = json!({"contextId": "{context}"});
        let more = more.as_object().cloned().unwrap_or_default();
        filter.as_object_mut().unwrap().extend(more);
        filter
    };
    let over = "UNSUPPORTED_OPERATION";
    vec![
        Case {
            name: "a task is sent, read, listed and over",
            steps: vec![
                done(SendMessage, runs(json!([echo("a")]))).learning("task", "/task/id"),
                done(GetTask, id("{task}")),
                done(GetTask, json!({"id": "{task}", "historyLength": 0})),
                done(ListTasks, list(json!({}))),
                done(
                    ListTasks,
                    list(json!({"includeArtifacts": true, "historyLength": 1})),
                ),
                done(ListTasks, list(json!({"status": "TASK_STATE_WORKING"}))),
                refused(over, SubscribeToTask, id("{task}")),
                refused("TASK_NOT_CANCELABLE", CancelTask, id("{task}")),
                refused(over, SendMessage, says("{task}", "m-2", "more")),
            ],
        },
        Case {
            name: "a tree is run, and each of its tasks returns something",
            steps: vec![
                done(SendMessage, runs(tree)).learning("task", "/task/id"),
                done(GetTask, id("{task}")),
            ],
        },
        Case {
            name: "a task fails, and says why",
            steps: vec![
                done(SendMessage, runs(failing)).learning("task", "/task/id"),
                done(GetTask, id("{task}")),
            ],
        },
        Case {
            name: "a question is answered, and everybody who follows is told the same",
            steps: vec![
                done(SendStreamingMessage, message(json!([{"text": "hello"}]))),
                done(SendMessage, runs(json!([asks()]))).learning("task", "/task/id"),
                refused("INVALID_PARAMS", SendMessage, {
                    let mut elsewhere = says("{task}", "m-2", "red");
                    elsewhere["message"]["contextId"] = json!("another");
                    elsewhere
                }),
                refused(
                    "INVALID_PARAMS",
                    SendMessage,
                    says("{task}", "m-2", "green"),
                ),
                done(SubscribeToTask, id("{task}"))
                    .while_asking(SendMessage, says("{task}", "m-3", "blue")),
                // Repeated, it changes nothing.
                done(SendMessage, says("{task}", "m-3", "blue")),
                done(GetTask, id("{task}")),
            ],
        },
        Case {
            name: "a task that waits is cancelled once",
            steps: vec![
                done(SendMessage, runs(json!([asks()]))).learning("task", "/task/id"),
                done(SubscribeToTask, id("{task}")).while_asking(CancelTask, id("{task}")),
                refused("TASK_NOT_CANCELABLE", CancelTask, id("{task}")),
                done(GetTask, id("{task}")),
            ],
        },
        Case {
            name: "a stored task is run, and run again",
            steps: vec![
                done(SendMessage, runs(json!([echo("a")])))
                    .learning("root", "/task/metadata/rootTaskId"),
                refused(
                    over,
                    SendMessage,
                    message(json!([{"data": {"taskId": "{root}"}}])),
                ),
            ],
        },
        Case {
            name: "pages are of one list",
            steps: vec![
                done(SendMessage, runs(json!([asks()]))).learning("oldest", "/task/id"),
                done(SendMessage, runs(json!([asks()]))),
                done(SendMessage, runs(json!([asks()]))),
                done(ListTasks, list(json!({"pageSize": 2}))).learning("token", "/nextPageToken"),
                done(SendMessage, says("{oldest}", "m-2", "red")),
                done(
                    ListTasks,
                    list(json!({"pageSize": 2, "pageToken": "{token}"})),
                ),
                done(ListTasks, list(json!({"pageSize": 2}))),
                refused("INVALID_PARAMS", ListTasks, json!({"pageToken": "{token}"})),
            ],
        },
    ]
}

fn receivers() -> Vec<Case> {
    let config = |config: &str| json!({"taskId": "{task}", "id": config});
    let given = |config: &str, path: &str| {
        let url = format!("https://receiver.example/{path}");
        json!({"taskId": "{task}", "id": config, "url": url, "token": "t0ken-t0ken",
            "authentication": {"scheme": "Bearer", "credentials": "s3cret-s3cret"}})
    };
    vec![Case {
        name: "receivers of a task are made, shown, replaced and removed",
        steps: vec![
            done(SendMessage, runs(json!([echo("a")]))).learning("task", "/task/id"),
            done(CreatePush, given("one", "a")),
            done(CreatePush, given("two", "b")),
            done(CreatePush, given("one", "c")),
            done(GetPush, config("one")),
            done(ListPush, json!({"taskId": "{task}"})),
            done(DeletePush, config("one")),
            done(DeletePush, config("one")),
            refused("TASK_NOT_FOUND", GetPush, config("one")),
            refused(
                "INVALID_PARAMS",
                CreatePush,
                json!({"taskId": "{task}", "url": "nowhere"}),
            ),
        ],
    }]
}

fn errors() -> Vec<Case> {
    let invalid = "INVALID_PARAMS";
    let circle = json!([
        {"id": "a", "name": "a", "dependencies": [{"id": "b"}]},
        {"id": "b", "name": "b", "parent_id": "a", "dependencies": [{"id": "a"}]}]);
    let nobody = json!([{"name": "x", "schemas": {"method": "nobody"}}]);
    let skilled = {
        let mut request = message(json!([{"text": "x"}]));
        request["message"]["metadata"] = json!({"skillId": "nothing"});
        request
    };
    let unknown = || id(UNKNOWN);
    let push = json!({"taskId": UNKNOWN, "id": "a"});
    vec![Case {
        name: "what is wrong is told with its field",
        steps: vec![
            done(SendMessage, message(json!([{"text": "hello"}]))),
            refused("TASK_NOT_FOUND", GetTask, unknown()),
            refused("TASK_NOT_FOUND", GetTask, id("no-id")),
            refused("TASK_NOT_FOUND", CancelTask, unknown()),
            refused("TASK_NOT_FOUND", SubscribeToTask, unknown()),
            refused("TASK_NOT_FOUND", SendMessage, says(UNKNOWN, "m", "x")),
            refused("TASK_NOT_FOUND", ListPush, json!({"taskId": UNKNOWN})),
            refused("TASK_NOT_FOUND", GetPush, push.clone()),
            refused("TASK_NOT_FOUND", DeletePush, push),
            refused(invalid, SendMessage, runs(json!([]))),
            refused(invalid, SendMessage, runs(json!([echo("a"), {"name": 7}]))),
            refused(invalid, SendMessage, runs(nobody)),
            refused(invalid, SendMessage, runs(circle)),
            refused(invalid, SendMessage, skilled),
            refused(
                invalid,
                SendMessage,
                message(json!([{"data": {"workflow": "nothing"}}])),
            ),
            refused(
                "TASK_NOT_FOUND",
                SendMessage,
                message(json!([{"data": {"taskId": UNKNOWN}}])),
            ),
            refused(
                "CONTENT_TYPE_NOT_SUPPORTED",
                SendMessage,
                message(json!([{"url": "https://a/b.png", "mediaType": "image/png"}])),
            ),
            refused(invalid, ListTasks, json!({"pageToken": "x"})),
            refused("UNSUPPORTED_OPERATION", GetExtendedAgentCard, json!({})),
        ],
    }]
}

/// The request with what was learned in place of its names.
fn filled(request: &Value, learned: &HashMap<String, Value>) -> Value {
    match request {
        Value::String(text) => {
            let name = text
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'));
            name.map_or_else(|| request.clone(), |name| learned[name].clone())
        }
        Value::Array(list) => list.iter().map(|it| filled(it, learned)).collect(),
        Value::Object(map) => {
            let members = map.iter();
            let members = members.map(|(name, it)| (name.clone(), filled(it, learned)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => request.clone(),
    }
}

/// A stream, and what is asked once it has begun.
async fn followed(
    (binding, other): (&mut dyn Binding, &mut dyn Binding),
    (operation, request): (Operation, Value),
    (asked, with): (Operation, Value),
) -> Result<Value, Refused> {
    let (begun, has_begun) = oneshot::channel();
    let asking = async {
        match has_begun.await {
            Ok(()) => other.ask(asked, with).await,
            Err(_) => Ok(Value::Null),
        }
    };
    let (items, answer) = tokio::join!(binding.follow(operation, request, Some(begun)), asking);
    Ok(json!({"told": items?, "asked": answer?}))
}

/// Tokens are of places in the log.
fn without_tokens(mut told: Value) -> Value {
    let token = told.get_mut("nextPageToken");
    if let Some(token) = token.filter(|it| it.as_str().is_some_and(|it| !it.is_empty())) {
        *token = json!("<token>");
    }
    told
}

/// Plays a case; one line for each step.
async fn play(
    (binding, other): (&mut dyn Binding, &mut dyn Binding),
    case: &Case,
    context: &str,
) -> Vec<String> {
    let mut learned = HashMap::from([("context".to_owned(), json!(context))]);
    let mut normal = Normal::new(context);
    let mut lines = Vec::new();
    for (number, step) in case.steps.iter().enumerate() {
        let request = filled(&step.request, &learned);
        let is_stream = matches!(step.operation, SendStreamingMessage | SubscribeToTask);
        let answer = match &step.meanwhile {
            Some((asked, with)) => {
                let with = filled(with, &learned);
                let of = (step.operation, request);
                followed((&mut *binding, &mut *other), of, (*asked, with)).await
            }
            None if is_stream => {
                let items = binding.stream(step.operation, request).await;
                items.map(Value::Array)
            }
            None => binding.ask(step.operation, request).await,
        };
        let place = format!("{}: `{}`, step {number}", binding.name(), case.name);
        let told = match (step.expected, answer) {
            (Expected::Done, Ok(told)) => told,
            (Expected::Refused(reason), Err(refused)) if refused.reasons[0] == reason => {
                json!({"reasons": refused.reasons, "fields": refused.fields})
            }
            (expected, answer) => panic!("{place}: {answer:?}, not {expected:?}"),
        };
        if let Some((name, at)) = step.learns {
            let value = told
                .pointer(at)
                .unwrap_or_else(|| panic!("{place}: {told}"));
            learned.insert(name.to_owned(), value.clone());
        }
        lines.push(format!(
            "{number}: {:#}",
            normal.value(without_tokens(told))
        ));
    }
    lines
}

/// Plays all cases over all bindings of the server at this URL, and compares with what was seen first.
async fn compare(url: &str, at: &str, first: &mut Option<Vec<Vec<String>>>) {
    let others = all(url).await;
    for (mut binding, mut other) in all(url).await.into_iter().zip(others) {
        let name = binding.name();
        let mut seen = Vec::new();
        for case in cases() {
            let context = format!("case-{}-{name}-{at}", case.name).replace(' ', "-");
            let lines = play((&mut *binding, &mut *other), &case, &context).await;
            seen.push(lines);
        }
        let Some(expected) = first else {
            *first = Some(seen);
            continue;
        };
        for ((case, expected), seen) in cases().iter().zip(&*expected).zip(&seen) {
            for (expected, seen) in expected.iter().zip(seen) {
                assert_eq!(expected, seen, "{name} at {at} differs in `{}`", case.name);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_binding_of_agent2agent_answers_alike() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    compare(&server.api.url, "one", &mut None).await;
    assert!(!all(&server.api.url).await.is_empty());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_binding_of_every_node_on_postgres_answers_alike() {
    // Secrets of receivers are sealed by the key that these name.
    let folder = Folder::with_database().await;
    let arguments = arguments(&folder);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let cluster = Cluster::start(folder, 2, &arguments).await;
    let mut first = None;
    for (at, node) in ["one", "two"].into_iter().zip(&cluster.nodes) {
        compare(&node.api.url, at, &mut first).await;
    }
    for node in cluster.nodes {
        node.stop().await;
    }
}

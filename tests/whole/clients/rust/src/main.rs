//! The official client in Rust, unchanged, over one binding: eighteen steps, with the token in TOKEN if there is one.
//! Prints a line for each; fails at the first that goes wrong. Push and the extended card are skipped only where the
//! card does not declare them.

use a2a::{
    A2AError, AgentCard, SendMessageRequest, SendMessageResponse, StreamResponse, Task, TaskState,
    error_code,
};
use a2a_client::agent_card::AgentCardResolver;
use a2a_client::auth::AuthInterceptor;
use a2a_client::{A2AClient, A2AClientFactory, BoxStream, Transport};
use a2a_grpc::GrpcTransportFactory;
use futures::{StreamExt, TryStreamExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{collections::HashSet, env, error::Error, sync::Arc};

const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

type Client = A2AClient<Box<dyn Transport>>;
type Failure = Box<dyn Error>;
type Updates = BoxStream<'static, Result<StreamResponse, A2AError>>;

/// A type of the client, from its JSON.
fn typed<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("the client reads the JSON of its own types")
}

fn echo() -> Value {
    json!({ "name": "echo", "schemas": { "method": "echo_executor" }, "inputs": { "n": 7 } })
}

fn sleep(duration_ms: u32) -> Value {
    json!({
        "name": "sleep",
        "schemas": { "method": "sleep_executor" },
        "inputs": { "duration_ms": duration_ms },
    })
}

fn long() -> Value {
    sleep(600_000)
}

fn ask() -> Value {
    let inputs = json!({ "question": "Which colour?", "response_type": "text" });
    json!({ "name": "ask", "schemas": { "method": "approval_executor" }, "inputs": inputs })
}

fn tasks(one: Value) -> Value {
    json!({ "data": { "tasks": [one] } })
}

/// A message with one part. `members` are further members of the message.
fn request(part: Value, now: bool, members: Value) -> SendMessageRequest {
    let mut message = json!({
        "messageId": uuid::Uuid::new_v4().to_string(),
        "role": "ROLE_USER",
        "parts": [part],
    });
    let all = message.as_object_mut().expect("it is an object");
    all.extend(members.as_object().expect("they are an object").clone());
    typed(json!({ "message": message, "configuration": { "returnImmediately": now } }))
}

async fn said(client: &Client, part: Value, now: bool, members: Value) -> Result<Task, Failure> {
    match client.send_message(&request(part, now, members)).await? {
        SendMessageResponse::Task(task) => Ok(task),
        SendMessageResponse::Message(message) => {
            Err(format!("a task is missing: {message:?}").into())
        }
    }
}

async fn cancel(client: &Client, id: &str) -> Result<Task, A2AError> {
    client.cancel_task(&typed(json!({ "id": id }))).await
}

async fn next(stream: &mut Updates) -> Result<StreamResponse, Failure> {
    Ok(stream.next().await.ok_or("the stream has ended")??)
}

/// The id of the task that a stream begins with.
async fn first(stream: &mut Updates) -> Result<String, Failure> {
    match next(stream).await? {
        StreamResponse::Task(task) => Ok(task.id),
        other => Err(format!("a task comes first, not {other:?}").into()),
    }
}

/// The state that the last item of a stream says.
fn last(items: &[StreamResponse]) -> Option<&TaskState> {
    match items.last() {
        Some(StreamResponse::StatusUpdate(update)) => Some(&update.status.state),
        _ => None,
    }
}

fn check(holds: bool, found: impl std::fmt::Debug) -> Result<(), Failure> {
    if holds {
        Ok(())
    } else {
        Err(format!("found {found:?}").into())
    }
}

/// Asserts that a call is refused with a code of the protocol.
fn fails<T: std::fmt::Debug>(code: i32, answer: Result<T, A2AError>) -> Result<(), Failure> {
    check(matches!(&answer, Err(error) if error.code == code), &answer)
}

fn passed(step: &str) {
    println!("passed {step}");
}

fn skipped(step: &str) {
    println!("skipped {step}");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = env::args().skip(1);
    let (Some(url), Some(binding)) = (arguments.next(), arguments.next()) else {
        return Err("usage: URL JSONRPC|HTTP+JSON|GRPC".into());
    };
    let mut card = AgentCardResolver::new(None).resolve(&url).await?;
    check(card.name == "taskledger", &card)?;
    passed("card");
    // The factory takes whatever the card has and prefers a binding; here there is only the one.
    card.supported_interfaces
        .retain(|it| it.protocol_binding == binding);
    let mut factory = A2AClientFactory::builder().register(Arc::new(GrpcTransportFactory::new()));
    if let Ok(token) = env::var("TOKEN") {
        factory = factory.with_interceptor(Arc::new(AuthInterceptor::bearer(token)));
    }
    let client = factory.build().create_from_card(&card).await?;
    let long = messages(&client).await?;
    let done = reads(&client).await?;
    streams(&client, &long).await?;
    turns(&client, &done).await?;
    push(&client, &card).await?;
    extended(&client, &card).await?;
    two_streams(&client).await
}

/// Sends text and tasks; the id of a task that is still running.
async fn messages(client: &Client) -> Result<String, Failure> {
    let answer = client
        .send_message(&request(json!({ "text": "hello" }), false, json!({})))
        .await?;
    check(matches!(answer, SendMessageResponse::Message(_)), &answer)?;
    passed("send text");

    let done = said(client, tasks(echo()), false, json!({ "contextId": "c-1" })).await?;
    check(done.status.state == TaskState::Completed, &done)?;
    let part = serde_json::to_value(&done.artifacts.as_ref().ok_or("no artifacts")?[0].parts[0])?;
    check(part["data"]["n"].as_f64() == Some(7.0), &part)?;
    passed("send tasks and wait");

    let long = said(client, tasks(long()), true, json!({})).await?;
    check(
        matches!(long.status.state, TaskState::Submitted | TaskState::Working),
        &long,
    )?;
    passed("return immediately");

    let sent = request(tasks(sleep(300)), false, json!({}));
    let told: Vec<_> = client
        .send_streaming_message(&sent)
        .await?
        .try_collect()
        .await?;
    check(matches!(told[0], StreamResponse::Task(_)), &told)?;
    check(last(&told) == Some(&TaskState::Completed), &told)?;
    check(
        told.iter()
            .any(|it| matches!(it, StreamResponse::ArtifactUpdate(_))),
        &told,
    )?;
    passed("stream");
    Ok(long.id)
}

/// Reads tasks and lists; the id of the task of the context `c-1`.
async fn reads(client: &Client) -> Result<String, Failure> {
    let of_context = client
        .list_tasks(&typed(json!({ "contextId": "c-1" })))
        .await?;
    let done = of_context
        .tasks
        .first()
        .ok_or("the context has a task")?
        .id
        .clone();
    let read = client.get_task(&typed(json!({ "id": done }))).await?;
    check(
        read.id == done && read.history.as_ref().is_some_and(|it| !it.is_empty()),
        &read,
    )?;
    passed("get");
    let read = client
        .get_task(&typed(json!({ "id": done, "historyLength": 0 })))
        .await?;
    check(read.history.as_ref().is_none_or(Vec::is_empty), &read)?;
    passed("history length");

    let listed = client.list_tasks(&typed(json!({}))).await?;
    let count = listed.tasks.len();
    check(
        count >= 3 && usize::try_from(listed.total_size) == Ok(count),
        &listed,
    )?;
    passed("list");
    let page = client.list_tasks(&typed(json!({ "pageSize": 1 }))).await?;
    let token = &page.next_page_token;
    let rest = client
        .list_tasks(&typed(json!({ "pageSize": 100, "pageToken": token })))
        .await?;
    let ids: Vec<_> = page
        .tasks
        .iter()
        .chain(&rest.tasks)
        .map(|it| &it.id)
        .collect();
    let all: Vec<_> = listed.tasks.iter().map(|it| &it.id).collect();
    check(
        ids == all && rest.next_page_token.is_empty(),
        (&page, &rest),
    )?;
    passed("list pages");
    Ok(done)
}

/// Follows a task that is cancelled meanwhile; what has ended, and what there is not, is refused.
async fn streams(client: &Client, long: &str) -> Result<(), Failure> {
    let mut stream = client
        .subscribe_to_task(&typed(json!({ "id": long })))
        .await?;
    let begun = first(&mut stream).await?;
    check(begun == long, &begun)?;
    let cancelled = cancel(client, long).await?;
    check(cancelled.status.state == TaskState::Canceled, &cancelled)?;
    passed("cancel");
    let told: Vec<_> = stream.try_collect().await?;
    check(last(&told) == Some(&TaskState::Canceled), &told)?;
    passed("subscribe");
    fails(error_code::TASK_NOT_CANCELABLE, cancel(client, long).await)?;
    passed("cancel what has ended");
    let unknown = client.get_task(&typed(json!({ "id": UNKNOWN }))).await;
    fails(error_code::TASK_NOT_FOUND, unknown)?;
    passed("unknown task");
    Ok(())
}

/// Answers a question in the task that asks it; goes on in a context.
async fn turns(client: &Client, done: &str) -> Result<(), Failure> {
    let asked = said(client, tasks(ask()), false, json!({})).await?;
    check(asked.status.state == TaskState::InputRequired, &asked)?;
    let question = asked.status.message.as_ref().and_then(|it| it.text());
    check(question == Some("Which colour?"), &asked)?;
    let answer = json!({ "text": "blue" });
    let answered = said(client, answer, false, json!({ "taskId": asked.id })).await?;
    check(
        answered.id == asked.id && answered.context_id == asked.context_id,
        &answered,
    )?;
    check(answered.status.state == TaskState::Completed, &answered)?;
    passed("input required");

    let again = said(client, tasks(echo()), false, json!({ "contextId": "c-1" })).await?;
    check(again.context_id == "c-1" && again.id != done, &again)?;
    let of_context = client
        .list_tasks(&typed(json!({ "contextId": "c-1" })))
        .await?;
    let ids: HashSet<_> = of_context.tasks.iter().map(|it| it.id.as_str()).collect();
    check(ids == HashSet::from([done, again.id.as_str()]), &of_context)?;
    passed("context");
    Ok(())
}

async fn push(client: &Client, card: &AgentCard) -> Result<(), Failure> {
    const STEP: &str = "push configurations";
    if card.capabilities.push_notifications != Some(true) {
        skipped(STEP);
        return Ok(());
    }
    let waits = said(client, tasks(long()), true, json!({})).await?.id;
    let hook = "https://example.com/hook";
    let config = typed(json!({ "taskId": waits, "id": "p-1", "url": hook }));
    let made = client.create_push_config(&config).await?;
    check(made.id.as_deref() == Some("p-1") && made.url == hook, &made)?;
    let one = json!({ "taskId": waits, "id": "p-1" });
    let found = client.get_push_config(&typed(one.clone())).await?;
    check(found.url == hook, &found)?;
    let all = typed(json!({ "taskId": waits }));
    let listed = client.list_push_configs(&all).await?;
    check(listed.configs.len() == 1, &listed)?;
    client.delete_push_config(&typed(one)).await?;
    let listed = client.list_push_configs(&all).await?;
    check(listed.configs.is_empty(), &listed)?;
    cancel(client, &waits).await?;
    passed(STEP);
    Ok(())
}

async fn extended(client: &Client, card: &AgentCard) -> Result<(), Failure> {
    const STEP: &str = "extended card";
    if card.capabilities.extended_agent_card != Some(true) {
        skipped(STEP);
        return Ok(());
    }
    let extended = client.get_extended_agent_card(&typed(json!({}))).await?;
    check(extended.name == card.name, &extended)?;
    passed(STEP);
    Ok(())
}

async fn two_streams(client: &Client) -> Result<(), Failure> {
    let mut both = Vec::new();
    for _ in 0..2 {
        both.push(
            client
                .send_streaming_message(&request(tasks(long()), false, json!({})))
                .await?,
        );
    }
    for stream in &mut both {
        let id = first(stream).await?;
        cancel(client, &id).await?;
    }
    for stream in both {
        let told: Vec<_> = stream.try_collect().await?;
        check(last(&told) == Some(&TaskState::Canceled), &told)?;
    }
    passed("two streams");
    Ok(())
}

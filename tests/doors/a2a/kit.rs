//! What the official conformance kit requires, as tests of this server: with the executor that the kit is run against,
//! over all bindings. Which requirement is shown by which test: `docs/reference/a2a-requirements.md`, which `table`
//! checks.

mod artifacts;
mod cards;
mod codes;
mod history;
mod lists;
mod messages;
mod streams;
mod table;
mod versions;
mod words;

use super::binding::Binding;
use super::wire::Agent;
use serde_json::{Value, json};
use taskledger_a2a::Operation::SendMessage;

/// The server as the kit finds it.
async fn agent() -> Agent {
    Agent::start(&["--a2a-conformance-executor"]).await
}

/// A message of the kit, whose id begins so.
fn said(prefix: &str, text: &str) -> Value {
    json!({"message": {"messageId": format!("{prefix}-5f2c"), "role": "ROLE_USER", "parts": [{"text": text}]}})
}

/// The same to a task.
fn said_to(task: &Value, prefix: &str, text: &str) -> Value {
    let mut request = said(prefix, text);
    request["message"]["taskId"] = task.clone();
    request
}

/// The task that a message has led to, which stands so.
async fn sent(binding: &mut dyn Binding, request: Value, state: &str) -> Value {
    let answer = binding.ask(SendMessage, request).await.unwrap();
    let task = &answer["task"];
    let found = &task["status"]["state"];
    assert_eq!(
        found,
        &format!("TASK_STATE_{state}"),
        "{} {answer}",
        binding.name()
    );
    task.clone()
}

/// The state that an item of a stream tells.
fn state_of(item: &Value) -> Option<&str> {
    let of_task = item["task"]["status"]["state"].as_str();
    let state = of_task.or(item["statusUpdate"]["status"]["state"].as_str())?;
    state.strip_prefix("TASK_STATE_")
}

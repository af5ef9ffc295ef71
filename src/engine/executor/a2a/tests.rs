//! Inputs of `a2a_executor`, and how it maps answers.

use super::inputs::Asked;
use super::outcome::{self, Remote};
use super::{A2aExecutor, NAME};
use crate::egress::{Egress, Lookup, LookupError, Options, Policy};
use crate::engine::executor::test_support::{job, registered, takes};
use crate::engine::executor::{Answered, Ended, Executor as _};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use taskledger_a2a::{Task, Wire};
use taskledger_a2a_client::Turn;
use taskledger_domain::SuspensionId;
use taskledger_domain::question::Question;

struct Nowhere;

#[async_trait]
impl Lookup for Nowhere {
    async fn lookup(&self, _host: &str) -> Result<Vec<IpAddr>, LookupError> {
        Err(LookupError::NotFound)
    }
}

fn executor() -> A2aExecutor {
    let options = Options::new(Policy::default(), Arc::new(Nowhere));
    A2aExecutor::new(Arc::new(Egress::new(options).unwrap()))
}

fn read(inputs: &Value) -> Result<Asked, Vec<taskledger_domain::Violation>> {
    Asked::read(inputs.as_object().unwrap(), &Policy::default())
}

const URL: &str = "https://agent.example.com";

#[test]
fn inputs_become_a_message() {
    let inputs = json!({
        "url": URL, "text": "hello", "data": {"a": 1}, "parts": [{"url": "https://f.example.com/x"}],
        "skill": "draw", "context_id": "c", "reference_task_ids": ["t"], "metadata": {"k": 1},
        "auth": {"type": "bearer", "token": {"$secret": "s"}}, "binding": "HTTP+JSON"
    });
    assert!(takes(executor(), &inputs));
    assert!(executor().check(inputs.as_object().unwrap()).is_empty());
    let mut filled = inputs;
    filled["auth"]["token"] = "t0k3n".into();
    let asked = read(&filled).unwrap();
    let headers = asked.options().headers;
    assert_eq!(headers["authorization"], "Bearer t0k3n");
    assert!(!format!("{headers:?}").contains("t0k3n"));
    let message = asked.message("m".to_owned()).to_json();
    let expected = json!({
        "messageId": "m", "contextId": "c", "role": "ROLE_USER",
        "parts": [{"url": "https://f.example.com/x"}, {"text": "hello"}, {"data": {"a": 1}}],
        "metadata": {"k": 1, "skillId": "draw"}, "referenceTaskIds": ["t"]
    });
    assert_eq!(message, expected);
}

#[test]
fn wrong_inputs_are_refused_when_a_task_is_created() {
    let card = json!({"name": "x"});
    for (inputs, field) in [
        (json!({"text": "a"}), "url"),
        (json!({"url": URL}), "text"),
        (json!({"url": "ftp://a", "text": "a"}), "url"),
        (json!({"url": "https://127.0.0.1/", "text": "a"}), "url"),
        (json!({"url": URL, "card": card, "text": "a"}), "card"),
        (json!({"card": card, "text": "a"}), "card"),
        (
            json!({"url": URL, "parts": [{"text": "a", "url": "b"}]}),
            "parts",
        ),
        (json!({"url": URL, "text": {"$secret": "s"}}), "text"),
        (
            json!({"url": URL, "text": "a", "headers": {"host": "x"}}),
            "headers",
        ),
        (
            json!({"url": URL, "text": "a", "binding": "GRPC"}),
            "binding",
        ),
    ] {
        let by_schema = !takes(executor(), &inputs);
        let faults = executor().check(inputs.as_object().unwrap());
        let told = faults
            .iter()
            .any(|fault| fault.path.first() == Some(&field.into()));
        assert!(told, "{inputs}: {by_schema} {faults:?}");
    }
    assert_eq!(registered(executor()).name(), NAME);
}

#[tokio::test]
async fn a_name_without_addresses_is_asked_again_until_the_attempt_is_stopped() {
    let job = job(json!({"url": URL, "text": "a"}));
    job.cancel.cancel();
    let error = executor().attempt(job).await.unwrap_err();
    assert_eq!(error.to_string(), "the attempt was stopped");
}

fn task(state: &str, more: Value) -> Turn {
    let mut task = json!({"id": "t", "contextId": "c", "status": {"state": state}});
    for (name, value) in more.as_object().unwrap() {
        task[name] = value.clone();
    }
    Turn::Task(Task::from_json(task).unwrap())
}

fn said(parts: Value) -> Value {
    json!({"messageId": "q", "role": "ROLE_AGENT", "parts": parts,
        "metadata": {"urn:taskledger:a2a:nodes:v1": {"nodeId": "n"}}})
}

#[test]
fn the_result_of_a_run_comes_before_those_of_its_tasks() {
    let artifact = |id: &str, value: Value| json!({"artifactId": id, "parts": [{"data": value}]});
    let artifacts = json!([
        artifact("result", json!({"x": 1})),
        artifact("b", json!({"x": 2}))
    ]);
    let turn = task("TASK_STATE_COMPLETED", json!({"artifacts": artifacts}));
    let Ok(Ended::Result(result)) = outcome::of(turn, "a") else {
        panic!("it has ended well")
    };
    let expected =
        json!({"data": {"x": 1}, "task_id": "t", "context_id": "c", "artifacts": artifacts});
    assert_eq!(result, expected);
}

#[test]
fn what_has_not_ended_well_fails_with_what_the_agent_says() {
    for (state, what) in [
        ("TASK_STATE_FAILED", "failed"),
        ("TASK_STATE_REJECTED", "rejected"),
        ("TASK_STATE_CANCELED", "cancelled"),
    ] {
        let status = json!({"state": state, "message": said(json!([{"text": "no paper"}]))});
        let error = outcome::of(task(state, json!({"status": status})), "a").unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("agent `a` {what} task `t`: no paper")
        );
    }
}

fn asked(state: &str, parts: Value) -> serde_json::Map<String, Value> {
    let status = json!({"state": state, "message": said(parts)});
    match outcome::of(task(state, json!({"status": status})), "a") {
        Ok(Ended::Asks(asked)) => asked,
        other => panic!("it asks: {other:?}"),
    }
}

#[test]
fn a_question_keeps_a_form_that_is_one_of_ours_and_the_answer_goes_back() {
    let form = json!({"responseType": "choice", "choices": [{"value": 1}, {"value": 2}]});
    let question = asked(
        "TASK_STATE_INPUT_REQUIRED",
        json!([{"text": "Which?"}, {"data": form}]),
    );
    assert_eq!(question["question"], "Which?");
    assert_eq!(question["response_type"], "choice");
    let answered = |question, answer| Answered {
        suspension: SuspensionId(uuid::Uuid::nil()),
        question,
        answer,
    };
    let choice = answered(question, json!(2));
    let message = Remote::of(&choice).unwrap().message(&choice).to_json();
    let expected = json!({
        "messageId": choice.suspension.to_string(), "contextId": "c", "taskId": "t", "role": "ROLE_USER",
        "parts": [{"data": 2}], "metadata": {"nodeId": "n"}
    });
    assert_eq!(message, expected);
    for strange in [
        json!({"responseType": "choice"}),
        json!([1]),
        json!({"responseType": 7}),
    ] {
        let parts = json!([{"text": "Which?"}, {"data": strange}]);
        let question = asked("TASK_STATE_INPUT_REQUIRED", parts);
        assert!(Question::parse(&question).is_ok(), "{question:?}");
        assert!(!question.contains_key("response_type"));
    }
    let long = asked(
        "TASK_STATE_INPUT_REQUIRED",
        json!([{"text": "x".repeat(10_000)}]),
    );
    assert!(Question::parse(&long).is_ok());
    let silent = asked("TASK_STATE_INPUT_REQUIRED", json!([{"data": 1}]));
    assert_eq!(silent["question"], "Agent `a` needs an answer.");
}

#[test]
fn credentials_are_confirmed_and_never_said() {
    let question = asked("TASK_STATE_AUTH_REQUIRED", json!([{"text": "Log in."}]));
    assert_eq!(question["asks"], "auth");
    let parsed = Question::parse(&question).unwrap();
    assert_eq!(parsed.text, "Log in.");
    let answered = Answered {
        suspension: SuspensionId(uuid::Uuid::nil()),
        question,
        answer: true.into(),
    };
    let message = Remote::of(&answered).unwrap().message(&answered);
    assert_eq!(message.to_json()["parts"], json!([{"text": "yes"}]));
}

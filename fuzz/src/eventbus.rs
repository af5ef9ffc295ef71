//! Bytes as a message that an agent publishes, and as one that tells a result.
//!
//! A message becomes a task that the reader of tasks takes or objects to by its fields, or a refusal that begins with a
//! member of the message and is short enough for a header. The same message says the same again. Structs come back
//! from JSON as they were, but for nulls, which the wire writes in several ways.

use prost_types::value::Kind;
use prost_types::{Struct, Value};
use serde_json::json;
use taskledger::transport::eventbus::{task_of, there_and_back};
use taskledger_domain::Timestamp;
use taskledger_domain::task::call;
use taskledger_eventbus::{Message, TaskMessage, TaskResult};

const NOW: Timestamp = Timestamp(1_800_000_000_000_000);
/// Bytes of a refusal: two hundred characters of a place, and a reason.
const REFUSAL_BYTES_MAX: usize = 1_200;
/// The status of the protocol for what a caller has to mend.
const INVALID_ARGUMENT: i32 = 3;
/// What is checked of a message that is published.
const MEMBERS: [&str; 9] = [
    "task_id",
    "task_type",
    "requester_agent_id",
    "responder_agent_id",
    "created_at",
    "priority",
    "parameters",
    "metadata",
    "deadline",
];

/// Judges `bytes`.
///
/// # Panics
/// When a claim does not hold.
pub fn run(bytes: &[u8]) {
    if let Ok(message) = TaskMessage::decode(bytes) {
        published(&message);
    }
    if let Ok(TaskResult {
        result: Some(result),
        ..
    }) = TaskResult::decode(bytes)
    {
        survives(&result, "result");
    }
}

fn published(message: &TaskMessage) {
    let verdict = task_of(message.clone(), NOW);
    match (verdict, task_of(message.clone(), NOW)) {
        (Ok(task), Ok(again)) => {
            assert_eq!(task, again, "the same message says the same");
            let kept = &task["params"]["eventbus"];
            assert_eq!(kept["task_id"], json!(message.task_id));
            assert_eq!(kept["requester"], json!(message.requester_agent_id));
            // Added when the others were read: no caller may give it.
            let mut given = task.clone();
            given["params"].as_object_mut().unwrap().remove("eventbus");
            if let Err(faults) = call::read_tasks(&json!([given])) {
                let named = faults.iter().all(|fault| !fault.field.is_empty());
                assert!(named && !faults.is_empty(), "{faults:?}");
            }
            for (given, field) in [
                (&message.parameters, "parameters"),
                (&message.metadata, "metadata"),
            ] {
                if let Some(given) = given {
                    survives(given, field);
                }
            }
        }
        (Err(refused), Err(again)) => {
            assert_eq!(refused.message(), again.message());
            is_fair(refused.code() as i32, refused.message(), &MEMBERS);
        }
        (one, other) => panic!("{one:?} and {other:?}"),
    }
}

fn is_fair(code: i32, text: &str, members: &[&str]) {
    assert_eq!(code, INVALID_ARGUMENT, "{text}");
    assert!(
        members.iter().any(|member| text.starts_with(member)),
        "{text}"
    );
    assert!(text.len() <= REFUSAL_BYTES_MAX, "{} bytes", text.len());
}

/// It comes back as it was, or is refused.
fn survives(given: &Struct, field: &str) {
    match there_and_back(given.clone(), field) {
        Ok(back) => assert!(is_same(given, &back), "{given:?} came back as {back:?}"),
        Err(refused) => is_fair(refused.code() as i32, refused.message(), &[field]),
    }
}

fn is_same(one: &Struct, other: &Struct) -> bool {
    let pairs = one.fields.iter().zip(&other.fields);
    one.fields.len() == other.fields.len()
        && pairs
            .into_iter()
            .all(|((key, one), (of, other))| key == of && are_equal(one, other))
}

fn are_equal(one: &Value, other: &Value) -> bool {
    match (&one.kind, &other.kind) {
        (None | Some(Kind::NullValue(_)), Some(Kind::NullValue(0))) => true,
        (Some(Kind::StructValue(one)), Some(Kind::StructValue(other))) => is_same(one, other),
        (Some(Kind::ListValue(one)), Some(Kind::ListValue(other))) => {
            let mut pairs = one.values.iter().zip(&other.values);
            one.values.len() == other.values.len()
                && pairs.all(|(one, other)| are_equal(one, other))
        }
        (one, other) => one == other,
    }
}

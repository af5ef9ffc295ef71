//! The words of answers: names of members, names of values, times, and what is always there.

use super::{agent, said, said_to, sent};
use crate::a2a::binding::all;
use chrono::DateTime;
use serde_json::{Value, json};
use taskledger_a2a::Operation::{ListTasks, SendStreamingMessage};

const STATES: [&str; 8] = [
    "SUBMITTED",
    "WORKING",
    "COMPLETED",
    "FAILED",
    "CANCELED",
    "INPUT_REQUIRED",
    "REJECTED",
    "AUTH_REQUIRED",
];
const CONTENTS: [&str; 4] = ["text", "raw", "url", "data"];

fn is_text(value: &Value, member: &str) -> bool {
    value[member].as_str().is_some_and(|it| !it.is_empty())
}

/// Walks over an answer, and tells what is not as it has to be.
fn faults(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(list) => {
            for (i, it) in list.iter().enumerate() {
                faults(&format!("{path}[{i}]"), it, found);
            }
        }
        Value::Object(map) => {
            for (name, it) in map {
                // URIs of extensions name members of metadata.
                if name.contains('_') || name.starts_with(char::is_uppercase) {
                    found.push(format!("{path}.{name} is not in camelCase"));
                }
                faults(&format!("{path}.{name}"), it, found);
            }
            let is_enum = |name: &str, prefix: &str, known: &[&str]| match map
                .get(name)
                .and_then(Value::as_str)
            {
                Some(text) => text
                    .strip_prefix(prefix)
                    .is_some_and(|it| known.contains(&it)),
                None => !map.contains_key(name),
            };
            if !is_enum("state", "TASK_STATE_", &STATES)
                || !is_enum("role", "ROLE_", &["USER", "AGENT"])
            {
                found.push(format!("{path}: {value} has an unknown name"));
            }
            if let Some(time) = map.get("timestamp") {
                let text = time.as_str().unwrap_or_default();
                if !text.ends_with('Z') || DateTime::parse_from_rfc3339(text).is_err() {
                    found.push(format!("{path}.timestamp: {text}"));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn assert_part(part: &Value) {
    let contents = CONTENTS
        .iter()
        .filter(|it| part.get(**it).is_some())
        .count();
    assert_eq!(contents, 1, "{part}");
}

fn assert_message(message: &Value) {
    assert!(
        is_text(message, "messageId") && message["role"].is_string(),
        "{message}"
    );
    let parts = message["parts"].as_array().unwrap();
    assert!(!parts.is_empty(), "{message}");
    parts.iter().for_each(assert_part);
}

fn assert_task(task: &Value) {
    assert!(is_text(task, "id") && is_text(task, "contextId"), "{task}");
    assert!(
        task["status"]["state"].is_string() && task["status"]["timestamp"].is_string(),
        "{task}"
    );
    if let Some(message) = task["status"].get("message") {
        assert_message(message);
    }
    let all = |member: &str| task[member].as_array().cloned().unwrap_or_default();
    all("history").iter().for_each(assert_message);
    for artifact in all("artifacts") {
        assert!(is_text(&artifact, "artifactId"), "{artifact}");
        let parts = artifact["parts"].as_array().unwrap();
        assert!(!parts.is_empty(), "{artifact}");
        parts.iter().for_each(assert_part);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_have_all_that_is_required_in_the_words_of_the_protocol() {
    let agent = agent().await;
    for mut binding in all(&agent.server.api.url).await {
        let binding = &mut *binding;
        let mut answers = Vec::new();
        for (prefix, state) in [
            ("tck-artifact-text", "COMPLETED"),
            ("tck-artifact-file", "COMPLETED"),
            ("tck-artifact-data", "COMPLETED"),
            ("tck-task-failure", "FAILED"),
            ("tck-auth-required", "AUTH_REQUIRED"),
        ] {
            answers.push(sent(binding, said(prefix, "Hello"), state).await);
        }
        let asked = sent(
            binding,
            said("tck-input-required", "Hello"),
            "INPUT_REQUIRED",
        )
        .await;
        let more = said_to(&asked["id"], "tck-complete-task", "more");
        answers.extend([asked, sent(binding, more, "COMPLETED").await]);
        answers.iter().for_each(assert_task);
        let list = json!({"includeArtifacts": true});
        let list = binding.ask(ListTasks, list).await.unwrap();
        list["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .for_each(assert_task);
        answers.push(list);
        let items = binding
            .stream(SendStreamingMessage, said("tck-stream-003", "Hello"))
            .await
            .unwrap();
        for item in &items {
            assert_eq!(item.as_object().unwrap().len(), 1, "{item}");
            for update in ["statusUpdate", "artifactUpdate"] {
                if let Some(update) = item.get(update) {
                    assert!(
                        is_text(update, "taskId") && is_text(update, "contextId"),
                        "{item}"
                    );
                }
            }
        }
        answers.extend(items);
        let mut found = Vec::new();
        for answer in &answers {
            faults("", answer, &mut found);
        }
        assert!(found.is_empty(), "{}: {found:#?}", binding.name());
    }
    agent.server.stop().await;
}

//! One table of scenarios, played through every binding; what they answer is equal but for ids and times.

use super::binding::{Binding, Refused, all};
use super::{echo, endless, message, question, runs};
use serde_json::{Value, json};
use std::collections::HashMap;
use taskledger_a2a::Operation;
use taskledger_testkit::server::{Folder, Server};

/// What a scenario has seen, in words that do not depend on ids and times.
#[derive(Default)]
struct Seen {
    lines: Vec<String>,
    ids: HashMap<String, usize>,
}

impl Seen {
    fn note(&mut self, what: &str, value: &Value) {
        let normal = self.normal("", value);
        self.lines.push(format!("{what}: {normal}"));
    }

    fn refusal(&mut self, what: &str, refused: &Refused) {
        self.lines.push(format!("{what}: {refused:?}"));
    }

    /// The same with a number for each id, in the order of their appearance, and without times.
    fn normal(&mut self, name: &str, value: &Value) -> Value {
        match value {
            Value::String(text)
                if name.to_lowercase().contains("timestamp") || name.ends_with("At") =>
            {
                assert!(text.ends_with('Z'), "{text}");
                json!("TIME")
            }
            Value::String(text) => {
                let mut normal = text.clone();
                let is_id = |word: &str| word.len() == 36 && word.matches('-').count() == 4;
                for word in text.split(':').filter(|it| is_id(it)) {
                    let next = self.ids.len();
                    let number = *self.ids.entry(word.to_owned()).or_insert(next);
                    normal = normal.replace(word, &format!("ID-{number}"));
                }
                json!(normal)
            }
            Value::Array(list) => list.iter().map(|it| self.normal(name, it)).collect(),
            Value::Object(map) => {
                let members = map.iter();
                let members = members.map(|(name, it)| (name.clone(), self.normal(name, it)));
                Value::Object(members.collect())
            }
            other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other.clone(),
        }
    }
}

/// Plays everything, and returns what was seen.
async fn play(binding: &mut dyn Binding) -> Vec<String> {
    use Operation::*;
    let mut seen = Seen::default();
    let context = format!("context of {}", binding.name());
    let of_context = |mut request: Value| {
        request["message"]["contextId"] = json!(context);
        request
    };

    // A message that says nothing to run is answered directly.
    let said = binding
        .ask(SendMessage, message(json!([{"text": "hello"}])))
        .await
        .unwrap();
    assert_eq!(said["message"]["role"], "ROLE_AGENT");
    seen.note("direct", &said);
    let streamed = message(json!([{"text": "hello"}]));
    let streamed = binding
        .stream(SendStreamingMessage, streamed)
        .await
        .unwrap();
    assert_eq!(streamed.len(), 1);
    assert!(streamed[0].get("message").is_some());

    // A blocking send ends with the results.
    let sent = of_context(runs(json!([echo("a")])));
    let done = binding.ask(SendMessage, sent).await.unwrap();
    let task = &done["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    assert_eq!(task["contextId"], *context);
    assert_eq!(task["artifacts"][0]["artifactId"], "result");
    assert_eq!(task["artifacts"][0]["parts"][0]["data"]["text"], "a");
    assert_eq!(task["history"][0]["messageId"], "m-1");
    assert_eq!(task["history"][0]["taskId"], task["id"]);
    let mut shown = done.clone();
    shown["task"]["contextId"] = json!("CONTEXT");
    shown["task"]["history"][0]["contextId"] = json!("CONTEXT");
    seen.note("done", &shown);
    let id = task["id"].as_str().unwrap().to_owned();

    // It can be read, with as much history as is wanted.
    let read = binding.ask(GetTask, json!({"id": id})).await.unwrap();
    assert_eq!(&read, task);
    let read = binding
        .ask(GetTask, json!({"id": id, "historyLength": 0}))
        .await
        .unwrap();
    assert!(read.get("history").is_none(), "{read}");

    // Nothing follows it.
    let over = binding
        .stream(SubscribeToTask, json!({"id": id}))
        .await
        .unwrap_err();
    assert_eq!(over.reasons[0], "UNSUPPORTED_OPERATION");
    seen.refusal("subscribe", &over);
    let over = binding
        .ask(CancelTask, json!({"id": id}))
        .await
        .unwrap_err();
    assert_eq!(over.reasons[0], "TASK_NOT_CANCELABLE");
    seen.refusal("cancel", &over);
    let mut more = message(json!([{"text": "more"}]));
    more["message"]["taskId"] = json!(id);
    let over = binding.ask(SendMessage, more).await.unwrap_err();
    assert_eq!(over.reasons[0], "UNSUPPORTED_OPERATION");
    seen.refusal("message", &over);

    // A list shows it without artifacts, unless they are wanted.
    let filter = json!({"contextId": context, "historyLength": 0});
    let list = binding.ask(ListTasks, filter).await.unwrap();
    assert_eq!(
        (&list["totalSize"], &list["pageSize"]),
        (&json!(1), &json!(50))
    );
    assert_eq!(list["nextPageToken"], "");
    assert!(list["tasks"][0].get("artifacts").is_none(), "{list}");
    let filter = json!({"contextId": context, "includeArtifacts": true});
    let list = binding.ask(ListTasks, filter).await.unwrap();
    assert_eq!(list["tasks"][0]["artifacts"], task["artifacts"]);
    let nobody = json!({"contextId": "nobody's"});
    let list = binding.ask(ListTasks, nobody).await.unwrap();
    assert_eq!(list["tasks"], json!([]));
    seen.note("nobody's", &list);

    // A run that goes on can be cancelled, once.
    let mut endless = runs(json!([endless()]));
    endless["configuration"] = json!({"returnImmediately": true});
    let begun = binding.ask(SendMessage, endless).await.unwrap();
    let state = begun["task"]["status"]["state"].as_str().unwrap();
    assert!(
        ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&state),
        "{begun}"
    );
    let on = begun["task"]["id"].clone();
    let mut unwanted = message(json!([{"text": "x"}]));
    unwanted["message"]["taskId"] = on.clone();
    let refused = binding.ask(SendMessage, unwanted).await.unwrap_err();
    assert_eq!(refused.reasons[0], "UNSUPPORTED_OPERATION");
    let gone = binding.ask(CancelTask, json!({"id": on})).await.unwrap();
    assert_eq!(gone["status"]["state"], "TASK_STATE_CANCELED");
    let again = binding
        .ask(CancelTask, json!({"id": on}))
        .await
        .unwrap_err();
    assert_eq!(again.reasons[0], "TASK_NOT_CANCELABLE");

    // A stream begins with the task and ends with its end.
    let items = binding
        .stream(SendStreamingMessage, runs(json!([echo("b")])))
        .await
        .unwrap();
    assert!(items[0].get("task").is_some(), "{items:?}");
    let last = &items.last().unwrap();
    let states = (
        &last["statusUpdate"]["status"]["state"],
        &last["task"]["status"]["state"],
    );
    assert!(
        states.0 == "TASK_STATE_COMPLETED" || states.1 == "TASK_STATE_COMPLETED",
        "{items:?}"
    );

    // A question is answered in the same task.
    let asked = binding
        .ask(SendMessage, runs(json!([question()])))
        .await
        .unwrap();
    assert_eq!(
        asked["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
        "{asked}"
    );
    let said = &asked["task"]["status"]["message"]["parts"][0]["text"];
    assert_eq!(said, "Which colour?");
    let mut answer = message(json!([{"text": "red"}]));
    answer["message"]["messageId"] = json!("m-2");
    answer["message"]["taskId"] = asked["task"]["id"].clone();
    let mut elsewhere = answer.clone();
    elsewhere["message"]["contextId"] = json!("another");
    let refused = binding.ask(SendMessage, elsewhere).await.unwrap_err();
    assert_eq!(refused.reasons[0], "INVALID_PARAMS");
    seen.refusal("other context", &refused);
    let ended = binding.ask(SendMessage, answer).await.unwrap();
    assert_eq!(
        ended["task"]["status"]["state"], "TASK_STATE_COMPLETED",
        "{ended}"
    );
    assert_eq!(ended["task"]["id"], asked["task"]["id"]);
    let roles: Vec<_> = ended["task"]["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"], "{ended}");

    // What is wrong is told with its field, alike everywhere.
    let unknown = "00000000-0000-4000-8000-000000000000";
    for (what, operation, request, reason) in [
        ("unknown", GetTask, json!({"id": unknown}), "TASK_NOT_FOUND"),
        ("no id", GetTask, json!({"id": "x"}), "TASK_NOT_FOUND"),
        (
            "cancel unknown",
            CancelTask,
            json!({"id": unknown}),
            "TASK_NOT_FOUND",
        ),
        ("no tasks", SendMessage, runs(json!([])), "INVALID_PARAMS"),
        (
            "bad task",
            SendMessage,
            runs(json!([echo("a"), {"name": 7}])),
            "INVALID_PARAMS",
        ),
        (
            "no executor",
            SendMessage,
            runs(json!([{"name": "x", "schemas": {"method": "nobody"}}])),
            "INVALID_PARAMS",
        ),
        (
            "picture",
            SendMessage,
            message(json!([{"url": "https://a/b.png", "mediaType": "image/png"}])),
            "CONTENT_TYPE_NOT_SUPPORTED",
        ),
        (
            "push",
            CreateTaskPushNotificationConfig,
            json!({"taskId": unknown, "url": "https://a"}),
            "TASK_NOT_FOUND",
        ),
        (
            "push",
            GetTaskPushNotificationConfig,
            json!({"taskId": unknown, "id": "a"}),
            "TASK_NOT_FOUND",
        ),
        (
            "push",
            ListTaskPushNotificationConfigs,
            json!({"taskId": unknown}),
            "TASK_NOT_FOUND",
        ),
        (
            "push",
            DeleteTaskPushNotificationConfig,
            json!({"taskId": unknown, "id": "a"}),
            "TASK_NOT_FOUND",
        ),
        (
            "extended card",
            GetExtendedAgentCard,
            json!({}),
            "UNSUPPORTED_OPERATION",
        ),
    ] {
        let refused = binding.ask(operation, request).await;
        let refused = refused.expect_err(what);
        assert_eq!(refused.reasons[0], reason, "{what}: {refused:?}");
        seen.refusal(what, &refused);
    }
    let mut reply = message(json!([{"text": "x"}]));
    reply["message"]["taskId"] = json!(unknown);
    let refused = binding.ask(SendMessage, reply).await.unwrap_err();
    assert_eq!(refused.reasons[0], "TASK_NOT_FOUND");
    let refused = binding
        .stream(SubscribeToTask, json!({"id": unknown}))
        .await
        .unwrap_err();
    assert_eq!(refused.reasons[0], "TASK_NOT_FOUND");
    seen.lines
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_binding_answers_alike() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let mut first: Option<(&str, Vec<String>)> = None;
    for mut binding in all(&server.api.url).await {
        let name = binding.name();
        let seen = play(&mut *binding).await;
        match &first {
            None => first = Some((name, seen)),
            Some((before, expected)) => {
                assert_eq!(expected.len(), seen.len());
                for (expected, seen) in expected.iter().zip(&seen) {
                    assert_eq!(expected, seen, "{before} and {name} differ");
                }
            }
        }
    }
    server.stop().await;
}

//! What was said in a task, as much of it as is wanted, in the order in which it was said.

use super::{agent, said, said_to, sent};
use crate::a2a::binding::all;
use serde_json::{Value, json};
use taskledger_a2a::Operation::{GetTask, ListTasks};

/// What clients say, one after the other.
const TEXTS: [&str; 3] = ["first", "second", "third"];

fn texts(task: &Value) -> Vec<&str> {
    let history = task["history"].as_array().map(Vec::as_slice);
    let users = history.unwrap_or_default().iter();
    let users = users.filter(|it| it["role"] == "ROLE_USER");
    users
        .map(|it| it["parts"][0]["text"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_is_what_was_said_oldest_first_and_no_longer_than_is_wanted() {
    let agent = agent().await;
    for mut binding in all(&agent.server.api.url).await {
        let binding = &mut *binding;
        let context = format!("history of {}", binding.name());
        let mut first = said("tck-input-required", TEXTS[0]);
        first["message"]["contextId"] = json!(context);
        let begun = sent(binding, first, "INPUT_REQUIRED").await;
        // One id with different texts is two messages.
        let more = said_to(&begun["id"], "tck-input-required", TEXTS[1]);
        sent(binding, more, "INPUT_REQUIRED").await;
        let more = said_to(&begun["id"], "tck-complete-task", TEXTS[2]);
        let done = sent(binding, more, "COMPLETED").await;
        assert_eq!(texts(&done), TEXTS, "{}", binding.name());
        for message in done["history"].as_array().unwrap() {
            assert_eq!(
                (&message["taskId"], &message["contextId"]),
                (&done["id"], &json!(context))
            );
        }
        for length in 0..4_usize {
            let read = json!({"id": begun["id"], "historyLength": length});
            let read = binding.ask(GetTask, read).await.unwrap();
            let list = json!({"contextId": context, "historyLength": length});
            let list = binding.ask(ListTasks, list).await.unwrap();
            for task in [&read, &list["tasks"][0]] {
                let all = done["history"].as_array().unwrap();
                let newest = &all[all.len() - length..];
                match length {
                    0 => assert!(task.get("history").is_none(), "{task}"),
                    _ => assert_eq!(task["history"].as_array().unwrap(), newest),
                }
            }
        }
        let read = json!({"id": begun["id"], "historyLength": -1});
        // gRPC clients can say it, too; the reader of the tests would not.
        if binding.name() != "gRPC" {
            let refused = binding.ask(GetTask, read).await.unwrap_err();
            assert_eq!(refused.fields, ["historyLength"], "{}", binding.name());
        }
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_send_leaves_the_history_out_if_none_is_wanted() {
    let agent = agent().await;
    for mut binding in all(&agent.server.api.url).await {
        let binding = &mut *binding;
        let begun = sent(
            binding,
            said("tck-input-required", "begin"),
            "INPUT_REQUIRED",
        )
        .await;
        let mut more = said_to(&begun["id"], "tck-complete-task", "more");
        more["configuration"] = json!({"historyLength": 0});
        let done = sent(binding, more, "COMPLETED").await;
        assert!(done.get("history").is_none(), "{} {done}", binding.name());
    }
    agent.server.stop().await;
}

//! Messages: what they lead to, when they are answered, and which are refused.

use super::{agent, said, said_to, sent};
use crate::a2a::binding::all;
use serde_json::json;
use std::collections::BTreeSet;
use taskledger_a2a::Operation::{CancelTask, GetTask, SendMessage, SubscribeToTask};

const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_leads_to_a_task_of_its_own_or_to_a_message() {
    let agent = agent().await;
    let mut ids = BTreeSet::new();
    for mut binding in all(&agent.server.api.url).await {
        let binding = &mut *binding;
        // The kit sends equal messages, and means a new task each time.
        for _ in 0..2 {
            let task = sent(binding, said("tck-complete-task", "Hello"), "COMPLETED").await;
            let id = task["id"].as_str().unwrap().to_owned();
            assert!(ids.insert(id), "an id that another task has: {task}");
            assert!(task["contextId"].as_str().is_some_and(|it| !it.is_empty()));
        }
        let mut of_context = said("tck-complete-task", "Hello");
        of_context["message"]["contextId"] = json!("client-context-001");
        let task = sent(binding, of_context, "COMPLETED").await;
        assert_eq!(task["contextId"], "client-context-001");
        let direct = said("tck-message-response", "Hello");
        let direct = binding.ask(SendMessage, direct).await.unwrap();
        let message = &direct["message"];
        assert_eq!(message["role"], "ROLE_AGENT", "{direct}");
        assert_eq!(message["parts"][0]["text"], "Direct message response");
        for member in ["messageId", "contextId"] {
            assert!(
                message[member].as_str().is_some_and(|it| !it.is_empty()),
                "{direct}"
            );
        }
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_that_is_not_taken_is_refused_and_none_is_made_up() {
    let agent = agent().await;
    for mut binding in all(&agent.server.api.url).await {
        let mut longest = said("tck-complete-task", "Hello");
        longest["message"]["contextId"] = json!("c".repeat(255));
        sent(&mut *binding, longest, "COMPLETED").await;
        let mut longer = said("tck-complete-task", "Hello");
        longer["message"]["contextId"] = json!("c".repeat(256));
        let refused = binding.ask(SendMessage, longer).await.unwrap_err();
        assert_eq!(refused.reasons[0], "INVALID_PARAMS", "{}", binding.name());
        assert_eq!(refused.fields, ["message.contextId"]);
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_send_waits_for_the_end_or_a_question_unless_it_says_otherwise() {
    let agent = agent().await;
    for mut binding in all(&agent.server.api.url).await {
        let binding = &mut *binding;
        let done = sent(binding, said("tck-delayed-complete", "Hello"), "COMPLETED").await;
        assert_eq!(done["artifacts"][0]["parts"][0]["text"], "Done after delay");
        let mut now = said("tck-cancel", "Hello");
        now["configuration"] = json!({"returnImmediately": true});
        let answer = binding.ask(SendMessage, now).await.unwrap();
        let state = answer["task"]["status"]["state"].as_str().unwrap();
        assert!(
            ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&state),
            "{answer}"
        );
        let id = json!({"id": answer["task"]["id"]});
        let gone = binding.ask(CancelTask, id).await.unwrap();
        assert_eq!(gone["status"]["state"], "TASK_STATE_CANCELED");
        sent(
            binding,
            said("tck-input-required", "Hello"),
            "INPUT_REQUIRED",
        )
        .await;
        sent(binding, said("tck-auth-required", "Hello"), "AUTH_REQUIRED").await;
        let failed = sent(binding, said("tck-task-failure", "Hello"), "FAILED").await;
        let why = &failed["status"]["message"]["parts"][0]["text"];
        assert_eq!(why, "failed as it was told to", "{failed}");
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_follows_the_end_of_a_task() {
    let agent = agent().await;
    for mut binding in all(&agent.server.api.url).await {
        let binding = &mut *binding;
        let completed = sent(binding, said("tck-complete-task", "Hello"), "COMPLETED").await;
        let failed = sent(binding, said("tck-task-failure", "Hello"), "FAILED").await;
        let asked = sent(
            binding,
            said("tck-input-required", "Hello"),
            "INPUT_REQUIRED",
        )
        .await;
        let id = json!({"id": asked["id"]});
        let canceled = binding.ask(CancelTask, id).await.unwrap();
        assert_eq!(
            canceled["status"]["state"], "TASK_STATE_CANCELED",
            "{canceled}"
        );
        assert_eq!(canceled["id"], asked["id"]);
        for ended in [completed, failed, canceled] {
            let id = json!({"id": ended["id"]});
            let more = said_to(&ended["id"], "tck-complete-task", "more");
            let refused = binding.ask(SendMessage, more).await.unwrap_err();
            assert_eq!(refused.reasons[0], "UNSUPPORTED_OPERATION", "{ended}");
            let refused = binding.ask(CancelTask, id.clone()).await.unwrap_err();
            assert_eq!(refused.reasons[0], "TASK_NOT_CANCELABLE", "{ended}");
            let refused = binding
                .stream(SubscribeToTask, id.clone())
                .await
                .unwrap_err();
            assert_eq!(refused.reasons[0], "UNSUPPORTED_OPERATION", "{ended}");
            let read = binding.ask(GetTask, id).await.unwrap();
            assert_eq!(read, ended, "{}", binding.name());
        }
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_nobody_knows_is_told_by_every_operation() {
    let agent = agent().await;
    for mut binding in all(&agent.server.api.url).await {
        for id in [UNKNOWN, "tck-nonexistent"] {
            let named = json!({"id": id});
            let mut refusals = vec![
                binding.ask(GetTask, named.clone()).await.unwrap_err(),
                binding.ask(CancelTask, named.clone()).await.unwrap_err(),
                binding.stream(SubscribeToTask, named).await.unwrap_err(),
            ];
            let more = said_to(&json!(id), "tck-complete-task", "more");
            refusals.push(binding.ask(SendMessage, more).await.unwrap_err());
            for refused in refusals {
                assert_eq!(refused.reasons[0], "TASK_NOT_FOUND", "{}", binding.name());
            }
        }
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_keeps_its_task_and_its_context() {
    let agent = agent().await;
    for mut binding in all(&agent.server.api.url).await {
        let binding = &mut *binding;
        let begun = sent(binding, said("tck-multi-turn", "begin"), "INPUT_REQUIRED").await;
        let question = &begun["status"]["message"];
        assert_eq!(question["role"], "ROLE_AGENT", "{begun}");
        let mut elsewhere = said_to(&begun["id"], "tck-multi-turn", "more");
        elsewhere["message"]["contextId"] = json!("another");
        let refused = binding.ask(SendMessage, elsewhere).await.unwrap_err();
        assert_eq!(refused.reasons[0], "INVALID_PARAMS", "{}", binding.name());
        let more = said_to(&begun["id"], "tck-multi-turn-2", "more");
        let more = sent(binding, more, "INPUT_REQUIRED").await;
        let mut last = said_to(&begun["id"], "tck-multi-turn-3", "done");
        last["message"]["contextId"] = begun["contextId"].clone();
        let last = sent(binding, last, "COMPLETED").await;
        for turn in [more, last] {
            assert_eq!(
                (&turn["id"], &turn["contextId"]),
                (&begun["id"], &begun["contextId"])
            );
        }
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_that_is_repeated_is_recorded_once() {
    let agent = agent().await;
    for mut binding in all(&agent.server.api.url).await {
        let binding = &mut *binding;
        let begun = sent(
            binding,
            said("tck-input-required", "begin"),
            "INPUT_REQUIRED",
        )
        .await;
        let more = said_to(&begun["id"], "tck-complete-task", "more");
        let first = sent(binding, more.clone(), "COMPLETED").await;
        let again = sent(binding, more, "COMPLETED").await;
        assert_eq!(first, again, "{}", binding.name());
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_waits_for_credentials_says_so_and_takes_messages() {
    let agent = agent().await;
    for mut binding in all(&agent.server.api.url).await {
        let binding = &mut *binding;
        let waits = sent(binding, said("tck-auth-required", "Hello"), "AUTH_REQUIRED").await;
        let text = &waits["status"]["message"]["parts"][0]["text"];
        assert_eq!(text, "Credentials are required", "{waits}");
        let more = said_to(&waits["id"], "tck-complete-task", "they are there");
        let done = sent(binding, more, "COMPLETED").await;
        assert_eq!(done["id"], waits["id"], "{}", binding.name());
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_media_type_that_no_skill_takes_is_refused() {
    let agent = agent().await;
    for mut binding in all(&agent.server.api.url).await {
        let mut odd = said("tck-send-003", "Hello");
        odd["message"]["parts"] =
            json!([{"raw": "dGNr", "mediaType": "application/x-unsupported-tck-type"}]);
        let refused = binding.ask(SendMessage, odd).await.unwrap_err();
        assert_eq!(
            refused.reasons[0],
            "CONTENT_TYPE_NOT_SUPPORTED",
            "{}",
            binding.name()
        );
    }
    agent.server.stop().await;
}

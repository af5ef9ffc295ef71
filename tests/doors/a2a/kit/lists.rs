//! Lists of tasks: their order, their pages, and what they leave out.

use super::{agent, said, said_to, sent};
use crate::a2a::binding::all;
use serde_json::{Value, json};
use taskledger_a2a::Operation::{GetTask, ListTasks};

fn ids(list: &Value) -> Vec<String> {
    let tasks = list["tasks"].as_array().unwrap().iter();
    tasks
        .map(|it| it["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_of_one_list_whose_newest_status_comes_first() {
    let agent = agent().await;
    for mut binding in all(&agent.server.api.url).await {
        let binding = &mut *binding;
        let context = format!("pages of {}", binding.name());
        let begin = |prefix: &str| {
            let mut request = said(prefix, "Hello");
            request["message"]["contextId"] = json!(context);
            request
        };
        let mut begun = Vec::new();
        for _ in 0..5 {
            let task = sent(binding, begin("tck-input-required"), "INPUT_REQUIRED").await;
            begun.push(task["id"].clone());
        }
        let of_context = json!({"contextId": context});
        let list = binding.ask(ListTasks, of_context.clone()).await.unwrap();
        assert_eq!(
            (&list["totalSize"], &list["pageSize"]),
            (&json!(5), &json!(50))
        );
        assert_eq!(list["nextPageToken"], "", "{}", binding.name());
        let newest_first: Vec<_> = begun.iter().rev().map(|it| it.as_str().unwrap()).collect();
        assert_eq!(ids(&list), newest_first, "{}", binding.name());
        let times: Vec<_> = list["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["status"]["timestamp"].to_string())
            .collect();
        assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");

        // Page by page, while what was not shown yet ends, and something new begins.
        let (mut seen, mut token, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let mut request = json!({"contextId": context, "pageSize": 2});
            if !token.is_empty() {
                request["pageToken"] = json!(token);
            }
            let page = binding.ask(ListTasks, request).await.unwrap();
            assert_eq!(page["totalSize"], 5, "{}", binding.name());
            for task in page["tasks"].as_array().unwrap() {
                assert_eq!(
                    task["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
                    "{task}"
                );
                let question = &task["status"]["message"]["parts"][0]["text"];
                assert_eq!(question, "Input is required", "{task}");
            }
            seen.extend(ids(&page));
            token = page["nextPageToken"].as_str().unwrap().to_owned();
            pages += 1;
            if token.is_empty() {
                break;
            }
            let more = said_to(&begun[pages - 1], "tck-complete-task", "more");
            sent(binding, more, "COMPLETED").await;
            sent(binding, begin("tck-complete-task"), "COMPLETED").await;
        }
        assert_eq!(pages, 3);
        assert_eq!(seen, newest_first, "{}", binding.name());

        // What has ended meanwhile stands at the head of a new list.
        let list = binding.ask(ListTasks, of_context).await.unwrap();
        assert_eq!(list["totalSize"], 7, "{}", binding.name());
        assert_eq!(list["tasks"][0]["status"]["state"], "TASK_STATE_COMPLETED");
    }
    agent.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_filtered_and_show_artifacts_if_they_are_wanted() {
    let agent = agent().await;
    for mut binding in all(&agent.server.api.url).await {
        let binding = &mut *binding;
        let context = format!("filters of {}", binding.name());
        let mut last = Value::Null;
        for (prefix, state) in [
            ("tck-input-required", "INPUT_REQUIRED"),
            ("tck-artifact-text", "COMPLETED"),
        ] {
            let mut request = said(prefix, "Hello");
            request["message"]["contextId"] = json!(context);
            last = sent(binding, request, state).await;
        }
        let of = |more: Value| {
            let mut request = json!({"contextId": context});
            request
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            request
        };
        let bare = binding.ask(ListTasks, of(json!({}))).await.unwrap();
        for task in bare["tasks"].as_array().unwrap() {
            assert!(task.get("artifacts").is_none(), "{} {task}", binding.name());
        }
        let full = of(json!({"includeArtifacts": true, "status": "TASK_STATE_COMPLETED"}));
        let full = binding.ask(ListTasks, full).await.unwrap();
        assert_eq!(full["tasks"].as_array().unwrap().len(), 1, "{full}");
        assert_eq!(full["tasks"][0]["artifacts"], last["artifacts"]);
        // The time of a status is of the list that begins with it.
        let read = binding
            .ask(GetTask, json!({"id": last["id"]}))
            .await
            .unwrap();
        let since = &read["status"]["timestamp"];
        let since = binding
            .ask(ListTasks, of(json!({"statusTimestampAfter": since})))
            .await
            .unwrap();
        assert_eq!(ids(&since)[0], last["id"].as_str().unwrap());
        for (wrong, field) in [
            (json!({"pageSize": 0}), "pageSize"),
            (json!({"pageSize": 101}), "pageSize"),
            (json!({"pageToken": "x"}), "pageToken"),
        ] {
            // What the reader of the tests refuses cannot be sent over gRPC by them.
            if binding.name() == "gRPC" && field == "pageSize" {
                continue;
            }
            let refused = binding.ask(ListTasks, of(wrong)).await.unwrap_err();
            assert_eq!(refused.fields, [field], "{}", binding.name());
        }
    }
    agent.server.stop().await;
}

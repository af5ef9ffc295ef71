//! What a task that an agent does becomes here.

use super::{
    Agent, asks, caller, delegated, echo, ended, respond, runs, sleeps, suspension, task, tasks_of,
};
use serde_json::json;
use taskledger_testkit::server::Folder;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_makes_is_the_result_over_each_binding() {
    let (agent, folder) = (Agent::new(), Folder::new());
    let (there, here) = (agent.start().await, caller(&folder).await);
    for (binding, seen) in [("JSONRPC", 1), ("HTTP+JSON", 2)] {
        let mut inputs = runs(&agent.url(), echo("hello"));
        inputs["binding"] = json!(binding);
        inputs["context_id"] = json!("c-1");
        let id = delegated(&here.api, inputs, json!({})).await;
        let done = ended(&here.api, &id).await;
        assert_eq!(done["status"], "completed", "{done}");
        let result = &done["result"];
        assert_eq!(result["data"]["text"], "hello", "{result}");
        assert_eq!(result["context_id"], "c-1");
        assert_eq!(result["artifacts"][0]["artifactId"], "result");
        assert_eq!(
            tasks_of(&there.api, seen).await.len(),
            usize::try_from(seen).unwrap()
        );
    }
    here.stop().await;
    there.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_and_a_refusal_of_an_agent_are_told() {
    let (agent, folder) = (Agent::new(), Folder::new());
    let (there, here) = (agent.start().await, caller(&folder).await);
    let mut late = sleeps(60_000);
    late["params"] = json!({"timeout_seconds": 0.05});
    let id = delegated(&here.api, runs(&agent.url(), late), json!({})).await;
    let failed = ended(&here.api, &id).await;
    assert_eq!(failed["status"], "failed");
    let error = failed["error"].as_str().unwrap();
    assert!(
        error.starts_with("agent `taskledger` failed task `") && error.contains("timed out"),
        "{error}"
    );
    let unknown = json!({"name": "a", "schemas": {"method": "no_such"}});
    let id = delegated(&here.api, runs(&agent.url(), unknown), json!({})).await;
    let error = ended(&here.api, &id).await["error"].take();
    let error = error.as_str().unwrap();
    assert!(
        error.contains("INVALID_PARAMS") && error.contains("of task `a` not found"),
        "{error}"
    );
    here.stop().await;
    there.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_of_an_agent_are_asked_here_and_answered_there() {
    let (agent, folder) = (Agent::new(), Folder::new());
    let (there, here) = (agent.start().await, caller(&folder).await);
    let text = json!("text");
    for (question, answer, given) in [
        (json!({"question": "Send it?"}), json!(true), "confirm"),
        (
            json!({"question": "Which?", "response_type": "choice",
                "choices": [{"value": 1}, {"value": {"x": 2}}]}),
            json!({"x": 2}),
            "choice",
        ),
        (
            json!({"question": "What?", "response_type": "text"}),
            json!("blue"),
            "text",
        ),
    ] {
        let inputs = runs(&agent.url(), asks(question.clone()));
        let id = delegated(&here.api, inputs, json!({})).await;
        let waits = suspension(&here.api, &id).await;
        let asked = &waits["question"];
        assert_eq!(asked["question"], question["question"]);
        // A plain question is asked in words alone, and is answered with a text.
        let form = asked.get("response_type").unwrap_or(&text);
        assert_eq!(form, given, "{asked}");
        assert_eq!(asked["context"]["agent"], "taskledger");
        respond(&here.api, &id, &waits, answer.clone()).await;
        let done = ended(&here.api, &id).await;
        assert_eq!(done["status"], "completed", "{done}");
        let said = &done["result"]["data"];
        assert!(said.to_string().contains(&answer.to_string()), "{said}");
    }
    here.stop().await;
    there.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_and_a_time_out_are_passed_on() {
    let (agent, folder) = (Agent::new(), Folder::new());
    let (there, here) = (agent.start().await, caller(&folder).await);
    for (params, seen) in [(json!({}), 1), (json!({"timeout_seconds": 2}), 2)] {
        let inputs = runs(&agent.url(), sleeps(600_000));
        let id = delegated(&here.api, inputs, params.clone()).await;
        tasks_of(&there.api, seen).await;
        let noted = async || {
            let history = here.api.call("tasks.history", json!({"task_id": id})).await;
            history.to_string().contains("agent task ").then_some(())
        };
        here.api
            .eventually("the agent's task is noted", noted)
            .await;
        if params == json!({}) {
            here.api.call("tasks.cancel", json!({"task_id": id})).await;
        }
        let status = ended(&here.api, &id).await["status"].take();
        assert_ne!(status, "completed");
        let all_ended = async || {
            let tasks = tasks_of(&there.api, seen).await;
            let is_cancelled = |task: &serde_json::Value| task["status"] == "cancelled";
            tasks.iter().all(is_cancelled).then_some(())
        };
        there
            .api
            .eventually("it is cancelled there", all_ended)
            .await;
    }
    here.stop().await;
    there.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_of_the_caller_leaves_the_task_of_the_agent_alone() {
    let (agent, folder) = (Agent::new(), Folder::new());
    let (there, here) = (agent.start().await, caller(&folder).await);
    let question = json!({"question": "Go?", "response_type": "text"});
    let tree = json!([
        {"id": "r", "name": "root"},
        {"id": "s", "name": "slow", "parent_id": "r", "schemas": {"method": "sleep_executor"},
         "inputs": {"duration_ms": 1500}},
        {"id": "q", "name": "ask", "parent_id": "r", "schemas": {"method": "approval_executor"},
         "inputs": question, "dependencies": [{"id": "s"}]}
    ]);
    let inputs = json!({"url": agent.url(), "data": {"tasks": tree}});
    let id = delegated(&here.api, inputs, json!({})).await;
    tasks_of(&there.api, 3).await;
    here.stop().await;
    let here = caller(&folder).await;
    let waits = suspension(&here.api, &id).await;
    assert!(task(&here.api, &id).await["attempt"].as_u64() >= Some(1));
    respond(&here.api, &id, &waits, json!("go")).await;
    assert_eq!(ended(&here.api, &id).await["status"], "completed");
    assert_eq!(tasks_of(&there.api, 3).await.len(), 3, "it was run once");
    here.stop().await;
    there.stop().await;
}

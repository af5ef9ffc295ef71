//! What an agent makes before it ends, passed on; and agents that do not do a task, or wait for an answer that never
//! comes.

use super::{Agent, asks, caller, delegated, ended, runs, suspension, task, tasks_of};
use crate::a2a::pieces::Held;
use serde_json::{Value, json};
use taskledger_testkit::server::{Api, Folder};

fn write() -> Value {
    json!({"name": "write", "schemas": {"type": "remote", "method": "write"}})
}

/// What was recorded of the output of a task, texts joined.
async fn output(api: &Api, id: &Value) -> Vec<Value> {
    let ask = json!({"task_id": id, "types": ["task_output_appended"], "order": "asc"});
    let past = api.call("tasks.history", ask).await;
    let mut joined: Vec<Value> = Vec::new();
    for event in past["events"].as_array().unwrap() {
        let part = &event["data"]["output_part"];
        match (joined.last_mut(), part) {
            (Some(Value::String(before)), Value::String(more)) => before.push_str(more),
            _ => joined.push(part.clone()),
        }
    }
    joined
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_makes_on_the_way_is_passed_on_and_survives_a_restart() {
    let (agent, folder) = (Agent::new(), Folder::new());
    let (there, here) = (agent.start().await, caller(&folder).await);
    let id = delegated(&here.api, runs(&agent.url(), write()), json!({})).await;
    let held = Held::claim(&there.api).await;
    for (number, part) in [(1, "Once "), (2, "upon "), (3, "a time")] {
        held.makes(&there.api, number, json!(part)).await;
    }
    let all = json!("Once upon a time");
    let passed_on = async || (output(&here.api, &id).await == [all.clone()]).then_some(());
    here.api.eventually("the text is here", passed_on).await;
    here.stop().await;

    // The attempt that goes on tells anew what there is.
    let here = caller(&folder).await;
    held.makes(&there.api, 4, json!(", it ended.")).await;
    let told = async || {
        let told = output(&here.api, &id).await;
        let text = told.last().and_then(Value::as_str).unwrap_or_default();
        text.ends_with("Once upon a time, it ended.").then_some(())
    };
    here.api.eventually("the rest is here", told).await;
    held.completes(&there.api, json!({"pages": 1})).await;
    let done = ended(&here.api, &id).await;
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["data"], json!({"pages": 1}));
    let artifact = &done["result"]["artifacts"][0]["parts"];
    // Pieces of the text that came over one stream are one part.
    let parts = artifact.as_array().unwrap();
    let texts: String = parts.iter().filter_map(|it| it["text"].as_str()).collect();
    assert_eq!(texts, "Once upon a time, it ended.", "{done}");
    assert_eq!(parts.last().unwrap()["data"], json!({"pages": 1}), "{done}");
    here.stop().await;
    there.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_an_agent_rejects_is_rejected_here_and_not_tried_again() {
    let (agent, folder) = (Agent::new(), Folder::new());
    let (there, here) = (agent.start().await, caller(&folder).await);
    let params = json!({"retry_count": 3});
    let id = delegated(&here.api, runs(&agent.url(), write()), params).await;
    let held = Held::claim(&there.api).await;
    held.fails(&there.api, json!({"rejected": true})).await;
    let failed = ended(&here.api, &id).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    let error = failed["error"].as_str().unwrap();
    assert!(
        error.starts_with("agent `taskledger` rejected task `") && error.ends_with("no ink"),
        "{error}"
    );
    assert_eq!(failed["attempt"], 1, "{failed}");
    let ask = json!({"task_id": id, "scope": "flow", "types": ["task_failed", "run_ended"],
        "order": "asc"});
    let past = here.api.call("tasks.history", ask).await;
    assert_eq!(past["events"][0]["data"]["reason"], "rejected", "{past}");
    assert_eq!(past["events"][1]["data"]["rejected"], true, "{past}");
    here.stop().await;
    there.stop().await;
}

/// The only task of the agent, once it is cancelled.
async fn cancelled(there: &Api) {
    let is_cancelled = async || {
        let tasks = tasks_of(there, 1).await;
        (tasks[0]["status"] == "cancelled").then_some(())
    };
    there
        .eventually("it is cancelled there", is_cancelled)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_reaches_an_agent_that_waits_for_an_answer() {
    for restarts in [false, true] {
        let (agent, folder) = (Agent::new(), Folder::new());
        let (there, mut here) = (agent.start().await, caller(&folder).await);
        let inputs = runs(&agent.url(), asks(json!({"question": "Send it?"})));
        let id = delegated(&here.api, inputs, json!({})).await;
        suspension(&here.api, &id).await;
        if restarts {
            here.kill().await;
            here = caller(&folder).await;
        }
        here.api.call("tasks.cancel", json!({"task_id": id})).await;
        assert_eq!(task(&here.api, &id).await["status"], "cancelled");
        cancelled(&there.api).await;
        here.stop().await;
        there.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_does_not_wait_for_an_agent_that_is_away() {
    let (agent, folder) = (Agent::new(), Folder::new());
    let (there, here) = (agent.start().await, caller(&folder).await);
    let inputs = runs(&agent.url(), asks(json!({"question": "Send it?"})));
    let id = delegated(&here.api, inputs, json!({})).await;
    suspension(&here.api, &id).await;
    there.kill().await;
    // The agent is tried again: it is back in time.
    here.api.call("tasks.cancel", json!({"task_id": id})).await;
    assert_eq!(ended(&here.api, &id).await["status"], "cancelled");
    let there = agent.start().await;
    cancelled(&there.api).await;
    here.stop().await;
    there.stop().await;
}

//! Kills of either server: one outcome, and the agent runs the task once.

use super::{Agent, asks, caller, delegated, ended, respond, runs, sleeps, suspension, tasks_of};
use serde_json::json;
use taskledger_testkit::server::Folder;

/// Kills of the caller right after the agent has the task: some fall before its id is noted, some behind.
const KILLS: u64 = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_is_killed_goes_on_with_the_task_that_it_has_begun() {
    let (agent, folder) = (Agent::new(), Folder::new());
    let there = agent.start().await;
    for kill in 1..=KILLS {
        let here = caller(&folder).await;
        let id = delegated(&here.api, runs(&agent.url(), sleeps(1500)), json!({})).await;
        tasks_of(&there.api, kill).await;
        here.kill().await;
        let here = caller(&folder).await;
        let done = ended(&here.api, &id).await;
        assert_eq!(done["status"], "completed", "{done}");
        let run = u64::try_from(tasks_of(&there.api, kill).await.len()).unwrap();
        assert_eq!(run, kill, "the agent runs it once");
        here.stop().await;
    }
    there.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_killed_is_waited_for() {
    let (agent, folder) = (Agent::new(), Folder::new());
    let (there, here) = (agent.start().await, caller(&folder).await);
    let id = delegated(&here.api, runs(&agent.url(), sleeps(1500)), json!({})).await;
    tasks_of(&there.api, 1).await;
    there.kill().await;
    let there = agent.start().await;
    let done = ended(&here.api, &id).await;
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["attempt"], 1, "nobody here has noticed");
    assert_eq!(tasks_of(&there.api, 1).await.len(), 1);
    here.stop().await;
    there.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_waits_over_kills_of_both_and_is_answered_once() {
    let (agent, folder) = (Agent::new(), Folder::new());
    let (there, here) = (agent.start().await, caller(&folder).await);
    let question = json!({"question": "Which?", "response_type": "text"});
    let id = delegated(&here.api, runs(&agent.url(), asks(question)), json!({})).await;
    let waits = suspension(&here.api, &id).await;
    there.kill().await;
    here.kill().await;
    let here = caller(&folder).await;
    // The answer is given while nobody can take it.
    respond(&here.api, &id, &waits, json!("blue")).await;
    let there = agent.start().await;
    let done = ended(&here.api, &id).await;
    assert_eq!(done["status"], "completed", "{done}");
    assert!(
        done["result"]["data"].to_string().contains("blue"),
        "{done}"
    );
    let tasks = tasks_of(&there.api, 1).await;
    assert_eq!((tasks.len(), &tasks[0]["status"]), (1, &json!("completed")));
    here.stop().await;
    there.stop().await;
}

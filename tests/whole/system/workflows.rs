//! Workflows run to their end, in order, by priority, and as fast as they can.

use crate::system::workflow::Workflow;
use serde_json::{Value, json};
use std::collections::HashMap;
use taskledger_testkit::log::{self, Event};
use taskledger_testkit::random::Random;
use taskledger_testkit::server::{Folder, Server};

taskledger_testkit::on_both_backends!(
    workflows_run_in_order_and_little_longer_than_their_critical_path,
    with_one_slot_tasks_start_by_priority_across_flows,
    a_failed_required_dependency_holds_its_dependents_back_and_an_optional_one_does_not,
    no_more_tasks_are_in_progress_than_attempts_may_run_however_fast_they_are,
);

/// The machine may be busy with something else: the best of so many rounds counts.
const ROUNDS_MAX: usize = 5;

/// Runs a workflow to its end; gives its flow and how often each of its tasks completed.
async fn run(server: &Server, workflow: &Workflow) -> String {
    let started = server.api.call("tasks.execute", workflow.request()).await;
    let root = &started["root_task_id"];
    let run = server.api.run_of(root).await;
    assert_eq!(run["state"], "completed", "{}: {run}", workflow.name);
    assert_eq!(run["counts"]["completed"], json!(workflow.tasks.len()));
    root.as_str().unwrap().to_owned()
}

/// Milliseconds between the records of the beginning and the end of a flow's only run.
fn makespan_ms(events: &[Event], flow: &str) -> u64 {
    let at = |kind: &str| {
        let mut found = events.iter().filter(|e| e.flow == flow && e.kind == kind);
        let event = found.next().expect("the run is recorded");
        assert!(found.next().is_none(), "one run");
        event.micros
    };
    u64::try_from(at("RunEnded") - at("RunStarted")).unwrap() / 1000
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_that_come_together_are_written_together() {
    // So many that the flow owes a snapshot right after its creation.
    const WIDTH: u64 = 600;
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let commits = async || {
        let health = server.api.call("system.health", json!({})).await;
        health["log"]["commits"].as_u64().expect("a number")
    };
    for _ in 0..3 {
        let before = commits().await;
        run(
            &server,
            &Workflow::fork_join(usize::try_from(WIDTH).unwrap(), 0),
        )
        .await;
        let took = commits().await - before;
        assert!(took < WIDTH / 4, "{took} commits");
    }
    server.stop().await;
}

async fn workflows_run_in_order_and_little_longer_than_their_critical_path(folder: Folder) {
    let server = Server::start(&folder).await;
    let mut random = Random::new(7);
    let workflows = [
        Workflow::chain(15, 100),
        Workflow::fork_join(220, 500),
        Workflow::mesh(12, 20, &mut random),
    ];
    for workflow in &workflows {
        let best_possible = workflow.critical_path_ms();
        let allowed = best_possible + best_possible / 10 + 50;
        let mut spans = Vec::new();
        while spans.iter().all(|span| *span > allowed) && spans.len() < ROUNDS_MAX {
            let flow = run(&server, workflow).await;
            let span = makespan_ms(&log::export(&folder).await, &flow);
            assert!(
                span >= best_possible,
                "{}: {span} ms is too fast to be true",
                workflow.name
            );
            spans.push(span);
        }
        println!(
            "{}: critical path {best_possible} ms, makespans {spans:?} ms",
            workflow.name
        );
        assert!(
            spans.last().unwrap() <= &allowed,
            "{}: {spans:?}, allowed {allowed}",
            workflow.name
        );
    }
    server.stop().await;

    let events = log::export(&folder).await;
    log::assert_dense(&events);
    log::assert_started_in_order(&events);
}

async fn with_one_slot_tasks_start_by_priority_across_flows(folder: Folder) {
    let server = Server::start_with(&folder, &["--executor-limit", "sleep_executor=1"]).await;
    // Holds the slot until everything else is ready.
    let first = json!({"tasks": [
        {"name": "first", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 60_000}}]});
    let first = server.api.call("tasks.execute", first).await["root_task_id"].take();
    let mut priorities: HashMap<String, u64> = HashMap::new();
    let mut roots = Vec::new();
    for flow in 0..4u64 {
        let mut tasks = vec![json!({"id": "root", "name": "root"})];
        tasks.extend((0..10u64).map(|i| {
            let priority = (i * 7 + flow * 3) % 4;
            let inputs = json!({"duration_ms": 1});
            json!({"id": format!("t{i}"), "parent_id": "root", "name": "t", "priority": priority,
                   "schemas": {"method": "sleep_executor"}, "inputs": inputs})
        }));
        let started = server
            .api
            .call("tasks.execute", json!({"tasks": tasks.clone()}))
            .await;
        for task in &tasks[1..] {
            let id = started["task_ids"][task["id"].as_str().unwrap()]
                .as_str()
                .unwrap();
            priorities.insert(id.to_owned(), task["priority"].as_u64().unwrap());
        }
        roots.push(started["root_task_id"].clone());
    }

    server
        .api
        .call("tasks.cancel", json!({"task_id": first}))
        .await;
    for root in &roots {
        assert_eq!(server.api.run_of(root).await["state"], "completed");
    }
    server.stop().await;

    let events = log::export(&folder).await;
    let mut running = 0;
    let mut started = Vec::new();
    for event in &events {
        let Some(priority) = priorities.get(event.task()) else {
            continue;
        };
        match event.kind.as_str() {
            "TaskStarted" => {
                running += 1;
                // The end that frees the slot is decided first, but two flows write on their own:
                // its record may come right after that of the start.
                assert!(running <= 2, "one slot: {event:?}");
                started.push(*priority);
            }
            "TaskCompleted" => running -= 1,
            _ => {}
        }
    }
    assert_eq!(started.len(), 40);
    assert!(started.is_sorted(), "{started:?}");
}

async fn a_failed_required_dependency_holds_its_dependents_back_and_an_optional_one_does_not(
    folder: Folder,
) {
    let server = Server::start(&folder).await;
    let failing = json!({"method": "sleep_executor"});
    let echo = json!({"method": "echo_executor"});
    let tasks = json!({"tasks": [
        {"id": "root", "name": "root"},
        {"id": "fails", "name": "fails", "parent_id": "root", "schemas": failing,
         "inputs": {"duration_ms": 60_000}, "params": {"timeout_seconds": 0.02}},
        {"id": "strict", "name": "strict", "parent_id": "root", "schemas": echo,
         "dependencies": [{"id": "fails"}]},
        {"id": "lenient", "name": "lenient", "parent_id": "root", "schemas": echo,
         "dependencies": [{"id": "fails", "required": false}]},
        {"id": "behind", "name": "behind", "parent_id": "root", "schemas": echo,
         "dependencies": [{"id": "strict", "required": false}]},
    ]});

    let started = server.api.call("tasks.execute", tasks).await;
    let run = server.api.run_of(&started["root_task_id"]).await;

    assert_eq!(run["state"], "failed", "{run}");
    let status = async |alias: &str| -> Value {
        server
            .api
            .call("tasks.get", json!({"task_id": started["task_ids"][alias]}))
            .await["status"]
            .take()
    };
    assert_eq!(status("fails").await, "failed");
    assert_eq!(status("strict").await, "pending");
    assert_eq!(status("lenient").await, "completed");
    assert_eq!(status("behind").await, "pending");
    server.stop().await;
    log::assert_started_in_order(&log::export(&folder).await);
}

/// Outcomes must not pile up behind starts: an attempt has its slot until its end is decided.
async fn no_more_tasks_are_in_progress_than_attempts_may_run_however_fast_they_are(folder: Folder) {
    const LIMIT: u64 = 4;
    let limit = format!("echo_executor={LIMIT}");
    let server = Server::start_with(&folder, &["--executor-limit", &limit]).await;
    let mut tasks = vec![json!({"id": "all", "name": "all"})];
    tasks.extend((0..400).map(
        |n| json!({"name": format!("t{n}"), "parent_id": "all", "schemas": {"method": "echo_executor"}}),
    ));
    let started = server
        .api
        .call("tasks.execute", json!({ "tasks": tasks }))
        .await;
    let root = &started["root_task_id"];
    let in_progress = json!({"parent_id": root, "status": "in_progress", "limit": 1});
    let run = server
        .api
        .eventually("the run ends", async || {
            let list = server.api.call("tasks.list", in_progress.clone()).await;
            assert!(list["total"].as_u64().is_some_and(|n| n <= LIMIT), "{list}");
            let root = server.api.call("tasks.get", json!({"task_id": root})).await;
            (root["run"]["state"] != "running").then(|| root["run"].clone())
        })
        .await;
    assert_eq!(run["state"], "completed");
    server.stop().await;
}

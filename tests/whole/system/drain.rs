//! A calm stop: nothing begins any more, what is under way ends if it can, and what a stop that was not calm has
//! left behind is stopped before anything begins.

use serde_json::{Value, json};
use taskledger_testkit::program;
use taskledger_testkit::server::{Api, Folder, Server};

const PATIENCE: [&str; 2] = ["--drain-timeout", "60"];
/// Chains of two tasks each.
const CHAINS: usize = 8;

async fn task(api: &Api, id: &Value) -> Value {
    api.call("tasks.get", json!({"task_id": id})).await
}

async fn until(api: &Api, id: &Value, status: &str) -> Value {
    let look = async || {
        let task = task(api, id).await;
        (task["status"] == status).then_some(task)
    };
    api.eventually(status, look).await
}

/// Whether the server says that it is ready, and what it says.
async fn readiness(api: &Api) -> (u16, Value) {
    let answer = api.http.get(format!("{}readyz", api.url)).send().await;
    let answer = answer.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn until_draining(api: &Api) {
    let draining = async || {
        let (status, said) = readiness(api).await;
        ((status, &said["status"]) == (503, &json!("draining"))).then_some(())
    };
    api.eventually("it drains", draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_end_in_time_ends_and_nothing_begins() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &PATIENCE).await;
    let api = server.api.clone();
    let mut tasks = vec![json!({"id": "r", "name": "r"})];
    for k in 0..CHAINS {
        let (first, second) = (format!("first {k}"), format!("second {k}"));
        tasks.push(json!({"id": first, "name": first, "parent_id": "r",
            "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 1500}}));
        tasks.push(json!({"id": second, "name": second, "parent_id": "r",
            "schemas": {"method": "echo_executor"}, "dependencies": [{"id": first}]}));
    }
    let started = api.call("tasks.execute", json!({"tasks": tasks})).await;
    let ids = &started["task_ids"];
    for k in 0..CHAINS {
        until(&api, &ids[format!("first {k}")], "in_progress").await;
    }

    server.ask_to_stop();
    until_draining(&api).await;
    // Calls are taken meanwhile.
    let late = api.call(
        "tasks.execute",
        json!({"tasks": [{"name": "late", "schemas": {"method": "echo_executor"}}]}),
    );
    let late = late.await["root_task_id"].take();
    let (status, log) = server.end().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("are interrupted"), "{log}");

    let server = Server::start(&folder).await;
    let run = server.api.run_of(&started["root_task_id"]).await;
    assert_eq!(run["state"], "completed", "{run}");
    for k in 0..CHAINS {
        let first = task(&server.api, &ids[format!("first {k}")]).await;
        let second = task(&server.api, &ids[format!("second {k}")]).await;
        assert_eq!(
            (&first["attempt"], &second["attempt"]),
            (&json!(1), &json!(1))
        );
        // It ended before the stop, and what follows it began after.
        let at = |task: &Value, member: &str| task[member].as_str().unwrap().to_owned();
        assert!(at(&first, "completed_at") < at(&second, "started_at"));
    }
    until(&server.api, &late, "completed").await;
    let history =
        json!({"task_id": started["root_task_id"], "scope": "flow", "types": ["task_failed"]});
    let failed = server.api.call("tasks.history", history).await;
    assert_eq!(failed["events"], json!([]), "nothing was interrupted");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_the_server_at_once() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &PATIENCE).await;
    let long = json!({"tasks": [{"name": "long", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 600_000}}]});
    let root = server.api.call("tasks.execute", long).await["root_task_id"].take();
    until(&server.api, &root, "in_progress").await;
    server.ask_to_stop();
    until_draining(&server.api).await;

    server.ask_to_stop();

    // Not after the time that attempts are given: the end is awaited for less.
    let (status, log) = server.end().await;
    assert_eq!(status.code(), Some(130), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_drain_of_a_stop_is_not_cancelled() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &PATIENCE).await;
    let api = &server.api;
    let tasks = json!({"tasks": [{"name": "long", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 600_000}}]});
    let root = api.call("tasks.execute", tasks).await["root_task_id"].take();
    until(api, &root, "in_progress").await;
    server.ask_to_stop();
    until_draining(api).await;
    let late = json!({"tasks": [{"name": "late", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 1}}]});
    let late = api.call("tasks.execute", late).await["root_task_id"].take();

    let refused = program::run(["drain", "--cancel", "--url", api.url.as_str()]).await;

    let refused = refused.refused(2);
    assert!(refused.contains("the server is stopping"), "{refused}");
    let again = program::run(["drain", "--url", api.url.as_str()]).await;
    let again = again.done();
    assert!(again.starts_with("the server is stopping"), "{again}");
    assert_eq!(readiness(api).await.0, 503);
    let why = api.call("tasks.explain", json!({"task_id": late})).await;
    let reason = &why["reasons"][0];
    assert_eq!(
        (&reason["code"], &reason["next_steps"]),
        (&json!("draining"), &json!([])),
        "{why}"
    );
    assert_eq!(task(api, &late).await["status"], "pending");
    server.ask_to_stop();
    let (_, log) = server.end().await;
    // One that changes nothing is not worth a line.
    let begun = log.matches("draining: no new attempts start").count();
    assert_eq!(begun, 1, "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_end_in_time_is_interrupted_and_said_to_be() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--drain-timeout", "1"]).await;
    let long = json!({"tasks": [{"name": "long", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 600_000}}]});
    let root = server.api.call("tasks.execute", long).await["root_task_id"].take();
    until(&server.api, &root, "in_progress").await;
    let log = server.stop().await;
    assert!(
        log.contains("attempts did not end within --drain-timeout"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_somebody_drains_begins_nothing_until_it_is_told_to() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let far = |id: &str| json!({"id": id, "name": id, "parent_id": "r", "schemas": {"method": "far", "type": "remote"}});
    let tasks = json!({"tasks": [{"id": "r", "name": "r"}, far("held"), far("free"),
        {"id": "here", "name": "here", "parent_id": "r", "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": 1}, "dependencies": [{"id": "held"}]}]});
    let ids = api.call("tasks.execute", tasks).await["task_ids"].take();
    let claim = json!({"worker": "w", "methods": ["far"]});
    let held = api.call("tasks.claim", claim.clone()).await["claims"][0].take();
    let cli = async |words: &[&str]| {
        let url = ["--url", api.url.as_str()];
        let words = ["drain"].iter().chain(words).chain(&url);
        program::run(words).await.done()
    };

    let said = cli(&[]).await;

    assert!(
        said.starts_with("draining: no new attempts start"),
        "{said}"
    );
    until_draining(api).await;
    let claims = api.call("tasks.claim", claim.clone()).await;
    assert_eq!(claims["claims"], json!([]), "workers get nothing new");
    // What is held is kept and ended as ever.
    let lease = json!({"task_id": held["task"]["id"], "lease": held["lease"]["token"]});
    api.call("tasks.renew", lease.clone()).await;
    let mut done = lease.clone();
    done["output"] = json!({});
    api.call("tasks.complete", done).await;
    let other = if held["task"]["id"] == ids["held"] {
        "free"
    } else {
        "held"
    };
    assert_eq!(task(api, &ids[other]).await["status"], "pending");
    assert_eq!(task(api, &ids["here"]).await["status"], "pending");

    let said = cli(&["--cancel"]).await;

    assert!(said.starts_with("no longer draining"), "{said}");
    let mut done = api.call("tasks.claim", claim).await["claims"][0].take();
    done = json!({"task_id": done["task"]["id"], "lease": done["lease"]["token"], "output": {}});
    api.call("tasks.complete", done).await;
    until(api, &ids["r"], "completed").await;
    let ready = async || (readiness(api).await.0 == 200).then_some(());
    api.eventually("it is ready again", ready).await;
    server.stop().await;
}

/// What runs of what a program has started in a session of its own, by the numbers in a file.
fn sessions(file: &std::path::Path) -> usize {
    let pids = std::fs::read_to_string(file).unwrap_or_default();
    let runs = |pid: &&str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let state = status.lines().find_map(|line| line.strip_prefix("State:"));
        state.is_some_and(|state| !state.trim_start().starts_with(['Z', 'X']))
    };
    pids.lines().filter(runs).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_left_the_group_of_its_program_is_stopped_too() {
    let folder = Folder::new();
    let options = ["--allow-command", "sh", "--drain-timeout", "0"];
    let server = Server::start_with(&folder, &options).await;
    let pids = folder.path().join("pids");
    let script = format!(
        "setsid sh -c 'echo $$ >> {}; exec sleep 600' & sleep 600",
        pids.display()
    );
    let task = json!({"name": "p", "schemas": {"method": "command_executor"},
        "inputs": {"program": "sh", "args": ["-c", script]},
        "params": {"retry": {"max_attempts": 2, "initial_delay_ms": 0}}});
    server
        .api
        .call("tasks.execute", json!({"tasks": [task]}))
        .await;
    let begun = async || (sessions(&pids) == 1).then_some(());
    server.api.eventually("it has begun", begun).await;
    server.kill().await;
    assert_eq!(sessions(&pids), 1, "nothing ends it yet");

    let server = Server::start_with(&folder, &options).await;
    let again = async || {
        let lines = std::fs::read_to_string(&pids).ok()?.lines().count();
        (lines == 2).then_some(())
    };
    server.api.eventually("it has begun again", again).await;

    assert_eq!(
        sessions(&pids),
        1,
        "the first was ended before the second began"
    );
    server.stop().await;
    assert_eq!(sessions(&pids), 0, "a calm stop leaves nothing");
}

//! What a newcomer meets: runs in a pipe, flows that nobody has run, servers and proxies that do not answer, variables.

use serde_json::{Value, json};
use std::path::Path;
use taskledger_testkit::program::{self, Ended, end, run, run_with};
use taskledger_testkit::server::{Folder, Server};

/// Fails twice; then what needs it is skipped, and what cleans up runs.
const RETRIED: &str = r#"[
    {"id": "r", "name": "root"},
    {"id": "slow", "name": "slow", "parent_id": "r", "schemas": {"method": "sleep_executor"},
     "inputs": {"duration_ms": 60000},
     "params": {"timeout_seconds": 0.05, "retry": {"max_attempts": 2, "initial_delay_ms": 50, "jitter": 0}}},
    {"id": "after", "name": "after", "parent_id": "r", "schemas": {"method": "echo_executor"},
     "dependencies": [{"id": "slow"}]},
    {"id": "clean", "name": "clean", "parent_id": "r", "schemas": {"method": "echo_executor"},
     "dependencies": [{"id": "after", "when": "always"}]}
]"#;
/// Each change of those tasks, in the order in which they happen.
const CHANGES: [&str; 10] = [
    "▸ root  in_progress",
    "▸ slow  in_progress",
    "✗ slow  failed",
    "· slow  pending",
    "▸ slow  in_progress",
    "✗ slow  failed",
    "▸ clean  in_progress",
    "✓ clean  completed",
    "✗ root  failed",
    "○ after  skipped",
];

fn changes(ended: &Ended) -> Vec<&str> {
    let lines = ended.out.lines().skip(1);
    let lines = lines.take_while(|line| line.ends_with(')'));
    let name_and_status = |line| match str::match_indices(line, "  ").nth(1) {
        Some((at, _)) => line[..at].trim_end_matches(':'),
        None => line,
    };
    lines
        .map(name_and_status)
        .map(|line| line.split(": ").next().unwrap_or(line))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_in_a_pipe_tells_each_attempt_and_each_end_in_order() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let on_server = ["run", "-", "--url", &server.api.url];
    let on_server = run_with(on_server, folder.path(), RETRIED).await;
    let embedded = run_with(["run", "-"], folder.path(), RETRIED).await;
    for ended in [&on_server, &embedded] {
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_eq!(changes(ended), CHANGES, "{ended:?}");
        assert!(ended.out.contains("another attempt follows"), "{ended:?}");
        assert!(ended.out.contains("attempt 2"), "{ended:?}");
    }

    let id = on_server.out.lines().next().unwrap();
    let id = id.trim_start_matches("flow ");
    let url = server.api.url.as_str();
    let watch = ["watch", id, "--from", "beginning", "--url", url];
    let watched = run(watch).await;
    let told = |what: &str, name: &str| {
        let lines = watched.out.lines();
        lines
            .filter(|line| line.contains(what) && line.contains(&format!("  {name} (")))
            .count()
    };
    assert_eq!(told("  failed ", "slow"), 2, "{watched:?}");
    assert_eq!(told("  completed ", "clean"), 1, "{watched:?}");
    assert_eq!(told("  failed ", "root"), 1, "{watched:?}");
    assert_eq!(told("  skipped ", "after"), 1, "{watched:?}");

    // Again: what waits for `slow` with `when: "always"` is done again behind it.
    let again = run(["tasks", "execute", id, "--watch", "--url", url]).await;
    let told = changes(&again);
    assert!(told.contains(&"✗ slow  failed"), "{again:?}");
    assert!(told.contains(&"✓ clean  completed"), "{again:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_of_a_flow_that_was_never_executed_says_so_and_ends() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let task = json!({"name": "later", "schemas": {"method": "echo_executor"}});
    let id = server.api.call("tasks.create", task).await["id"].take();
    let id = id.as_str().unwrap();
    let url = server.api.url.as_str();
    let said = run(["watch", id, "--url", url]).await.refused(2);
    assert!(
        said.contains("`later` was never executed")
            && said.contains(&format!(
                "`taskledger tasks execute {id} --url {url}` runs it"
            )),
        "{said}"
    );
    let executed = run(["tasks", "execute", id, "--watch", "--url", url]).await;
    assert!(executed.done().contains("✓ later  completed"));
    run(["watch", id, "--url", url]).await.done();
    let past = ["tasks", "tree", id, "--as-of", "1h", "--url", url];
    let past = run(past).await.refused(2);
    assert!(
        past.contains("created"),
        "the server judges the time: {past}"
    );
    server.stop().await;
}

async fn with(words: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = program::command();
    command.args(words).envs(variables.iter().copied());
    end(command, "").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_meets_no_server_is_told_what_to_do_and_which_proxy_is_to_blame() {
    let folder = Folder::new();
    let none = folder.path().join("contexts.json");
    let none = ("TASKLEDGER_CONTEXTS", none.to_str().unwrap());
    let list = ["tasks", "list"];
    let dead = "http://127.0.0.1:1";
    let said = with(&list, &[none, ("TASKLEDGER_URL", dead)])
        .await
        .refused(4);
    for part in [
        "cannot reach http://127.0.0.1:1/",
        "`taskledger serve`",
        "--url",
        "--context",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let add = ["context", "add", "prod", "--server", dead];
    with(&add, &[none]).await.done();
    let said = with(&list, &[none]).await.refused(4);
    assert!(said.contains("the context `prod`"), "{said}");

    let away = ("TASKLEDGER_URL", "http://ledger.example");
    let proxy = "http://u:hunter2@127.0.0.1:1";
    for (words, variable, blamed) in [
        (&["tasks", "list", "--proxy", proxy][..], none, "--proxy"),
        (&list, ("TASKLEDGER_PROXY", proxy), "TASKLEDGER_PROXY"),
        (&list, ("http_proxy", proxy), "http_proxy"),
        (&["watch"], ("ALL_PROXY", proxy), "ALL_PROXY"),
    ] {
        let said = with(words, &[none, away, variable]).await.refused(4);
        let expected = format!("cannot reach the proxy http://127.0.0.1:1 of {blamed}");
        assert!(said.contains(&expected), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_have_variables_and_usage_shows_what_is_missing() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    let health = ["health", "--json"];
    let said = with(&health, &[("TASKLEDGER_SERVER", url)]).await.done();
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["status"], "ok", "{said}");
    let there = ("TASKLEDGER_URL", url);
    let variables = [there, ("TASKLEDGER_TOKEN_FILE", "/no/such")];
    let wrong = with(&health, &variables).await.refused(2);
    assert!(wrong.contains("/no/such"), "{wrong}");
    let variables = [there, ("TASKLEDGER_HEADER", "nonsense")];
    let wrong = with(&health, &variables).await.refused(2);
    assert!(wrong.contains("expected `Name: value`"), "{wrong}");

    let usage = with(&["tasks", "get"], &[there]).await.refused(2);
    assert!(usage.contains("Usage: taskledger tasks get"), "{usage}");
    assert!(!usage.contains("--url"), "{usage}");
    let doctor = [
        "doctor",
        "--data-dir",
        "/proc/nope",
        "--listen",
        "127.0.0.1:0",
    ];
    let doctor = with(&doctor, &[]).await;
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.out.contains("✗ data folder"), "{doctor:?}");
    assert!(!Path::new("/proc/nope").exists());
    server.stop().await;
}

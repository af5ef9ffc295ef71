//! Programs that a killed server has left on its machine end before anything runs beside them.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use taskledger_testkit::postgres::is_left_out;
use taskledger_testkit::server::{Api, Folder, Server};

taskledger_testkit::on_both_backends!(
    a_program_that_a_killed_server_has_left_is_stopped_before_it_runs_again,
    a_program_that_does_not_run_again_is_stopped_by_the_next_start,
);

const ALLOW: [&str; 2] = ["--allow-command", "sh"];
const STOPPED: &str = "stopping a program that an earlier server left running";

async fn until_completed(api: &Api, id: &Value) {
    let look = async || {
        let task = api.call("tasks.get", json!({"task_id": id})).await;
        (task["status"] == "completed").then_some(())
    };
    api.eventually("completed", look).await;
}

/// Each attempt of this program says whether one before it still runs, then who it is. The first runs for long.
fn script(seen: &Path) -> String {
    format!(
        "for pid in $(cut -d' ' -f2 {0} 2>/dev/null); do grep -qs '^State:.[^ZX]' /proc/$pid/status && echo beside $pid >> {0}; done; \
         echo began $$ >> {0}; test $TASKLEDGER_ATTEMPT = 1 && sleep 600; exit 0",
        seen.display()
    )
}

/// Begins the program; gives the task and what the first attempt has said.
async fn begin(server: &Server, seen: &Path, attempts: u32) -> (Value, String) {
    let task = json!({"name": "p", "schemas": {"method": "command_executor"},
        "inputs": {"program": "sh", "args": ["-c", script(seen)]},
        "params": {"retry": {"max_attempts": attempts, "initial_delay_ms": 0}}});
    let started = json!({"tasks": [task]});
    let root = server.api.call("tasks.execute", started).await["root_task_id"].take();
    let begun = async || {
        let text = std::fs::read_to_string(seen).ok();
        text.filter(|text| text.ends_with('\n'))
    };
    (root, server.api.eventually("it has begun", begun).await)
}

/// Attempts that run of those that have said who they are.
fn running(seen: &Path) -> usize {
    let all = std::fs::read_to_string(seen).unwrap();
    let pids = all.lines().filter_map(|line| line.strip_prefix("began "));
    let runs = pids.filter(|pid| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let state = status.lines().find_map(|line| line.strip_prefix("State:"));
        state.is_some_and(|state| !state.trim_start().starts_with(['Z', 'X']))
    });
    runs.count()
}

fn assert_one_by_one(seen: &Path, first: &str) {
    let all = std::fs::read_to_string(seen).unwrap();
    let after = all.strip_prefix(first).unwrap();
    assert!(
        after.starts_with("began ") && !all.contains("beside"),
        "{all}"
    );
}

fn seen_in(folder: &Folder) -> PathBuf {
    folder.path().join("seen")
}

async fn a_program_that_a_killed_server_has_left_is_stopped_before_it_runs_again(folder: Folder) {
    let seen = seen_in(&folder);
    let server = Server::start_with(&folder, &ALLOW).await;
    let (root, first) = begin(&server, &seen, 2).await;
    server.kill().await;
    assert_eq!(running(&seen), 1, "nothing ends it yet");

    let server = Server::start_with(&folder, &ALLOW).await;

    until_completed(&server.api, &root).await;
    assert_one_by_one(&seen, &first);
    let log = server.stop().await;
    assert!(log.contains(STOPPED), "{log}");
}

async fn a_program_that_does_not_run_again_is_stopped_by_the_next_start(folder: Folder) {
    let seen = seen_in(&folder);
    let server = Server::start_with(&folder, &ALLOW).await;
    begin(&server, &seen, 1).await;
    server.kill().await;

    // Also one that starts no programs itself.
    let server = Server::start(&folder).await;

    assert_eq!(running(&seen), 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_the_same_machine_stops_a_program_before_it_runs_it_again() {
    if is_left_out() {
        return;
    }
    let folder = Folder::with_database().await;
    let seen = seen_in(&folder);
    let killed = Server::start_with(&folder, &ALLOW).await;
    let (root, first) = begin(&killed, &seen, 2).await;
    // It starts while the first runs, so its start stops nothing. It may take over the flow, which interrupts nothing
    // that runs: partitions in which something runs move last.
    let other = Server::start_with(&folder, &ALLOW).await;
    assert_eq!(running(&seen), 1);

    killed.kill().await;

    until_completed(&other.api, &root).await;
    assert_one_by_one(&seen, &first);
    let log = other.stop().await;
    assert!(log.contains(STOPPED), "{log}");
    let programs = folder.path().join("state/programs");
    let left = std::fs::read_dir(programs).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["turn"], "nothing is noted any more");
}

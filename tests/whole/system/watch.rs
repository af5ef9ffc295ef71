//! `watch` and `events tail`: what happens, told once, whatever becomes of the server and of readers.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use taskledger_testkit::program::{self, run};
use taskledger_testkit::server::{Folder, Server};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};
use tokio::task::JoinHandle;
use tokio::time::timeout;

taskledger_testkit::on_both_backends!(
    a_pipe_gets_every_event_of_a_run_exactly_once_although_the_server_is_killed_in_the_middle,
    who_stops_is_told_how_to_go_on_and_misses_nothing,
);

/// For a line, or for the end of a command that follows.
const PATIENCE: Duration = Duration::from_secs(60);
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

/// A command that goes on until something ends it.
struct Following {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    err: JoinHandle<String>,
}

/// What it left behind.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    /// Lines that were not taken before.
    lines: Vec<String>,
    err: String,
}

impl Following {
    fn start(arguments: &[&str]) -> Self {
        let mut command = program::command();
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut stderr = child.stderr.take().unwrap();
        let err = tokio::spawn(async move {
            let mut text = String::new();
            stderr.read_to_string(&mut text).await.unwrap();
            text
        });
        Self { child, lines, err }
    }

    async fn line(&mut self) -> Option<String> {
        let line = timeout(PATIENCE, self.lines.next_line()).await;
        line.expect("a line comes in time").unwrap()
    }

    async fn lines(&mut self, count: usize) -> Vec<String> {
        let mut lines = Vec::new();
        while lines.len() < count {
            lines.push(self.line().await.expect("there are more lines"));
        }
        lines
    }

    fn ask_to_stop(&self) {
        let pid = Pid::from_raw(self.child.id().unwrap().cast_signed()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
    }

    async fn end(mut self) -> Ended {
        let mut lines = Vec::new();
        while let Some(line) = self.line().await {
            lines.push(line);
        }
        let status = timeout(PATIENCE, self.child.wait()).await;
        let code = status.expect("the command ends in time").unwrap().code();
        let err = self.err.await.unwrap();
        assert!(!err.contains("panicked"), "{err}");
        Ended { code, lines, err }
    }
}

/// A group of steps, each of which waits for the one before.
fn chain(steps: usize, sleep_ms: u64) -> Value {
    let mut tasks = vec![json!({"id": "root", "name": "root"})];
    for step in 0..steps {
        let mut task = json!({"id": format!("s{step}"), "name": format!("step {step}"), "parent_id": "root",
            "schemas": {"method": "sleep_executor"}, "inputs": {"duration_ms": sleep_ms}});
        if step > 0 {
            task["dependencies"] = json!([{"id": format!("s{}", step - 1)}]);
        }
        tasks.push(task);
    }
    json!({ "tasks": tasks })
}

async fn execute(server: &Server, params: Value) -> String {
    let started = server.api.call("tasks.execute", params).await;
    started["root_task_id"].as_str().unwrap().to_owned()
}

/// A server where another was.
async fn start_at(folder: &Folder, url: &str) -> Server {
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let mut command = program::command();
    command
        .args(["serve", "--listen", address])
        .args(folder.storage());
    Server::spawn(command, folder.path()).await
}

fn ids(lines: &[String]) -> Vec<String> {
    let id = |line: &String| {
        let event: Value = serde_json::from_str(line).unwrap();
        assert!(event["cursor"].is_string(), "{line}");
        event["id"].as_str().expect(line).to_owned()
    };
    lines.iter().map(id).collect()
}

/// The ids of all events of a flow, up to the end of its run.
async fn told(url: &str, flow: &str) -> Vec<String> {
    let arguments = [
        "events",
        "tail",
        "--flow",
        flow,
        "--from",
        "beginning",
        "--url",
        url,
    ];
    let mut following = Following::start(&arguments);
    let mut lines = Vec::new();
    loop {
        let line = following.line().await.expect("the run has an end");
        let event: Value = serde_json::from_str(&line).unwrap();
        lines.push(line);
        if event["final"] == true {
            return ids(&lines);
        }
    }
}

async fn a_pipe_gets_every_event_of_a_run_exactly_once_although_the_server_is_killed_in_the_middle(
    folder: Folder,
) {
    let server = Server::start(&folder).await;
    let url = server.api.url.clone();
    let flow = execute(&server, chain(6, 300)).await;
    let arguments = [
        "watch",
        &flow,
        "--output",
        "json",
        "--from",
        "beginning",
        "--url",
        &url,
    ];
    let mut following = Following::start(&arguments);
    let mut lines = following.lines(12).await;

    server.kill().await;
    let server = start_at(&folder, &url).await;
    let ended = following.end().await;

    assert_eq!(ended.code, Some(0), "{ended:?}");
    lines.extend(ended.lines);
    assert_eq!(ids(&lines), told(&url, &flow).await);
    for remark in ["trying again", "reconnected"] {
        assert_eq!(ended.err.matches(remark).count(), 1, "{}", ended.err);
    }
    server.stop().await;
}

async fn who_stops_is_told_how_to_go_on_and_misses_nothing(folder: Folder) {
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    let flow = execute(&server, chain(3, 5)).await;
    let mut following = Following::start(&["events", "tail", "--from", "beginning", "--url", url]);
    let mut lines = following.lines(7).await;

    following.ask_to_stop();
    let ended = following.end().await;

    assert_eq!(ended.code, Some(0), "{ended:?}");
    lines.extend(ended.lines);
    let (_, place) = ended.err.split_once("--last-event-id ").expect(&ended.err);
    let again = [
        "events",
        "tail",
        "--last-event-id",
        place.trim(),
        "--url",
        url,
    ];
    let mut following = Following::start(&again);
    let all = told(url, &flow).await;
    lines.extend(following.lines(all.len() - lines.len()).await);
    assert_eq!(ids(&lines), all);
    following.ask_to_stop();
    assert_eq!(following.end().await.lines, Vec::<String>::new());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_ends_with_its_flow_and_its_exit_code_tells_how() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    let watch = async |id: &str| run(["watch", id, "--url", url]).await;

    let good = execute(&server, chain(2, 400)).await;
    let said = watch(&good).await.done();
    let last = said.lines().last().unwrap();
    assert!(
        last.contains(&format!(
            "completed    100 %  root ({good}): run completed: result "
        )),
        "{said}"
    );
    assert!(said.contains("  step 1 ("), "names are shown: {said}");
    assert!(!said.contains('\x1b'), "nothing for a terminal in a pipe");
    let again = watch(&good).await.done();
    assert_eq!(again.lines().count(), 1, "how it ended: {again}");

    let bad = json!({"tasks": [{"name": "slow", "schemas": {"method": "sleep_executor"},
        "inputs": {"duration_ms": 60_000}, "params": {"timeout_seconds": 0.01}}]});
    let bad = execute(&server, bad).await;
    assert_eq!(watch(&bad).await.code, Some(1));
    let long = execute(&server, chain(1, 60_000)).await;
    let following = Following::start(&["watch", &long, "--url", url]);
    let stopped = Following::start(&["watch", &long, "--from", "beginning", "--url", url]);
    let mut stopped = stopped;
    stopped.lines(1).await;
    stopped.ask_to_stop();
    assert_eq!(
        stopped.end().await.code,
        Some(130),
        "how it ends is not known"
    );
    server
        .api
        .call("tasks.cancel", json!({"task_id": long, "cascade": true}))
        .await;
    assert_eq!(following.end().await.code, Some(3));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_of_what_is_over_already_ends_at_once() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    // given: a flow that was cancelled before it ran, and one that failed
    let task = json!({"name": "never", "schemas": {"method": "echo_executor"}});
    let never = server.api.call("tasks.create", task).await["id"].take();
    let cancel = json!({"task_id": never});
    server.api.call("tasks.cancel", cancel).await;
    let bad = json!({"tasks": [{"name": "bad", "schemas": {"method": "sleep_executor"},
        "inputs": {"duration_ms": 60_000}, "params": {"timeout_seconds": 0.01}}]});
    let bad = execute(&server, bad).await;
    // when, then
    let never = never.as_str().unwrap();
    let ended = run(["watch", never, "--output", "json", "--url", url]).await;
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let last: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        (&last["status"], &last["final"]),
        (&json!("cancelled"), &json!(true))
    );
    let ended = run(["watch", &bad, "--output", "json", "--url", url]).await;
    let last: Value = serde_json::from_str(ended.out.lines().last().unwrap()).unwrap();
    // Who goes on behind the end is told nothing, and how it ended.
    let place = last["cursor"].as_str().unwrap();
    let ended = run(["watch", &bad, "--last-event-id", place, "--url", url]).await;
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{ended:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_task_what_is_below_it_is_watched_and_types_are_chosen() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    let mut params = chain(2, 5);
    let tasks = params["tasks"].as_array_mut().unwrap();
    tasks.push(json!({"name": "below", "parent_id": "s0", "schemas": {"method": "echo_executor"}}));
    let flow = execute(&server, params).await;
    server.api.run_of(&json!(flow)).await;
    let tree = server
        .api
        .call("tasks.tree", json!({"task_id": flow}))
        .await;
    let step = tree["children"]
        .as_array()
        .unwrap()
        .iter()
        .find(|child| child["task"]["name"] == "step 0")
        .unwrap();
    let step = step["task"]["id"].as_str().unwrap();

    let said = run(["watch", step, "--from", "beginning", "--url", url])
        .await
        .done();
    assert!(
        said.contains("step 0 (") && said.contains("below ("),
        "{said}"
    );
    assert!(
        !said.contains("step 1 (") && !said.contains("root ("),
        "{said}"
    );
    let types = [
        "watch",
        &flow,
        "--from",
        "beginning",
        "--types",
        "task_completed",
        "--json",
        "--url",
        url,
    ];
    let said = run(types).await.done();
    assert_eq!(said.lines().count(), 4, "{said}");
    assert!(
        said.lines()
            .all(|line| line.contains(r#""event":"task_completed""#)),
        "{said}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    let named = async |name: &str| server.api.call("tasks.create", json!({"name": name})).await;
    named("first").await;
    let mut following = Following::start(&["events", "tail", "--from", "beginning", "--url", url]);
    following.lines(1).await;

    let Following {
        mut child,
        lines,
        err,
    } = following;
    drop(lines);
    named("second").await;

    let status = timeout(PATIENCE, child.wait())
        .await
        .expect("it ends")
        .unwrap();
    assert_eq!((status.code(), err.await.unwrap().as_str()), (Some(0), ""));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_followed_is_told_and_a_foreign_place_is_not_silently_skipped() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.clone();
    let refused = async |arguments: &[&str]| {
        let arguments = [arguments, &["--url", &url]].concat();
        run(arguments).await
    };
    let unknown = refused(&["watch", UNKNOWN]).await.refused(2);
    assert!(unknown.contains("Task not found (-32001)"), "{unknown}");
    let bad = refused(&["events", "tail", "--flow", "7"]).await.refused(2);
    assert!(bad.contains("`7` is not the id of a task"), "{bad}");

    let mut following = Following::start(&[
        "events",
        "tail",
        "--last-event-id",
        "nonsense",
        "--url",
        &url,
    ]);
    let reset: Value = serde_json::from_str(&following.line().await.unwrap()).unwrap();
    assert_eq!(
        (&reset["event"], &reset["reason"]),
        (&json!("reset"), &json!("malformed"))
    );
    following.ask_to_stop();
    let ended = following.end().await;
    assert!(
        ended.err.contains("cannot resume from this cursor"),
        "{ended:?}"
    );
    server.stop().await;
    let nobody = refused(&["events", "tail"]).await.refused(4);
    assert!(nobody.contains("cannot reach"), "{nobody}");
}

#[tokio::test]
async fn the_server_chooses_events_by_labels() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.as_str();
    let create = async |name: &str, labels: Value| {
        let params = json!({"name": name, "labels": labels});
        server.api.call("tasks.create", params).await;
    };
    create("a", json!({"team": "data", "stage": "1"})).await;
    create("b", json!({"team": "web", "stage": "1"})).await;
    create("c", json!({"team": "data"})).await;
    create("d", json!({"team": "data", "stage": ""})).await;
    let chosen = async |labels: &[&str], count: usize| {
        let tail = ["events", "tail", "--from", "beginning", "--url", url];
        let mut following = Following::start(&[&tail, labels].concat());
        let lines = following.lines(count).await;
        following.ask_to_stop();
        let ended = following.end().await;
        assert_eq!(ended.lines, Vec::<String>::new(), "{labels:?}");
        let name = |line: &String| -> String {
            let event: Value = serde_json::from_str(line).unwrap();
            event["name"].as_str().expect(line).to_owned()
        };
        lines.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(chosen(&["--label", "team=data"], 3).await, ["a", "c", "d"]);
    let both = ["--label", "team=data", "--label", "stage"];
    assert_eq!(chosen(&both, 2).await, ["a", "d"]);
    assert_eq!(chosen(&["--label", "stage="], 1).await, ["d"]);
    let bad = run(["events", "tail", "--label", "=x", "--url", url]).await;
    let bad = bad.refused(2);
    assert!(bad.contains("--label =x: "), "{bad}");
    server.stop().await;
}

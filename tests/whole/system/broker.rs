//! `taskledger broker` as a process: an agent publishes, another one does the task, a third one sees the result.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use taskledger_testkit::certificates::Files;
use taskledger_testkit::program::{command, run};
use taskledger_testkit::server::{Folder, Server};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

/// How long anything may take, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command that goes on; killed when it is dropped.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(server: &Server, arguments: &[&str]) -> Self {
        let mut command = command();
        command
            .args(["broker", "--json", "--url", &server.api.url])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    async fn says(&mut self) -> Value {
        let line = timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.expect("it says something").unwrap();
        serde_json::from_str(&line.expect("it goes on")).unwrap()
    }

    /// Asks it to stop, and waits until it has.
    async fn stop(&mut self) {
        let pid = self.child.id().unwrap().try_into().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
        let ended = timeout(PATIENCE, self.child.wait()).await;
        assert_eq!(ended.expect("it ends").unwrap().code(), Some(0));
    }
}

async fn broker(server: &Server, arguments: &[&str]) -> taskledger_testkit::program::Ended {
    let before = ["broker", "--url", &server.api.url];
    run([&before, arguments].concat()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_does_what_another_agent_publishes() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let script = r#"read input; [ "$TASKLEDGER_METHOD" = math.add ] || { echo "not mine" >&2; exit 7; }
        printf '{"got": %s, "attempt": %s}' "$input" $TASKLEDGER_ATTEMPT"#;
    let arguments = [
        "subscribe",
        "--agent",
        "calculator",
        "--type",
        "math.*",
        "--",
        "sh",
        "-c",
        script,
    ];
    let mut agent = Running::start(&server, &arguments);
    let mut results = Running::start(&server, &["results", "--agent", "ann", "--progress"]);
    let parameters = [
        "--type",
        "math.add",
        "--agent",
        "ann",
        "--parameters",
        r#"{"a": 1}"#,
    ];
    let added = broker(
        &server,
        &[&["publish", "--wait", "--id", "t1"], &parameters[..]].concat(),
    )
    .await;
    let line = added.done();
    assert_eq!(
        line.trim_end(),
        r#"t1  completed  {"attempt":1,"got":{"a":1}}"#
    );
    let given = agent.says().await;
    assert_eq!(
        (
            &given["task_id"],
            &given["task_type"],
            &given["parameters"],
            &given["requester_agent_id"]
        ),
        (
            &json!("t1"),
            &json!("math.add"),
            &json!({"a": 1}),
            &json!("ann")
        )
    );
    // Its beginning may be reported first.
    let mut told = results.says().await;
    while told["status"] == "in_progress" {
        told = results.says().await;
    }
    assert_eq!(
        (
            &told["task_id"],
            &told["status"],
            &told["executor_agent_id"],
            &told["result"]
        ),
        (
            &json!("t1"),
            &json!("completed"),
            &json!("calculator"),
            &json!({"attempt": 1, "got": {"a": 1}})
        )
    );
    // A program that fails fails its task, for which the command that waits has an exit code.
    let other = [
        "publish", "--type", "math.sub", "--agent", "ann", "--wait", "--id", "t2",
    ];
    let failed = broker(&server, &other).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let said = "t2  failed  program `sh` ended with exit code 7: not mine";
    assert_eq!(failed.out.trim_end(), said);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_answered_by_hand_and_options_reach_the_message() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let publish = [
        "publish",
        "--type",
        "x",
        "--to",
        "robot",
        "--id",
        "t",
        "--priority",
        "critical",
        "--within",
        "600",
        "--metadata",
        r#"{"k": [1]}"#,
    ];
    assert_eq!(broker(&server, &publish).await.done(), "t\n");
    // The same again is the same task, another one is refused.
    let again = broker(&server, &["publish", "--type", "y", "--id", "t"]).await;
    assert!(again.refused(2).contains("ids are unique"));
    let subscribe = [
        "subscribe",
        "--agent",
        "robot",
        "--type",
        "x",
        "--result",
        r#"{"ok": true}"#,
        "--count",
        "1",
    ];
    let done = broker(&server, &[&["--json"], &subscribe[..]].concat())
        .await
        .done();
    let task: Value = serde_json::from_str(&done).unwrap();
    assert_eq!(
        (
            &task["priority"],
            &task["responder_agent_id"],
            &task["metadata"]
        ),
        (&json!("critical"), &json!("robot"), &json!({"k": [1]}))
    );
    assert!(task["deadline"].is_string(), "{task}");
    let results = broker(&server, &["results", "--id", "t", "--count", "1"]).await;
    assert_eq!(results.done(), "t  completed  {\"ok\":true}\n");
    let wrong = broker(&server, &["publish", "--type", "x", "--parameters", "[]"]).await;
    assert!(wrong.refused(2).contains("not a JSON object"));
    let wrong = broker(&server, &["publish", "--type", "a@b"]).await;
    assert!(wrong.refused(2).contains("task_type"));
    let nowhere = run(["broker", "--url", "http://127.0.0.1:9", "results"]).await;
    assert!(nowhere.refused(4).contains("cannot reach"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_goes_on_when_the_server_is_back() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let address = server
        .api
        .url
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .to_owned();
    let mut agent = Running::start(&server, &["subscribe", "--type", "x", "--result", "{}"]);
    // One whose program ends while there is no server.
    let begun = folder.path().join("begun");
    let gate = folder.path().join("gate");
    let script =
        r#"echo begun >> "$1"; until [ -e "$2" ]; do sleep 0.05; done; echo '{"ok": true}'"#;
    let (one, two) = (begun.to_str().unwrap(), gate.to_str().unwrap());
    let does = [
        "subscribe",
        "--agent",
        "slow",
        "--type",
        "slow",
        "--",
        "sh",
        "-c",
        script,
        "sh",
        one,
        two,
    ];
    let mut slow = Running::start(&server, &does);
    let publish = ["publish", "--type", "x", "--wait"];
    broker(&server, &publish).await.done();
    agent.says().await;
    broker(&server, &["publish", "--type", "slow", "--id", "s"])
        .await
        .done();
    slow.says().await;
    server.kill().await;
    std::fs::write(&gate, "").unwrap();
    // Its result is tried, in vain.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut again = command();
    again
        .args(["serve", "--listen", &address])
        .args(folder.storage());
    let server = Server::spawn(again, folder.path()).await;
    broker(&server, &publish).await.done();
    agent.says().await;
    let results = broker(&server, &["results", "--id", "s", "--count", "1"]).await;
    assert_eq!(results.done(), "s  completed  {\"ok\":true}\n");
    // It goes on with the next task, and has done the first one once.
    let next = ["publish", "--type", "slow", "--id", "s2", "--wait"];
    broker(&server, &next).await.done();
    assert_eq!(slow.says().await["task_id"], "s2");
    let runs = std::fs::read_to_string(&begun).unwrap();
    assert_eq!(runs.lines().count(), 2);
    slow.stop().await;
    agent.stop().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_output_fails_its_task_and_the_agent_goes_on() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    // 40 objects within each other, of which 32 are accepted.
    let script = r#"[ "$TASKLEDGER_TASK_ID" = deep ] || { echo '{"ok": true}'; exit; }
        i=0; while [ $i -lt 40 ]; do printf '{"a":'; i=$((i + 1)); done; printf 1
        while [ $i -gt 0 ]; do printf '}'; i=$((i - 1)); done"#;
    let does = ["subscribe", "--type", "x", "--", "sh", "-c", script];
    let mut agent = Running::start(&server, &does);
    let publish = ["publish", "--type", "x", "--wait", "--id"];
    let refused = broker(&server, &[&publish[..], &["deep"]].concat()).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let said = "deep  failed  the result is not taken: result: values are nested too deeply";
    assert!(refused.out.starts_with(said), "{refused:?}");
    let taken = broker(&server, &[&publish[..], &["flat"]].concat()).await;
    assert_eq!(taken.done(), "flat  completed  {\"ok\":true}\n");
    agent.says().await;
    agent.says().await;
    // With nothing to do it ends at the first signal, and takes nothing more.
    agent.stop().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_results_of_two_tasks_with_one_id_both_count() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let subscribe = ["subscribe", "--agent", "robot", "--result", "{}"];
    for agent in ["ann", "bob"] {
        let publish = ["publish", "--type", "x", "--id", "t", "--agent", agent];
        broker(&server, &publish).await.done();
    }
    let given = broker(&server, &[&subscribe[..], &["--count", "2"]].concat()).await;
    assert_eq!(given.done(), "t  x  {}\nt  x  {}\n");
    for agent in ["ann", "bob"] {
        let results = broker(&server, &["results", "--agent", agent, "--count", "1"]).await;
        assert_eq!(results.done(), "t  completed  {}\n");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_tls_is_asked_for_its_certificate() {
    let (folder, files) = (Folder::new(), Files::new());
    let arguments = files.arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let server = Server::start_with(&folder, &arguments).await;
    let publish = ["publish", "--type", "x", "--id", "t"];
    let unknown = broker(&server, &publish).await.refused(4);
    assert!(unknown.contains("certificate"), "{unknown}");
    let authority = files.authority();
    let trusted = ["--ca-file", authority.to_str().unwrap()];
    let published = broker(&server, &[&trusted, &publish[..]].concat()).await;
    assert_eq!(published.done(), "t\n");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_names_the_agents_that_it_speaks_for() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--auth", "on"]).await;
    let admin = folder.data().join("admin.token");
    let admin = admin.to_str().unwrap();
    let create = [
        "tokens",
        "create",
        "ann",
        "--scopes",
        "tasks:read,tasks:run,worker",
        "--agent",
        "robot",
        "--agent",
        "drone",
        "--json",
        "--url",
        &server.api.url,
        "--token-file",
        admin,
    ];
    let created: Value = serde_json::from_str(&run(create).await.done()).unwrap();
    assert_eq!(created["agents"], json!(["robot", "drone"]));
    let list = [
        "tokens",
        "list",
        "--url",
        &server.api.url,
        "--token-file",
        admin,
    ];
    assert!(run(list).await.done().contains("robot,drone"));
    let with_token = async |arguments: &[&str]| {
        let mut command = command();
        command
            .args(arguments)
            .args(["--url", &server.api.url])
            .env("TASKLEDGER_TOKEN", created["token"].as_str().unwrap());
        taskledger_testkit::program::end(command, "").await
    };
    let who = with_token(&["whoami", "--json"]).await.done();
    let who: Value = serde_json::from_str(&who).unwrap();
    assert_eq!(who["agents"], json!(["robot", "drone"]));
    let publish = ["broker", "publish", "--type", "x", "--id", "t", "--agent"];
    for (agent, code) in [("ann", 0), ("robot", 0), ("other", 2)] {
        let ended = with_token(&[&publish[..], &[agent]].concat()).await;
        assert_eq!(ended.code, Some(code), "{ended:?}");
    }
    let denied = broker(&server, &["publish", "--type", "x"])
        .await
        .refused(2);
    assert!(denied.contains("TASKLEDGER_TOKEN"), "{denied}");
    server.stop().await;
}

//! `taskledger worker` as a process: what signals do to it, and tasks that it does for a server.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use taskledger_testkit::program::{command, run};
use taskledger_testkit::receiver::{Answer, Receiver};
use taskledger_testkit::server::{Folder, Server};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr};
use tokio::time::timeout;

taskledger_testkit::on_both_backends!(
    a_worker_does_remote_tasks,
    a_failure_says_what_the_program_said,
    a_cancelled_task_ends_its_program,
    another_worker_takes_over_when_one_is_killed,
    a_worker_that_was_paused_beyond_its_lease_changes_nothing,
    methods_are_declared_and_listed,
    a_program_goes_on_while_the_server_restarts,
);

/// How long anything may take, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A worker for the method `m`; killed when it is dropped.
struct Worker {
    child: Child,
    said: Lines<BufReader<ChildStderr>>,
}

impl Worker {
    /// Starts one whose program is a script of the shell.
    fn start(url: &str, arguments: &[&str], script: &str) -> Self {
        let mut command = command();
        command
            .args(["worker", "--method", "m", "--json", "--url", url])
            .args(arguments)
            .args(["--", "sh", "-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, said }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Waits for a line on standard error.
    async fn says(&mut self, text: &str) {
        let found = async {
            while let Some(line) = self.said.next_line().await.unwrap() {
                if line.contains(text) {
                    return;
                }
            }
            panic!("the worker has ended without saying `{text}`")
        };
        timeout(PATIENCE, found).await.expect("the worker says it");
    }

    /// How it ended, and what it said of its tasks.
    async fn ended(mut self) -> (ExitStatus, Vec<Value>) {
        let ended = async {
            let mut out = String::new();
            let mut stdout = self.child.stdout.take().unwrap();
            stdout.read_to_string(&mut out).await.unwrap();
            (self.child.wait().await.unwrap(), out)
        };
        let (status, out) = timeout(PATIENCE, ended).await.expect("the worker ends");
        let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
        (status, lines.collect())
    }
}

/// A server that has no executors and one task, and then agrees to everything.
async fn one_task() -> Receiver {
    let receiver = Receiver::start().await;
    let claims = json!({"result": {"claims": [{
        "task": {"id": "t", "schemas": {"method": "m"}}, "input": {}, "context": {},
        "lease": {"token": "l", "attempt": 1, "expires_at": "..", "lease_seconds": 60},
    }]}});
    let agreed = json!({"result": {"task_id": "t", "status": "completed"}});
    let executors = json!({"result": {"executors": []}});
    let first = [executors, claims].map(|it| Answer::status(200).body(it.to_string()).into());
    receiver.answers(first);
    receiver.answer(Answer::status(200).body(agreed.to_string()));
    receiver
}

fn calls(receiver: &Receiver) -> Vec<String> {
    let method = |body: &[u8]| {
        let call: Value = serde_json::from_slice(body).unwrap();
        call["method"].as_str().unwrap().to_owned()
    };
    let requests = receiver.requests();
    requests.iter().map(|it| method(&it.body)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_told_to_stop_waits_for_its_program() {
    let receiver = one_task().await;
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let script = format!(
        "echo 'progress 0.5' >&2; until [ -e {} ]; do sleep 0.02; done; echo '{{\"a\": 1}}'",
        gate.display()
    );
    let mut worker = Worker::start(&receiver.url(""), &["--progress"], &script);
    receiver.wait_for(3).await;
    worker.signal(Signal::TERM);
    worker.says("waiting for 1 to end").await;
    std::fs::write(&gate, "").unwrap();
    let (status, lines) = worker.ended().await;
    assert_eq!(status.code(), Some(0));
    assert_eq!(lines[0]["outcome"], "completed", "{lines:?}");
    let expected = [
        "system.executors",
        "tasks.claim",
        "tasks.renew",
        "tasks.complete",
    ];
    assert_eq!(calls(&receiver), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_the_program_and_gives_the_task_back() {
    let receiver = one_task().await;
    let script = "echo 'progress 0.5' >&2; sleep 1000";
    let mut worker = Worker::start(&receiver.url(""), &["--progress"], script);
    receiver.wait_for(3).await;
    worker.signal(Signal::INT);
    worker.says("stopping").await;
    worker.signal(Signal::INT);
    let (status, lines) = worker.ended().await;
    assert_eq!(status.code(), Some(0));
    assert_eq!(lines[0]["outcome"], "released", "{lines:?}");
    let expected = [
        "system.executors",
        "tasks.claim",
        "tasks.renew",
        "tasks.release",
    ];
    assert_eq!(calls(&receiver), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_is_still_there_after_the_grace_is_ended() {
    let receiver = one_task().await;
    let script = "echo 'progress 0.5' >&2; sleep 1000";
    let arguments = ["--progress", "--grace-seconds", "0"];
    let worker = Worker::start(&receiver.url(""), &arguments, script);
    receiver.wait_for(3).await;
    worker.signal(Signal::TERM);
    let (status, lines) = worker.ended().await;
    assert_eq!(status.code(), Some(0));
    assert_eq!(lines[0]["outcome"], "released", "{lines:?}");
}

/// Executes one remote task of the method `m` and returns its id.
async fn given_task(server: &Server, params: Value) -> Value {
    let task = json!({"name": "remote", "schemas": {"type": "remote", "method": "m"}, "inputs": {"n": 20},
        "params": params});
    let answer = server.api.call("tasks.execute", json!({"tasks": [task]}));
    answer.await["root_task_id"].take()
}

/// The task, when it is like this.
async fn when(server: &Server, task: &Value, status: &str) -> Value {
    let look = async || {
        let found = server.api.call("tasks.get", json!({"task_id": task})).await;
        (found["status"] == status).then_some(found)
    };
    server.api.eventually(status, look).await
}

async fn a_worker_does_remote_tasks(folder: Folder) {
    let server = Server::start(&folder).await;
    let first = given_task(&server, json!({})).await;
    let script = r#"read input; echo 'progress 0.5 half done' >&2
        case $TASKLEDGER_ATTEMPT in 1) printf '{"got": %s, "method": "%s"}' "$input" $TASKLEDGER_METHOD;; esac"#;
    let arguments = ["--progress", "--concurrency", "2", "--worker", "w"];
    let worker = Worker::start(&server.api.url, &arguments, script);

    let done = when(&server, &first, "completed").await;
    assert_eq!(done["result"], json!({"got": {"n": 20}, "method": "m"}));
    // One that comes while the worker waits.
    let second = given_task(&server, json!({})).await;
    when(&server, &second, "completed").await;

    let listed = run(["workers", "list", "--url", &server.api.url]).await;
    let listed = listed.done();
    assert!(listed.lines().nth(1).unwrap().starts_with("w "), "{listed}");
    let drained = run(["workers", "drain", "w", "--url", &server.api.url]).await;
    assert!(drained.done().starts_with("w gets no more tasks"));
    let (status, lines) = worker.ended().await;
    assert_eq!((status.code(), lines.len()), (Some(0), 2), "{lines:?}");
    server.stop().await;
}

async fn a_failure_says_what_the_program_said(folder: Folder) {
    let server = Server::start(&folder).await;
    let script = r#"[ $TASKLEDGER_ATTEMPT = 1 ] || { echo bad input >&2; exit 65; }; exit 1"#;
    let _worker = Worker::start(&server.api.url, &[], script);
    let retry = json!({"retry": {"max_attempts": 5, "initial_delay_ms": 1}});
    let task = given_task(&server, retry).await;
    let failed = when(&server, &task, "failed").await;
    let error = "program `sh` ended with exit code 65: bad input";
    assert!(
        failed["error"].as_str().unwrap().contains(error),
        "{failed}"
    );
    server.stop().await;
}

async fn a_cancelled_task_ends_its_program(folder: Folder) {
    let server = Server::start(&folder).await;
    let mark = folder.path().join("cleaned");
    let script = format!(
        "trap 'echo > {}; exit' TERM; sleep 1000 & wait",
        mark.display()
    );
    // It hears of the cancellation while the grace lasts, however long the lease is.
    let mut worker = Worker::start(&server.api.url, &["--lease-seconds", "3600"], &script);
    let task = given_task(&server, json!({"cancel_grace_seconds": 15})).await;
    when(&server, &task, "in_progress").await;
    server
        .api
        .call("tasks.cancel", json!({"task_id": task}))
        .await;
    let look = async || mark.exists().then_some(());
    server.api.eventually("the program cleans up", look).await;
    worker.signal(Signal::TERM);
    worker.says("stopping").await;
    let (_, lines) = worker.ended().await;
    assert_eq!(lines[0]["outcome"], "cancelled", "{lines:?}");
    server.stop().await;
}

async fn another_worker_takes_over_when_one_is_killed(folder: Folder) {
    let server = Server::start(&folder).await;
    // Ends when nobody reads what it writes.
    let endless = "while sleep 0.1; do echo; done";
    let arguments = ["--lease-seconds", "5", "--worker", "first"];
    let first = Worker::start(&server.api.url, &arguments, endless);
    let task = given_task(&server, json!({})).await;
    when(&server, &task, "in_progress").await;
    first.signal(Signal::KILL);
    let script = r#"printf '{"attempt": %s}' $TASKLEDGER_ATTEMPT"#;
    let second = Worker::start(&server.api.url, &["--worker", "second"], script);
    let done = when(&server, &task, "completed").await;
    assert_eq!(done["result"], json!({"attempt": 2}));
    second.signal(Signal::TERM);
    let (status, lines) = second.ended().await;
    assert_eq!((status.code(), lines.len()), (Some(0), 1), "{lines:?}");
    server.stop().await;
}

async fn a_program_goes_on_while_the_server_restarts(folder: Folder) {
    let server = Server::start(&folder).await;
    let (begun, gate) = (folder.path().join("begun"), folder.path().join("gate"));
    let script = format!(
        "touch {}; until [ -e {} ]; do sleep 0.02; done; printf '{{\"attempt\": %s}}' $TASKLEDGER_ATTEMPT",
        begun.display(),
        gate.display()
    );
    let address = server.api.url.clone();
    let mut worker = Worker::start(&address, &["--lease-seconds", "60"], &script);
    let task = given_task(&server, json!({})).await;
    when(&server, &task, "in_progress").await;
    // Only then has the answer to the claim arrived.
    let has_begun = async || begun.exists().then_some(());
    server.api.eventually("the program begins", has_begun).await;
    server.kill().await;
    std::fs::write(&gate, "").unwrap();
    worker.says("trying again until it goes well").await;
    let mut command = command();
    let listen = address.trim_start_matches("http://").trim_end_matches('/');
    command
        .args(["serve", "--listen", listen])
        .args(folder.storage());
    let server = Server::spawn(command, folder.path()).await;
    let done = when(&server, &task, "completed").await;
    assert_eq!(done["result"], json!({"attempt": 1}));
    worker.signal(Signal::TERM);
    let (_, lines) = worker.ended().await;
    assert_eq!(lines[0]["outcome"], "completed", "{lines:?}");
    server.stop().await;
}

async fn a_worker_that_was_paused_beyond_its_lease_changes_nothing(folder: Folder) {
    let server = Server::start(&folder).await;
    let gate = folder.path().join("gate");
    let late = format!(
        "until [ -e {} ]; do sleep 0.02; done; echo '{{\"late\": true}}'",
        gate.display()
    );
    let arguments = ["--lease-seconds", "5", "--worker", "first"];
    let first = Worker::start(&server.api.url, &arguments, &late);
    let task = given_task(&server, json!({})).await;
    when(&server, &task, "in_progress").await;
    first.signal(Signal::STOP);
    let script = r#"printf '{"attempt": %s}' $TASKLEDGER_ATTEMPT"#;
    let second = Worker::start(&server.api.url, &["--worker", "second"], script);
    let done = when(&server, &task, "completed").await;
    drop(second);
    std::fs::write(&gate, "").unwrap();
    first.signal(Signal::CONT);
    first.signal(Signal::TERM);
    let (_, lines) = first.ended().await;
    assert_eq!(lines[0]["outcome"], "lost", "{lines:?}");
    let after = server.api.call("tasks.get", json!({"task_id": task})).await;
    assert_eq!(done["result"], json!({"attempt": 2}));
    assert_eq!(after["result"], done["result"]);
    server.stop().await;
}

async fn methods_are_declared_and_listed(folder: Folder) {
    let server = Server::start(&folder).await;
    let url = server.api.url.clone();
    let schema = folder.path().join("schema.json");
    std::fs::write(&schema, r#"{"type": "object", "required": ["n"]}"#).unwrap();
    let schema = schema.to_str().unwrap();
    let workers = async |arguments: &[&str]| {
        let arguments = [&["workers"], arguments, &["--url", &url]].concat();
        run(arguments).await
    };
    let declared = workers(&["declare", "m", "--input-schema", schema, "--limit", "5"]).await;
    let declared = declared.done();
    assert!(declared.starts_with("method           m\n"), "{declared}");
    let methods = workers(&["methods"]).await.done();
    let row: Vec<&str> = methods.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..2], ["m", "yes"], "{methods}");
    let built_in = workers(&["declare", "echo_executor"]).await.refused(2);
    assert!(built_in.contains("(-32602)"), "{built_in}");
    let undeclared = workers(&["undeclare", "m"]).await.done();
    assert_eq!(undeclared, "m is not declared any more\n");
    let again = workers(&["undeclare", "m"]).await.refused(2);
    assert!(again.contains("the method is not declared"), "{again}");
    let absent = workers(&["drain", "nobody"]).await.done();
    assert!(
        absent.starts_with("no worker `nobody` is there"),
        "{absent}"
    );
    let off = workers(&["drain", "nobody", "--off"]).await.done();
    assert_eq!(off, "nobody gets tasks\n");
    server.stop().await;
}

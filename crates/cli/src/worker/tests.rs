//! A worker against a server that follows a script, with real programs.

mod time_up;

use super::*;
use crate::clock;
use crate::testing::parsed;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};
use std::sync::Mutex;
use taskledger_terminal::testing::Buffer;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long anything may take, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a server says to a call.
enum Reply {
    Result(Value),
    Refused(i64, Value),
    /// What a proxy says whose server is away.
    Away,
    /// What a proxy says of a body that is too large for it.
    TooLarge,
    /// Nothing, for ever: nobody has work.
    Never,
}

type Calls = Vec<(String, Value)>;

/// A server; ends with the value.
struct Server {
    url: String,
    calls: watch::Receiver<Calls>,
    serving: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Server {
    /// One that answers by `script`.
    async fn start(script: impl FnMut(&str, &Value) -> Reply + Send + 'static) -> Self {
        let (told, calls) = watch::channel(Calls::new());
        let script = Arc::new(Mutex::new(script));
        let answer = move |body: String| {
            let call: Value = serde_json::from_str(&body).unwrap();
            let method = call["method"].as_str().unwrap().to_owned();
            let reply = (script.lock().unwrap())(&method, &call["params"]);
            told.send_modify(|calls| calls.push((method, call["params"].clone())));
            async move {
                let body = match reply {
                    Reply::Result(result) => json!({"result": result}),
                    Reply::Refused(code, data) => {
                        json!({"error": {"code": code, "message": "no", "data": data}})
                    }
                    Reply::Away => return (StatusCode::BAD_GATEWAY, "<html>".to_owned()),
                    Reply::TooLarge => return (StatusCode::PAYLOAD_TOO_LARGE, "<html>".to_owned()),
                    Reply::Never => std::future::pending().await,
                };
                (StatusCode::OK, body.to_string())
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/", post(answer));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            calls,
            serving,
        }
    }

    /// One that gives each call of `tasks.claim` the next of `claims`, then nothing, and answers the others by
    /// `script`.
    async fn with(
        claims: Vec<Value>,
        mut script: impl FnMut(&str, &Value) -> Reply + Send + 'static,
    ) -> Self {
        let mut claims = claims.into_iter();
        Self::start(move |method, params| match method {
            "tasks.claim" => claims.next().map_or(Reply::Never, Reply::Result),
            _ => script(method, params),
        })
        .await
    }

    /// Waits until this was called so many times, and returns all parameters of it.
    async fn called(&self, method: &str, times: usize) -> Vec<Value> {
        let of = |calls: &Calls| -> Vec<Value> {
            let calls = calls.iter().filter(|(name, _)| name == method);
            calls.map(|(_, params)| params.clone()).collect()
        };
        let mut calls = self.calls.clone();
        let came = calls.wait_for(|calls| of(calls).len() >= times);
        let came = tokio::time::timeout(PATIENCE, came).await;
        of(&came
            .unwrap_or_else(|_| panic!("{method} is called"))
            .unwrap())
    }

    /// The methods that were called, in order.
    fn methods(&self) -> Vec<String> {
        let calls = self.calls.borrow();
        calls.iter().map(|(method, _)| method.clone()).collect()
    }
}

fn claim(task: &str, lease_seconds: f64) -> Value {
    json!({
        "task": {"id": task, "schemas": {"type": "remote", "method": "m"}, "status": "in_progress"},
        "input": {"n": 1}, "context": {"root_task_id": task, "run_id": "r", "user_id": null},
        "lease": {"token": format!("lease of {task}"), "attempt": 1, "expires_at": "..", "lease_seconds": lease_seconds},
    })
}

fn claims(claims: &[Value]) -> Value {
    json!({"claims": claims})
}

fn done(task: &str) -> Reply {
    Reply::Result(json!({"task_id": task, "status": "completed"}))
}

/// A worker that runs.
struct Running {
    stop: Stop,
    out: Buffer,
    working: JoinHandle<Result<ExitCode, CliError>>,
}

impl Running {
    fn start(server: &Server, arguments: &[&str]) -> Self {
        Self::start_with(server, arguments, Stop::default())
    }

    fn start_with(server: &Server, arguments: &[&str], stop: Stop) -> Self {
        let first = ["worker", "--method", "m", "--url", &server.url];
        let args: Args = parsed(first.iter().chain(arguments)).unwrap();
        let api = Arc::new(args.remote.api().unwrap());
        let out = Buffer::default();
        let mut output = Output::to(Box::new(out.clone()), true, false);
        let told = stop.clone();
        let working = tokio::spawn(async move {
            work::work(api, args.settings, clock(), told, &mut output).await
        });
        Self { stop, out, working }
    }

    async fn ended(self) -> (Result<ExitCode, CliError>, Vec<Value>) {
        let ended = tokio::time::timeout(PATIENCE, self.working).await;
        let ended = ended.expect("the worker ends").unwrap();
        let lines = self.out.text();
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        (ended, lines.collect())
    }

    /// Stops it and returns what it said of the one attempt that there was.
    async fn stopped(self) -> Value {
        self.stop.claiming.cancel();
        let (ended, mut lines) = self.ended().await;
        assert_eq!(
            format!("{ended:?}"),
            format!("{:?}", Ok::<_, CliError>(ExitCode::SUCCESS))
        );
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.remove(0)
    }
}

#[tokio::test]
async fn a_task_is_claimed_done_and_completed() {
    let server = Server::with(vec![claims(&[claim("t", 60.0)])], |_, _| done("t")).await;
    let arguments = [
        "--worker",
        "w",
        "--lease-seconds",
        "7",
        "--",
        "sh",
        "-c",
        r#"printf '{"got": %s}' "$(cat)""#,
    ];
    let worker = Running::start(&server, &arguments);
    let asked = server.called("tasks.claim", 2).await;
    let expected =
        json!({"methods": ["m"], "max": 1, "lease_seconds": 7, "wait_seconds": 30, "worker": "w"});
    assert_eq!(asked, [expected.clone(), expected]);
    let told = server.called("tasks.complete", 1).await;
    assert_eq!(
        told,
        [json!({"task_id": "t", "lease": "lease of t", "output": {"got": {"n": 1}}})]
    );
    let line = worker.stopped().await;
    assert_eq!(
        (&line["task_id"], &line["outcome"]),
        (&json!("t"), &json!("completed"))
    );
}

#[tokio::test]
async fn no_more_is_claimed_than_there_is_room_for() {
    let first = claims(&[claim("a", 60.0), claim("b", 60.0)]);
    let server = Server::with(vec![first], |_, _| done("x")).await;
    let worker = Running::start(&server, &["--concurrency", "2", "--", "echo", "{}"]);
    server.called("tasks.complete", 2).await;
    let asked = server.called("tasks.claim", 2).await;
    assert_eq!(asked[0]["max"], 2);
    let methods = server.methods();
    assert_eq!(
        methods[..2],
        ["tasks.claim", "tasks.complete"],
        "{methods:?}"
    );
    worker.stop.claiming.cancel();
    assert_eq!(worker.ended().await.1.len(), 2);
}

#[tokio::test]
async fn progress_is_told_and_a_cancelled_task_may_clean_up() {
    let renewed = json!({"expires_at": "..", "cancel_requested": true, "reason": "cancelled"});
    let script = move |_: &str, _: &Value| Reply::Result(renewed.clone());
    let server = Server::with(vec![claims(&[claim("t", 60.0)])], script).await;
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("cleaned");
    let program = format!(
        "trap 'echo > {}; exit 0' TERM; echo 'progress 0.5 half done' >&2; sleep 1000 & wait",
        mark.display()
    );
    let worker = Running::start(&server, &["--progress", "--", "sh", "-c", &program]);
    let told = server.called("tasks.renew", 1).await;
    assert_eq!(
        told[0],
        json!({"task_id": "t", "lease": "lease of t", "progress": 0.5, "message": "half done"})
    );
    server.called("tasks.claim", 2).await;
    assert!(mark.exists());
    let line = worker.stopped().await;
    assert_eq!(line["outcome"], "cancelled");
    assert_eq!(
        server.methods(),
        ["tasks.claim", "tasks.renew", "tasks.claim"]
    );
}

#[tokio::test]
async fn a_program_whose_lease_is_lost_is_killed() {
    let script = |_: &str, _: &Value| Reply::Refused(-31010, json!({"reason": "lost"}));
    let server = Server::with(vec![claims(&[claim("t", 0.3)])], script).await;
    let program = "trap '' TERM; sleep 1000 & wait; wait; sleep 1000";
    let worker = Running::start(&server, &["--", "sh", "-c", program]);
    server.called("tasks.claim", 2).await;
    let line = worker.stopped().await;
    assert_eq!(line["outcome"], "lost");
    assert_eq!(
        line["detail"],
        "the lease has ended, and the attempt with it"
    );
    assert_eq!(
        server.methods(),
        ["tasks.claim", "tasks.renew", "tasks.claim"]
    );
}

#[tokio::test]
async fn an_outcome_is_told_until_the_server_takes_it() {
    let mut answers = vec![
        done("t"),
        Reply::Refused(-32013, json!({"retry_after_ms": 1})),
        Reply::Away,
    ];
    let script = move |_: &str, _: &Value| answers.pop().unwrap_or(Reply::Never);
    let server = Server::with(vec![claims(&[claim("t", 60.0)])], script).await;
    let worker = Running::start(&server, &["--", "echo", r#"{"a": 1}"#]);
    let told = server.called("tasks.complete", 3).await;
    assert_eq!(told[0], told[2]);
    assert_eq!(worker.stopped().await["outcome"], "completed");
}

#[tokio::test]
async fn a_program_goes_on_while_the_server_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let (path, mut renewals) = (gate.clone(), 0);
    let script = move |method: &str, _: &Value| match method {
        "tasks.renew" => {
            renewals += 1;
            if renewals == 3 {
                std::fs::write(&path, "").unwrap();
            }
            Reply::Away
        }
        _ => done("t"),
    };
    let server = Server::with(vec![claims(&[claim("t", 0.1)])], script).await;
    let program = format!(
        "until [ -e {} ]; do sleep 0.01; done; echo '{{}}'",
        gate.display()
    );
    let worker = Running::start(&server, &["--", "sh", "-c", &program]);
    server.called("tasks.complete", 1).await;
    assert_eq!(worker.stopped().await["outcome"], "completed");
}

#[tokio::test]
async fn a_failure_and_an_output_that_is_refused_are_told() {
    let first = claims(&[claim("t", 60.0)]);
    let script = |method: &str, _: &Value| match method {
        "tasks.complete" => Reply::Refused(-32602, Value::Null),
        _ => Reply::Result(json!({"task_id": "t", "status": "pending"})),
    };
    let server = Server::with(vec![first.clone()], script).await;
    let worker = Running::start(&server, &["--", "sh", "-c", "echo why >&2; exit 3"]);
    let told = server.called("tasks.fail", 1).await;
    let error = "program `sh` ended with exit code 3: why";
    assert_eq!(
        told,
        [json!({"task_id": "t", "lease": "lease of t", "error": error, "retryable": true})]
    );
    let line = worker.stopped().await;
    assert_eq!(line["detail"], format!("{error} (tried again)"));

    let server = Server::with(vec![first], script).await;
    let worker = Running::start(&server, &["--", "echo", "{}"]);
    let told = server.called("tasks.fail", 1).await;
    assert_eq!(told[0]["error"], "the output is refused: no (-32602)");
    assert_eq!(told[0]["retryable"], false);
    assert_eq!(worker.stopped().await["outcome"], "failed");
}

#[tokio::test]
async fn a_program_that_does_not_do_a_task_rejects_it() {
    let script = |_: &str, _: &Value| Reply::Result(json!({"task_id": "t", "status": "failed"}));
    let server = Server::with(vec![claims(&[claim("t", 60.0)])], script).await;
    let worker = Running::start(&server, &["--", "sh", "-c", "echo not for me >&2; exit 77"]);
    let told = server.called("tasks.fail", 1).await;
    let error = "program `sh` ended with exit code 77: not for me";
    assert_eq!(
        told,
        [json!({"task_id": "t", "lease": "lease of t", "error": error, "rejected": true})]
    );
    assert_eq!(worker.stopped().await["outcome"], "rejected");
}

#[tokio::test]
async fn a_method_that_the_server_runs_itself_is_refused_before_anything_is_claimed() {
    let executors =
        json!({"executors": [{"name": "echo_executor"}, {"name": "resize", "remote": true}]});
    let server = Server::start(move |_, _| Reply::Result(executors.clone())).await;
    let api = crate::HttpApi::new(&server.url).unwrap();
    let asked = async |methods: [&str; 2]| claimable(&api, &methods.map(str::to_owned)).await;
    assert!(asked(["resize", "crop"]).await.is_ok());
    let said = asked(["resize", "echo_executor"]).await.unwrap_err();
    let said = said.to_string();
    assert!(said.starts_with("`echo_executor` is built in: "), "{said}");
    assert!(said.contains("`schemas.type: \"remote\"`"), "{said}");
    let refused = |_: &str, _: &Value| Reply::Refused(-32004, json!({"scope": "tasks:read"}));
    let closed = Server::start(refused).await;
    let api = crate::HttpApi::new(&closed.url).unwrap();
    let begun = claimable(&api, &["echo_executor".to_owned()]).await;
    assert!(begun.is_ok(), "a worker that may not ask begins");
}

#[test]
fn names_of_methods_are_whole() {
    let read = |method: &str| {
        let words = ["worker", "--method", method, "--", "cat"];
        parsed::<Args>(words.iter()).map_err(|error| error.to_string())
    };
    assert!(read("text.upper").is_ok());
    let said = read("text.*").expect_err("a refusal");
    assert!(
        said.contains("expected the whole name of a method"),
        "{said}"
    );
}

#[tokio::test]
async fn an_output_that_a_proxy_finds_too_large_fails_the_task() {
    let script = |method: &str, _: &Value| match method {
        "tasks.complete" => Reply::TooLarge,
        _ => Reply::Result(json!({"task_id": "t", "status": "failed"})),
    };
    let server = Server::with(vec![claims(&[claim("t", 60.0)])], script).await;
    let worker = Running::start(&server, &["--", "echo", "{}"]);
    let told = server.called("tasks.fail", 1).await;
    let error = told[0]["error"].as_str().unwrap();
    assert!(error.starts_with("the output is refused: "), "{error}");
    assert!(error.contains("413 Payload Too Large"), "{error}");
    assert_eq!(told[0]["retryable"], false);
    assert_eq!(worker.stopped().await["outcome"], "failed");
    assert_eq!(server.called("tasks.complete", 1).await.len(), 1);
}

#[tokio::test]
async fn what_runs_when_the_worker_must_end_is_released() {
    let released = |_: &str, _: &Value| Reply::Result(json!({"task_id": "t", "status": "pending"}));
    let server = Server::with(vec![claims(&[claim("t", 1.0)])], released).await;
    let worker = Running::start(&server, &["--", "sleep", "1000"]);
    server.called("tasks.renew", 1).await;
    worker.stop.claiming.cancel();
    worker.stop.running.cancel();
    assert_eq!(
        server.called("tasks.release", 1).await,
        [json!({"task_id": "t", "lease": "lease of t"})]
    );
    assert_eq!(worker.stopped().await["outcome"], "released");
}

#[tokio::test]
async fn what_is_claimed_while_the_worker_stops_is_given_back() {
    let stop = Stop::default();
    let told = stop.clone();
    let server = Server::start(move |method, _| {
        told.claiming.cancel();
        Reply::Result(match method {
            "tasks.claim" => claims(&[claim("t", 60.0)]),
            _ => json!({"task_id": "t", "status": "pending"}),
        })
    })
    .await;
    let worker = Running::start_with(&server, &["--", "false"], stop);
    let (ended, lines) = worker.ended().await;
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(lines[0]["outcome"], "released");
    assert_eq!(server.methods(), ["tasks.claim", "tasks.release"]);
}

#[tokio::test]
async fn a_worker_that_must_end_does_not_wait_for_a_server_that_is_away() {
    let server = Server::with(vec![claims(&[claim("t", 60.0)])], |_, _| Reply::Never).await;
    let worker = Running::start(&server, &["--", "echo", "{}"]);
    server.called("tasks.complete", 1).await;
    worker.stop.claiming.cancel();
    worker.stop.running.cancel();
    assert_eq!(worker.stopped().await["outcome"], "untold");
}

#[tokio::test]
async fn a_drained_worker_ends_when_it_is_done() {
    let drained = json!({"claims": [], "draining": true});
    let first = claims(&[claim("t", 60.0)]);
    let server = Server::with(vec![first, drained], |_, _| done("t")).await;
    let worker = Running::start(&server, &["--concurrency", "2", "--", "echo", "{}"]);
    let (ended, lines) = worker.ended().await;
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(lines.len(), 1);
}

#[tokio::test]
async fn a_worker_that_may_not_claim_ends_and_one_whose_server_is_away_does_not() {
    let mut answers = vec![
        Reply::Refused(-32004, json!({"scope": "worker"})),
        Reply::Refused(-32603, Value::Null),
        Reply::Away,
    ];
    let server = Server::start(move |_, _| answers.pop().unwrap()).await;
    let (ended, _) = Running::start(&server, &["--", "echo", "{}"]).ended().await;
    let said = ended.unwrap_err().to_string();
    assert!(
        said.contains("the credentials lack the scope `worker`"),
        "{said}"
    );
    assert_eq!(server.methods().len(), 3);
}

#[tokio::test]
async fn a_program_that_cannot_be_started_costs_no_attempt() {
    let released = |_: &str, _: &Value| Reply::Result(json!({"task_id": "t", "status": "pending"}));
    let server = Server::with(vec![claims(&[claim("t", 60.0)])], released).await;
    let worker = Running::start(&server, &["--", "./no/such/program"]);
    let (ended, lines) = worker.ended().await;
    let said = ended.unwrap_err().to_string();
    assert!(
        said.starts_with("cannot run `./no/such/program`: "),
        "{said}"
    );
    assert_eq!(lines[0]["outcome"], "released");
}

//! Claims about programs that really run. `sh` stands for any program that starts others.

use super::{CommandExecutor, Options, OptionsError};
use crate::engine::executor::run::{AttemptOutcome, TimeLimits, run_attempt};
use crate::engine::executor::test_support::{job, registered, takes};
use crate::engine::executor::{Executor as _, ExecutorError, Job};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use taskledger_domain::flow::FailureReason;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::unix::pipe;

fn executor() -> CommandExecutor {
    CommandExecutor::new(Options::allowing(["sh", "cat", "env", "/bin/echo"])).unwrap()
}

async fn run(inputs: Value) -> Result<Value, ExecutorError> {
    executor().execute(job(inputs)).await
}

fn sh(script: &str) -> Value {
    json!({"program": "sh", "args": ["-c", script]})
}

#[tokio::test]
async fn arguments_arrive_as_they_are() {
    let args = ["a b", "$HOME", "*", ";", "\"ä'"];
    let result = run(json!({"program": "/bin/echo", "args": args}))
        .await
        .unwrap();
    assert_eq!(result["stdout"], "a b $HOME * ; \"ä'\n");
    assert_eq!(result["exit_code"], 0);
    assert_eq!(result["stdout_bytes"], 19);
    assert_eq!(result["stdout_truncated"], false);
    assert_eq!(result["stderr"], "");
    assert!(result["duration_ms"].is_u64());
}

#[tokio::test]
async fn stdin_is_handed_over_whole_and_need_not_be_read() {
    let text = "line\n".repeat(50_000);
    let result = run(json!({"program": "cat", "stdin": text})).await.unwrap();
    assert_eq!(result["stdout_bytes"], text.len());
    let mut ignoring = sh("exit 0");
    ignoring["stdin"] = json!(text);
    assert!(run(ignoring).await.is_ok());
    let result = run(json!({"program": "cat"})).await.unwrap();
    assert_eq!(
        result["stdout"], "",
        "without `stdin` there is nothing to read"
    );
}

#[tokio::test]
async fn only_programs_on_the_list_run() {
    for program in ["ls", "/usr/bin/cat", "./cat", "CAT", "", "cat "] {
        let inputs = json!({"program": program});
        assert!(!takes(executor(), &inputs), "{program}");
        let error = run(inputs.clone()).await.unwrap_err();
        assert!(
            error
                .to_string()
                .contains("is not allowed, expected one of `"),
            "{error}"
        );
        let faults = executor().check(inputs.as_object().unwrap());
        let [fault] = faults.as_slice() else {
            panic!("{program}: {faults:?}");
        };
        assert_eq!(fault.field, "program");
        assert!(
            fault.expected.contains("`cat`")
                && fault.expected.contains("`--allow-command PROGRAM`"),
            "{fault:?}"
        );
    }
    let allowed = json!({"program": "cat"});
    assert_eq!(executor().check(allowed.as_object().unwrap()), []);
    assert!(takes(executor(), &json!({"program": "cat"})));
}

#[tokio::test]
async fn the_environment_is_small_and_known() {
    let mut traced = job(json!({"program": "env", "env": {"GREETING": "hi", "LANG": "de_DE"}}));
    traced.traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into());
    let task = format!("TASKLEDGER_TASK_ID={}", traced.task_id);
    let attempt = format!("TASKLEDGER_ATTEMPT_ID={}/1", traced.task_id);
    let run = format!("TASKLEDGER_RUN_ID={}", traced.run_id);
    let key = format!(
        "TASKLEDGER_IDEMPOTENCY_KEY={}-{}",
        traced.run_id, traced.task_id
    );
    let result = executor().execute(traced).await.unwrap();
    let mut lines: Vec<_> = result["stdout"].as_str().unwrap().lines().collect();
    lines.sort_unstable();
    let home = format!("HOME={}", std::env::current_dir().unwrap().display());
    let path = format!("PATH={}", Options::SEARCH_PATH_DEFAULT);
    assert_eq!(
        lines,
        [
            "GREETING=hi",
            &home,
            "LANG=de_DE",
            &path,
            "TASKLEDGER_ATTEMPT=1",
            &attempt,
            &key,
            &run,
            &task,
            "TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ]
    );
}

#[tokio::test]
async fn a_failure_tells_the_code_and_the_end_of_stderr() {
    let error = run(sh(
        "echo out; echo first >&2; echo 'no such thing' >&2; exit 3",
    ))
    .await;
    assert_eq!(
        error,
        Err(ExecutorError::new(
            "program `sh` ended with exit code 3: first\nno such thing"
        ))
    );
    let error = run(sh("kill -9 $$")).await;
    assert_eq!(
        error,
        Err(ExecutorError::new("program `sh` was killed by signal 9"))
    );
}

#[tokio::test]
async fn output_over_the_cap_is_counted_and_marked() {
    let mut options = Options::allowing(["sh"]);
    options.output_bytes_max = 1000;
    let executor = CommandExecutor::new(options).unwrap();
    let script = "head -c 500000 /dev/zero; head -c 1000 /dev/zero >&2";
    let result = executor.execute(job(sh(script))).await.unwrap();
    assert_eq!(result["stdout"].as_str().unwrap().len(), 1000);
    assert_eq!(result["stdout_bytes"], 500_000);
    assert_eq!(result["stdout_truncated"], true);
    assert_eq!(result["stderr_truncated"], false);
}

#[tokio::test]
async fn the_worst_output_still_makes_a_result() {
    let script = "head -c 2000000 /dev/zero | tr '\\0' '\\1'; head -c 2000000 /dev/zero >&2";
    let outcome = run_attempt(
        &registered(executor()),
        job(sh(script)),
        TimeLimits::default(),
    )
    .await;
    assert!(
        matches!(outcome, AttemptOutcome::Completed(_)),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_json_object_on_stdout_is_parsed_when_asked_for() {
    let mut inputs = json!({"program": "cat", "stdin": " {\"n\": 1}\n", "parse_json": true});
    assert_eq!(run(inputs.clone()).await.unwrap()["json"], json!({"n": 1}));
    inputs["parse_json"] = json!(false);
    assert!(run(inputs.clone()).await.unwrap().get("json").is_none());
    inputs["parse_json"] = json!(true);
    for text in ["[1]", "", "{\"n\": 1} x", "{"] {
        inputs["stdin"] = json!(text);
        let error = run(inputs.clone()).await.unwrap_err();
        assert!(
            error.to_string().contains("asks for a JSON object"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn the_working_directory_stays_below_its_root() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("root/inner")).unwrap();
    std::os::unix::fs::symlink("/", place.path().join("root/out")).unwrap();
    let root = place.path().join("root").canonicalize().unwrap();
    let mut options = Options::allowing(["sh"]);
    options.root = Some(root.clone());
    let executor = CommandExecutor::new(options).unwrap();
    let mut inputs = sh("pwd");
    let pwd = |result: Value| PathBuf::from(result["stdout"].as_str().unwrap().trim_end());
    assert_eq!(
        pwd(executor.execute(job(inputs.clone())).await.unwrap()),
        root
    );
    inputs["cwd"] = json!("inner");
    let result = executor.execute(job(inputs.clone())).await.unwrap();
    assert_eq!(pwd(result), root.join("inner"));
    for outside in ["..", "/", "out", "inner/../..", "/etc"] {
        inputs["cwd"] = json!(outside);
        let error = executor.execute(job(inputs.clone())).await.unwrap_err();
        assert!(error.to_string().contains("outside"), "{outside}: {error}");
    }
    inputs["cwd"] = json!("absent");
    let error = executor.execute(job(inputs)).await.unwrap_err();
    assert!(error.to_string().contains("cannot enter `cwd`"), "{error}");
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    let refused = |options| CommandExecutor::new(options).unwrap_err();
    let none: [&str; 0] = [];
    assert!(matches!(
        refused(Options::allowing(none)),
        OptionsError::NoPrograms
    ));
    for program in ["bin/sh", "", "../sh"] {
        let error = refused(Options::allowing([program]));
        assert!(
            matches!(error, OptionsError::InvalidProgram { .. }),
            "{error}"
        );
    }
    for program in ["no-such-program", "/etc/passwd", "/bin", "/no/such"] {
        let error = refused(Options::allowing([program]));
        assert!(
            matches!(error, OptionsError::ProgramNotFound { .. }),
            "{error}"
        );
    }
    let mut options = Options::allowing(["sh"]);
    options.root = Some("/etc/passwd".into());
    assert!(matches!(
        refused(options.clone()),
        OptionsError::NotADirectory { .. }
    ));
    options.root = Some("/no/such".into());
    assert!(matches!(refused(options), OptionsError::Root { .. }));
}

#[tokio::test]
async fn a_program_that_cannot_start_is_named() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("broken").display().to_string();
    std::fs::copy("/etc/passwd", &program).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let executor = CommandExecutor::new(Options::allowing([&program])).unwrap();
    let error = executor
        .execute(job(json!({"program": program})))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("cannot run program"), "{error}");
}

/// A pipe with a name. Its reader sees the end of the file when the last process of the group
/// that holds it open for writing is gone, so tests wait for deaths without asking again and again.
struct Lifeline {
    _place: tempfile::TempDir,
    path: PathBuf,
    reader: BufReader<pipe::Receiver>,
    /// Ours, so that there is an end even when no program came to open the pipe.
    writer: Option<pipe::Sender>,
}

impl Lifeline {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lifeline");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        let reader = pipe::OpenOptions::new().open_receiver(&path).unwrap();
        let writer = pipe::OpenOptions::new().open_sender(&path).unwrap();
        Self {
            _place: place,
            path,
            reader: BufReader::new(reader),
            writer: Some(writer),
        }
    }

    fn path(&self) -> &Path {
        &self.path
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).await.unwrap();
        line
    }

    /// Everything until all writers are dead. Bounded, so that a survivor fails the test.
    async fn last_words(&mut self) -> String {
        self.writer = None;
        let mut words = String::new();
        let read = self.reader.read_to_string(&mut words);
        tokio::time::timeout(Duration::from_secs(30), read)
            .await
            .expect("a process of the group survived")
            .unwrap();
        words
    }
}

/// A job whose program has a child and a grandchild, all holding the lifeline.
fn family(lifeline: &Lifeline, traps: &str) -> Job {
    let script = format!(
        "exec 3>{}; {traps} sh -c 'sleep 1000 & sleep 1000' & echo ready >&3; wait; wait",
        lifeline.path().display()
    );
    job(sh(&script))
}

#[tokio::test]
async fn cancelling_kills_the_program_and_everything_it_started() {
    let mut lifeline = Lifeline::new();
    let job = family(&lifeline, "");
    let cancel = job.cancel.clone();
    let attempt = tokio::spawn(async move {
        run_attempt(&registered(executor()), job, TimeLimits::default()).await
    });
    assert_eq!(lifeline.line().await, "ready\n");
    cancel.cancel();
    assert_eq!(attempt.await.unwrap(), AttemptOutcome::Stopped);
    lifeline.last_words().await;
}

#[tokio::test]
async fn an_attempt_that_is_stopped_before_its_program_runs_starts_none() {
    let place = tempfile::tempdir().unwrap();
    let started = place.path().join("started");
    let job = job(sh(&format!("touch {}", started.display())));
    job.cancel.cancel();
    assert_eq!(
        executor().execute(job).await,
        Err(ExecutorError::new("program `sh` was stopped"))
    );
    assert!(!started.exists());
}

#[tokio::test]
async fn a_program_may_clean_up_when_it_is_told_to_stop() {
    let mut lifeline = Lifeline::new();
    let job = family(&lifeline, "trap 'echo cleaned >&3; exit 0' TERM;");
    let cancel = job.cancel.clone();
    let attempt = tokio::spawn(async move { executor().execute(job).await });
    assert_eq!(lifeline.line().await, "ready\n");
    cancel.cancel();
    assert_eq!(
        attempt.await.unwrap(),
        Err(ExecutorError::new("program `sh` was stopped"))
    );
    assert_eq!(lifeline.last_words().await, "cleaned\n");
}

#[tokio::test]
async fn a_program_that_ignores_the_signal_is_killed_after_the_grace() {
    let mut lifeline = Lifeline::new();
    let job = family(&lifeline, "trap '' TERM;");
    let cancel = job.cancel.clone();
    let attempt = tokio::spawn(async move { executor().execute(job).await });
    assert_eq!(lifeline.line().await, "ready\n");
    let before = tokio::time::Instant::now();
    cancel.cancel();
    assert!(attempt.await.unwrap().is_err());
    assert!(before.elapsed() >= super::TERMINATE_GRACE);
    lifeline.last_words().await;
}

#[tokio::test]
async fn a_time_out_kills_the_whole_group() {
    let mut lifeline = Lifeline::new();
    let job = family(&lifeline, "");
    let limits = TimeLimits {
        timeout: Some(Duration::from_millis(300)),
        deadline: None,
    };
    let outcome = run_attempt(&registered(executor()), job, limits).await;
    assert!(
        matches!(
            &outcome,
            AttemptOutcome::Failed {
                reason: FailureReason::Timeout,
                ..
            }
        ),
        "{outcome:?}"
    );
    lifeline.last_words().await;
}

#[tokio::test]
async fn dropping_the_attempt_kills_the_whole_group() {
    let mut lifeline = Lifeline::new();
    let job = family(&lifeline, "trap '' TERM;");
    let attempt = tokio::spawn(async move {
        run_attempt(&registered(executor()), job, TimeLimits::default()).await
    });
    assert_eq!(lifeline.line().await, "ready\n");
    attempt.abort();
    assert!(attempt.await.unwrap_err().is_cancelled());
    lifeline.last_words().await;
}

#[tokio::test]
async fn what_a_program_leaves_behind_dies_with_it() {
    let mut lifeline = Lifeline::new();
    let script = format!(
        "exec 3>{}; sleep 1000 & echo started; echo ready >&3; exit 0",
        lifeline.path().display()
    );
    let result = run(sh(&script)).await.unwrap();
    assert_eq!(result["stdout"], "started\n");
    assert_eq!(lifeline.last_words().await, "ready\n");
}

#[tokio::test]
async fn a_process_that_left_the_group_does_not_hold_the_attempt_up() {
    let script = "setsid sleep 5 & echo done; exit 0";
    let result = run(sh(script)).await.unwrap();
    assert_eq!(result["stdout"], "done\n");
    assert!(result["duration_ms"].as_u64().unwrap() < 5000, "{result}");
}

#[tokio::test]
async fn no_attempt_follows_after_an_exit_code_that_the_task_lists() {
    let ended = async |code: u8, params: Value| {
        let mut job = job(sh(&format!("exit {code}")));
        job.params = params.as_object().unwrap().clone();
        let error = executor().execute(job).await.unwrap_err();
        error.is_retryable()
    };
    let listed = || json!({"retry": {"max_attempts": 3, "non_retryable_exit_codes": [2, 65]}});
    assert!(!ended(65, listed()).await);
    assert!(ended(64, listed()).await);
    assert!(ended(65, json!({"retry": {"max_attempts": 3}})).await);
    assert!(ended(65, json!({})).await);
}

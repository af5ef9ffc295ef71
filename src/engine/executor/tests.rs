//! Claims about attempts whose inputs name secrets: they are used, and nothing shows them.

use super::command::{CommandExecutor, Options};
use super::run::{AttemptOutcome, TimeLimits, run_attempt};
use super::test_support::{acting, job, registered, takes};
use super::{Executor, HttpExecutor, Job};
use crate::egress::{Egress, Lookup, LookupError, Options as EgressOptions, Policy};
use crate::engine::secrets::SecretTexts;
use crate::sealing::Secret;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use taskledger_auth::SecretName;
use taskledger_domain::flow::FailureReason;

/// The canary.
const TEXT: &str = "hunter2-hunter2";

struct Nowhere;

#[async_trait]
impl Lookup for Nowhere {
    async fn lookup(&self, _host: &str) -> Result<Vec<IpAddr>, LookupError> {
        Err(LookupError::NotFound)
    }
}

fn http() -> HttpExecutor {
    let options = EgressOptions::new(Policy::default(), Arc::new(Nowhere));
    HttpExecutor::new(Arc::new(Egress::new(options).unwrap()))
}

fn programs() -> CommandExecutor {
    CommandExecutor::new(Options::allowing(["sh"])).unwrap()
}

/// `script` with the secret in its variable `TOKEN`.
fn script(script: &str) -> Job {
    let env = json!({"TOKEN": {"$secret": "pw"}});
    with_secret(json!({"program": "sh", "args": ["-c", script], "env": env}))
}

fn with_secret(inputs: Value) -> Job {
    let name = SecretName::new("pw").unwrap();
    let mut job = job(inputs);
    job.secrets = SecretTexts::new([(name, Secret(TEXT.into()))]).unwrap();
    job
}

async fn attempt(executor: impl Executor, job: Job) -> AttemptOutcome {
    let outcome = run_attempt(&registered(executor), job, TimeLimits::default()).await;
    let shown = format!("{outcome:?}");
    for part in [TEXT, &TEXT[1..], &TEXT[..TEXT.len() - 1]] {
        assert!(!shown.contains(part), "{shown}");
    }
    outcome
}

async fn completed(job: Job) -> Value {
    match attempt(programs(), job).await {
        AttemptOutcome::Completed(result) => Value::Object(result.to_map()),
        other @ (AttemptOutcome::Failed { .. }
        | AttemptOutcome::Breached { .. }
        | AttemptOutcome::Asked(_)
        | AttemptOutcome::Stopped) => panic!("{other:?}"),
    }
}

async fn failed(executor: impl Executor, job: Job) -> String {
    match attempt(executor, job).await {
        AttemptOutcome::Failed { reason, error, .. } => {
            assert_eq!(reason, FailureReason::Executor);
            error
        }
        other @ (AttemptOutcome::Completed(_)
        | AttemptOutcome::Breached { .. }
        | AttemptOutcome::Asked(_)
        | AttemptOutcome::Stopped) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_program_has_the_secret_and_its_output_does_not() {
    let result = completed(script("echo ${#TOKEN} $TOKEN; echo err $TOKEN >&2")).await;
    assert_eq!(result["stdout"], format!("{} [secret pw]\n", TEXT.len()));
    assert_eq!(result["stderr"], "err [secret pw]\n");
    let error = failed(programs(), script("echo bad $TOKEN >&2; exit 3")).await;
    assert_eq!(
        error,
        "program `sh` ended with exit code 3: bad [secret pw]"
    );
}

#[tokio::test]
async fn json_of_a_program_keeps_its_shape_without_the_secret() {
    let mut job = script(r#"printf '{"%s": ["x%s"]}' "$TOKEN" "$TOKEN""#);
    job.inputs.insert("parse_json".to_owned(), json!(true));
    let result = completed(job).await;
    assert_eq!(result["json"], json!({"[secret pw]": ["x[secret pw]"]}));
}

#[tokio::test]
async fn a_secret_that_would_be_cut_is_removed_whole() {
    let options = Options {
        output_bytes_max: 10,
        ..Options::allowing(["sh"])
    };
    let executor = CommandExecutor::new(options).unwrap();
    let run = attempt(
        executor,
        script("printf 12345; printf $TOKEN; printf behind"),
    )
    .await;
    let AttemptOutcome::Completed(result) = run else {
        panic!("{run:?}");
    };
    assert_eq!(result.to_map()["stdout"], "12345[secret pw]");
    assert_eq!(result.to_map()["stdout_truncated"], true);
    // The end of stderr begins in the middle of the secret.
    let at_the_border = "printf $TOKEN >&2; head -c 2040 /dev/zero | tr '\\0' x >&2; exit 1";
    let error = failed(programs(), script(at_the_border)).await;
    assert!(error.contains(": [secret pw]xxx"), "{error}");
}

#[tokio::test]
async fn a_panic_and_an_error_of_an_executor_lose_the_secret() {
    let job = || with_secret(json!({}));
    let panics = acting(|_| async { panic!("at {TEXT}") });
    let error = failed(panics, job()).await;
    assert_eq!(error, "executor `acting` panicked: at [secret pw]");
    let fails = acting(|_| async { Err(super::ExecutorError::new(format!("no {TEXT}!"))) });
    assert_eq!(failed(fails, job()).await, "no [secret pw]!");
}

#[tokio::test]
async fn a_secret_that_was_not_given_is_named() {
    for (executor, inputs) in [
        (
            Box::new(registered(http())),
            json!({"url": "https://example.com/", "headers": {"a": {"$secret": "pw"}}}),
        ),
        (
            Box::new(registered(programs())),
            json!({"program": "sh", "env": {"A": {"$secret": "pw"}}}),
        ),
    ] {
        let error = executor.executor().execute(job(inputs)).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the attempt was not given the secret `pw`"
        );
    }
}

#[test]
fn references_are_accepted_where_they_work_and_refused_elsewhere() {
    let reference = json!({"$secret": "pw"});
    for good in [
        json!({"headers": {"x-key": reference}}),
        json!({"auth": {"type": "bearer", "token": reference}}),
        json!({"auth": {"type": "basic", "username": "u", "password": reference}}),
        json!({"auth": {"type": "header", "name": "x-key", "value": reference}}),
    ] {
        let mut inputs = good;
        inputs["url"] = json!("https://example.com/");
        assert!(takes(http(), &inputs), "{inputs}");
        let object = inputs.as_object().unwrap();
        assert!(http().check(object).is_empty(), "{inputs}");
        assert_eq!(http().secrets(object).len(), 1);
    }
    for (member, value) in [
        ("url", reference.clone()),
        ("body", reference.clone()),
        ("json", json!({"a": [reference]})),
        ("params", json!({"key": reference})),
        (
            "auth",
            json!({"type": "header", "name": reference, "value": "v"}),
        ),
    ] {
        let mut inputs = json!({"url": "https://example.com/"});
        inputs[member] = value;
        let found = http().check(inputs.as_object().unwrap());
        assert_eq!(found.len(), 1, "{inputs}: {found:?}");
        assert_eq!(found[0].reason, "a secret cannot be used here");
        assert!(found[0].expected.contains("as the value of a header"));
    }
    let env = json!({"program": "sh", "env": {"A": reference}});
    assert!(takes(programs(), &env));
    assert!(programs().check(env.as_object().unwrap()).is_empty());
    for value in [
        json!({"$secret": 1}),
        json!({"$secret": "pw", "x": 1}),
        json!({}),
        json!(1),
    ] {
        let env = json!({"program": "sh", "env": {"A": value}});
        assert!(!takes(programs(), &env), "{env}");
    }
    let stdin = json!({"program": "sh", "stdin": {"$secret": "pw"}});
    let found = programs().check(stdin.as_object().unwrap());
    assert!(found[0].expected.contains("`env`"), "{found:?}");
}

#[test]
fn what_an_attempt_is_given_shows_no_text() {
    let job = with_secret(json!({"headers": {"a": {"$secret": "pw"}}}));
    let shown = format!("{job:?}");
    assert!(shown.contains("pw") && !shown.contains(TEXT), "{shown}");
}

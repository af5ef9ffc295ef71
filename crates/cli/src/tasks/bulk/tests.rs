//! Each task of a selection is changed once, and what became of all of them is told.

use super::*;
use crate::when::{Times, tests::at_noon};
use async_trait::async_trait;
use clap::Parser;
use std::sync::Mutex;
use taskledger_terminal::testing::Buffer;
use tokio::time::Instant;

/// Five pending tasks: `t0` to `t4`. `t1` takes `t2` along, `t3` cannot be changed, and the connection breaks
/// once for `t4`, which the server then is too busy for twice. Keeps calls with their keys, and when they came.
#[derive(Debug, Default)]
struct Server {
    calls: Mutex<Vec<(String, Value, String, Instant)>>,
    /// The task from which on credentials are refused.
    denied: Option<&'static str>,
    /// Each page says that there is another one.
    is_endless: bool,
}

#[async_trait]
impl Api for Server {
    async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
        self.call_keyed(method, params, "").await
    }

    async fn call_keyed(&self, method: &str, params: Value, key: &str) -> Result<Value, ApiError> {
        let mut calls = self.calls.lock().expect("no call panics");
        let before = calls.iter().filter(|(_, it, ..)| *it == params).count();
        let call = (method.to_owned(), params.clone(), key.to_owned());
        calls.push((call.0, call.1, call.2, Instant::now()));
        let refused_with = |code, data| ApiError::Refused {
            code,
            message: "no".to_owned(),
            data,
        };
        let refused = |code| refused_with(code, Value::Null);
        let id = member(&params, "task_id");
        let task = |id: &str, status: &str| json!({"id": id, "name": id, "status": status});
        match (method, id.as_str()) {
            ("tasks.cancel", id) if self.denied == Some(id) => Err(ApiError::Denied {
                status: 401,
                text: "who?".to_owned(),
            }),
            ("tasks.list", _) if self.is_endless => {
                let tasks = vec![task("old", "pending"); 1000];
                Ok(json!({"tasks": tasks, "next_cursor": "c"}))
            }
            ("tasks.list", _) if params["status"] == "pending" => {
                let tasks = ["t0", "t1", "t2", "t3", "t4"].map(|id| task(id, "pending"));
                Ok(json!({ "tasks": tasks }))
            }
            ("tasks.list", _) => Ok(json!({"tasks": []})),
            ("tasks.get", "t2") => Ok(task("t2", "cancelled")),
            ("tasks.get", id) => Ok(task(id, "pending")),
            ("tasks.cancel", "t2") => Err(refused(-32006)),
            ("tasks.cancel", "t3") => Err(refused(-32008)),
            ("tasks.cancel", "t4") if before == 0 => {
                Err(ApiError::Connection("it broke".to_owned()))
            }
            ("tasks.cancel", "t4") if before == 1 => {
                Err(refused_with(-32013, json!({"retry_after_ms": 20_000})))
            }
            ("tasks.cancel", "t4") if before == 2 => Err(refused(-32013)),
            _ => Ok(Value::Null),
        }
    }
}

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

fn options(line: &str) -> Options {
    Line::try_parse_from(["x"].into_iter().chain(line.split(' ')))
        .unwrap()
        .options
}

fn cancel() -> Change {
    Change {
        verb: ("cancel", "cancelled"),
        method: "tasks.cancel",
        params: json!({"reason": "r"}),
        from: &["pending", "in_progress"],
        takes_below: false,
    }
}

#[tokio::test]
async fn a_status_in_which_no_task_can_be_changed_so_is_refused_without_a_call() {
    for (line, change_so, said) in [
        (
            "--status completed --yes",
            &retry(),
            "`retry` changes failed tasks; --status completed selects none",
        ),
        (
            "--status skipped --yes",
            &retry(),
            "`retry` changes failed tasks; --status skipped selects none",
        ),
        (
            "--status failed",
            &cancel(),
            "`cancel` changes pending and in_progress tasks; --status failed selects none",
        ),
    ] {
        let server = Server::default();
        let mut out = Output::to(Box::new(Buffer::default()), true, false);
        let when = at_noon(Times::Utc);
        let refused = change(&options(line), change_so, &server, &when, &mut out).await;
        let refused = refused.unwrap_err();
        assert!(
            matches!(&refused, CliError::Usage(text) if text == said),
            "{refused}"
        );
        assert!(server.calls.into_inner().unwrap().is_empty());
    }
    assert_eq!(
        options("--status skipped")
            .which
            .status_outside(&["pending"]),
        None
    );
}

#[tokio::test(start_paused = true)]
async fn each_task_of_a_selection_is_changed_and_what_became_of_it_is_told() {
    let (server, buffer) = (Server::default(), Buffer::default());
    let mut out = Output::to(Box::new(buffer.clone()), true, false);
    let options = options("--label team=data --all --yes");
    let when = at_noon(Times::Utc);
    let code = change(&options, &cancel(), &server, &when, &mut out)
        .await
        .unwrap();
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::FAILURE));
    let told: Value = serde_json::from_str(&buffer.text()).unwrap();
    assert_eq!(told["cancelled"], json!(["t0", "t1", "t4"]));
    assert_eq!(told["passed_over"], json!(["t2"]));
    assert_eq!(told["failed"][0]["id"], "t3");
    let calls = server.calls.into_inner().unwrap();
    assert_eq!(calls[0].1["labels"], json!({"team": "data"}));
    let cancels: Vec<_> = calls
        .iter()
        .filter(|(it, ..)| it == "tasks.cancel")
        .collect();
    assert_eq!(cancels.len(), 8);
    let tries = &cancels[4..];
    assert!(
        tries
            .iter()
            .all(|it| it.1 == tries[0].1 && it.2 == tries[0].2)
    );
    let paused = |n: usize| tries[n].3.duration_since(tries[n - 1].3).as_millis();
    assert!((125..=251).contains(&paused(1)), "{}", paused(1));
    assert!((20_000..=20_001).contains(&paused(2)), "{}", paused(2));
    assert!((500..=1001).contains(&paused(3)), "{}", paused(3));
    let keys: HashSet<_> = cancels.iter().map(|(_, _, key, _)| key).collect();
    assert_eq!(keys.len(), 5);
    assert_eq!(cancels[0].1["reason"], "r");
}

#[tokio::test]
async fn nothing_is_done_without_a_terminal_or_consent() {
    let (server, buffer) = (Server::default(), Buffer::default());
    let mut out = Output::to(Box::new(buffer.clone()), false, false);
    let when = at_noon(Times::Utc);
    let asked = change(&options("--name x*"), &cancel(), &server, &when, &mut out).await;
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        // No name fits.
        assert!(asked.is_ok() && buffer.text() == "0 cancelled\n");
        let asked = change(&options("--name t*"), &cancel(), &server, &when, &mut out).await;
        let Err(CliError::Usage(why)) = asked else {
            panic!("it was done");
        };
        assert!(
            why.starts_with("5 tasks (t0, t1, t2, t3, t4) would be cancelled"),
            "{why}"
        );
    }
    let calls = server.calls.into_inner().unwrap();
    assert!(calls.iter().all(|(method, ..)| method == "tasks.list"));
}

#[tokio::test]
async fn an_error_that_ends_all_comes_after_what_was_done() {
    for (is_json, said) in [
        (
            true,
            r#"{"cancelled":["t0","t1"],"failed":[],"left":["t3","t4"],"passed_over":["t2"]}"#,
        ),
        (false, "2 cancelled, 1 had changed meanwhile, 2 left\n"),
    ] {
        let server = Server {
            denied: Some("t3"),
            ..Server::default()
        };
        let buffer = Buffer::default();
        let mut out = Output::to(Box::new(buffer.clone()), is_json, false);
        let (options, when) = (options("--all --yes"), at_noon(Times::Utc));
        let ended = change(&options, &cancel(), &server, &when, &mut out).await;
        let denied = matches!(ended, Err(CliError::Api(ApiError::Denied { .. })));
        assert!(denied, "{ended:?}");
        match is_json {
            true => {
                let told: Value = serde_json::from_str(&buffer.text()).unwrap();
                assert_eq!(told, serde_json::from_str::<Value>(said).unwrap());
            }
            false => assert_eq!(buffer.text(), said),
        }
    }
}

#[tokio::test]
async fn a_selection_that_ends_before_it_finds_any_says_how_to_reach_others() {
    let server = Server {
        is_endless: true,
        ..Server::default()
    };
    let buffer = Buffer::default();
    let mut out = Output::to(Box::new(buffer.clone()), false, false);
    let (options, when) = (options("--name x* --yes"), at_noon(Times::Utc));
    let ended = change(&options, &cancel(), &server, &when, &mut out).await;
    assert!(ended.is_ok());
    let said = buffer.text();
    assert!(
        said.starts_with("0 cancelled\nonly the newest 10000 tasks were looked at: `--until TIME`"),
        "{said}"
    );
    assert!(!said.contains("again"), "{said}");
}

#[test]
fn a_few_names_are_told() {
    let tasks: Vec<Value> = (0..9)
        .map(|n| json!({"name": format!("n{}", n / 2)}))
        .collect();
    assert_eq!(announced(&tasks, false), "9 tasks (n0, n1, n2, n3, n4)");
    let tasks: Vec<Value> = (0..9).map(|n| json!({"name": format!("n{n}")})).collect();
    assert_eq!(
        announced(&tasks, true),
        "the first 9 tasks (n0, n1, n2, n3, n4, ...)"
    );
    assert_eq!(announced(&tasks[..1], false), "1 task (n0)");
}

#[test]
fn one_task_is_named_or_several() {
    let (none, some) = (Selection::default(), options("--status failed").which);
    let id = "a".to_owned();
    assert!(is_one(Some(&id), &none).unwrap());
    assert!(!is_one(None, &some).unwrap());
    assert!(is_one(Some(&id), &some).is_err() && is_one(None, &none).is_err());
}

/// Failed tasks of two flows: the group `g` above `a` and, by the group `between` that is not listed, above `b`; and
/// `c` below the group `r` that is refused. `d` is the root of a flow of its own.
#[derive(Debug, Default)]
struct Tree {
    retried: Mutex<Vec<String>>,
    asked: Mutex<Vec<String>>,
    /// Refused for its credentials.
    denied: Option<&'static str>,
}

#[async_trait]
impl Api for Tree {
    async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
        let id = member(&params, "task_id");
        let task = |(id, parent, root): (&str, Option<&str>, &str)| json!({"id": id, "name": id, "status": "failed", "parent_id": parent, "root_task_id": root});
        match (method, id.as_str()) {
            ("tasks.list", _) => {
                let tasks = [
                    ("b", Some("between"), "top"),
                    ("d", None, "d"),
                    ("c", Some("r"), "r"),
                    ("a", Some("g"), "top"),
                    ("r", None, "r"),
                    ("g", Some("top"), "top"),
                ];
                Ok(json!({ "tasks": tasks.map(task) }))
            }
            ("tasks.get", id) => {
                self.asked.lock().unwrap().push(id.to_owned());
                let parent = if id == "between" { Some("g") } else { None };
                Ok(task((id, parent, "top")))
            }
            ("tasks.retry", id) if self.denied == Some(id) => Err(ApiError::Denied {
                status: 401,
                text: "who?".to_owned(),
            }),
            ("tasks.retry", id) => {
                self.retried.lock().unwrap().push(id.to_owned());
                match id {
                    "r" => Err(ApiError::Refused {
                        code: -32008,
                        message: "Task is already executing".to_owned(),
                        data: Value::Null,
                    }),
                    _ => Ok(Value::Null),
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

fn retry() -> Change {
    Change {
        verb: ("retry", "retried"),
        method: "tasks.retry",
        params: json!({}),
        from: &["failed"],
        takes_below: true,
    }
}

#[tokio::test]
async fn what_lies_below_a_retried_task_is_not_retried_once_more() {
    let (server, buffer) = (Tree::default(), Buffer::default());
    let mut out = Output::to(Box::new(buffer.clone()), true, false);
    let (options, when) = (options("--all --yes"), at_noon(Times::Utc));
    let ended = change(&options, &retry(), &server, &when, &mut out).await;
    assert!(ended.is_ok());
    // What is below a task that was not retried is tried itself.
    assert_eq!(*server.retried.lock().unwrap(), ["d", "r", "g", "c"]);
    // Each task between others is asked for once, and `r` how it stands after its refusal.
    assert_eq!(*server.asked.lock().unwrap(), ["between", "top", "r"]);
    let told: Value = serde_json::from_str(&buffer.text()).unwrap();
    assert_eq!(told["retried"], json!(["d", "g", "c"]));
    assert_eq!(told["covered"], json!(["b", "a"]));
    assert_eq!(told["failed"][0]["id"], "r");

    let buffer = Buffer::default();
    let mut out = Output::to(Box::new(buffer.clone()), false, false);
    let server = Tree {
        denied: Some("c"),
        ..Tree::default()
    };
    let ended = change(&options, &retry(), &server, &when, &mut out).await;
    assert!(ended.is_err());
    let said = buffer.text();
    assert!(
        said.ends_with("2 retried with 2 below, 1 not, 1 left\n"),
        "{said}"
    );
}

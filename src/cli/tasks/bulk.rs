//! Changes many tasks with one command: those that a list with the same options shows.
//!
//! The selection is made first, so that the changes do not move it. Each task is a call of its own, under an
//! idempotency key, and is tried again when the connection breaks.

use super::selection::{LOOKED_AT_MAX, Selection, looked_through};
use crate::cli::output::{Output, member, short};
use crate::cli::when::When;
use crate::cli::{Api, ApiError, CliError, ids, storage};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

/// Names that are told before anything is done.
const NAMED_MAX: usize = 5;
/// Calls for one task, when the connection breaks.
const TRIES_MAX: u32 = 3;

/// Options of every command that changes a selection.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) which: Selection,
    /// Do not ask; needed for a selection where there is no terminal
    #[arg(long, short = 'y')]
    pub(super) yes: bool,
}

/// What is done to each task.
pub(super) struct Change {
    /// For people: `cancel`, `cancelled`.
    pub(super) verb: (&'static str, &'static str),
    pub(super) method: &'static str,
    /// Members of the call beside `task_id`.
    pub(super) params: Value,
    /// The statuses in which tasks can be changed so.
    pub(super) from: &'static [&'static str],
}

/// One of the two that a command line must name.
///
/// # Errors
/// Neither, or both.
pub(super) fn is_one(task: Option<&String>, which: &Selection) -> Result<bool, CliError> {
    match (task, which.is_empty()) {
        (Some(_), true) => Ok(true),
        (None, false) => Ok(false),
        (Some(_), false) => Err(CliError::Usage(
            "name one task by its ID, or several by options, not both".to_owned(),
        )),
        (None, true) => Err(CliError::Usage(
            "which tasks? Name one by its ID, or several by options such as `--label KEY=VALUE`"
                .to_owned(),
        )),
    }
}

/// Changes the tasks of a selection, once that was agreed to.
pub(super) async fn change(
    options: &Options,
    change: &Change,
    api: &dyn Api,
    when: &When,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let (tasks, is_more) = selected(&options.which, change, api, when).await?;
    let (verb, done) = change.verb;
    if tasks.is_empty() {
        return told(&Outcome::default(), (done, is_more), out);
    }
    let counted = announced(&tasks, is_more);
    if !options.yes {
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Err(CliError::Usage(format!(
                "{counted} would be {done}; say --yes to do it without a question"
            )));
        }
        if !agreed(&format!("{verb} {counted}? [y/N] "))? {
            return Err(CliError::Usage(format!("nothing was {done}")));
        }
    } else if !out.is_json() {
        eprintln!("{verb} {counted}");
    }
    let mut outcome = Outcome::default();
    let run = storage::clock().uuid();
    for task in &tasks {
        one(task, change, &run.to_string(), api, &mut outcome).await?;
    }
    told(&outcome, (done, is_more), out)
}

/// The tasks, each once, newest first, and whether there are more than one command changes.
async fn selected(
    which: &Selection,
    change: &Change,
    api: &dyn Api,
    when: &When,
) -> Result<(Vec<Value>, bool), CliError> {
    let mut params = which.params(when)?.build();
    ids::resolve_in(api, &mut params).await?;
    let rest = which.rest(when)?;
    let statuses = match which.status() {
        Some(status) => vec![status],
        None => change.from.to_vec(),
    };
    let (mut tasks, mut seen, mut is_more) = (Vec::new(), HashSet::new(), false);
    for status in statuses {
        params["status"] = status.into();
        let found = looked_through(rest.as_ref(), LOOKED_AT_MAX, api, params.clone()).await?;
        is_more |= found.get("more").is_some() || found.get("next_cursor").is_some();
        let found = found["tasks"].as_array().cloned().unwrap_or_default();
        // Its status may have changed between two lists.
        tasks.extend(
            found
                .into_iter()
                .filter(|task| seen.insert(member(task, "id"))),
        );
    }
    is_more |= tasks.len() > LOOKED_AT_MAX;
    tasks.truncate(LOOKED_AT_MAX);
    Ok((tasks, is_more))
}

/// How many tasks, and some of their names.
fn announced(tasks: &[Value], is_more: bool) -> String {
    let mut names: Vec<String> = Vec::new();
    for task in tasks {
        let name = member(task, "name");
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() > NAMED_MAX {
            names[NAMED_MAX] = "...".to_owned();
            break;
        }
    }
    let first = if is_more { "the first " } else { "" };
    let noun = if tasks.len() == 1 { "task" } else { "tasks" };
    format!("{first}{} {noun} ({})", tasks.len(), names.join(", "))
}

fn agreed(question: &str) -> Result<bool, CliError> {
    let mut stderr = io::stderr();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let answer = answer.trim().to_lowercase();
    Ok(answer == "y" || answer == "yes")
}

/// What became of the tasks.
#[derive(Debug, Default)]
struct Outcome {
    done: Vec<String>,
    /// They were not to be changed any more.
    passed: Vec<String>,
    failed: Vec<Value>,
}

/// Changes one task. An error is only what ends all: the server cannot be reached, or wants other credentials.
async fn one(
    task: &Value,
    change: &Change,
    run: &str,
    api: &dyn Api,
    outcome: &mut Outcome,
) -> Result<(), CliError> {
    let id = member(task, "id");
    let mut params = change.params.clone();
    params["task_id"] = id.as_str().into();
    let key = format!("{run}-{id}");
    let mut tries = 1;
    let refused = loop {
        match api.call_keyed(change.method, params.clone(), &key).await {
            Ok(_) => {
                outcome.done.push(id);
                return Ok(());
            }
            Err(ApiError::Connection(_)) if tries < TRIES_MAX => tries += 1,
            Err(refused @ ApiError::Refused { .. }) => break refused,
            Err(error) => return Err(error.into()),
        }
    };
    // Another task of the selection may have taken it along.
    let now = api.call("tasks.get", json!({"task_id": id})).await;
    let is_past = match &now {
        Ok(now) => {
            let status = member(now, "status");
            !change.from.contains(&status.as_str()) && status != member(task, "status")
        }
        Err(ApiError::Refused { .. }) => true,
        Err(ApiError::Connection(_) | ApiError::Denied { .. } | ApiError::Protocol(_)) => false,
    };
    if is_past {
        outcome.passed.push(id);
    } else {
        let name = member(task, "name");
        let why = refused.to_string();
        outcome
            .failed
            .push(json!({"id": id, "name": name, "error": why}));
    }
    Ok(())
}

fn told(
    outcome: &Outcome,
    (done, is_more): (&str, bool),
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let Outcome {
        done: changed,
        passed,
        failed,
    } = outcome;
    if out.is_json() {
        let mut value = json!({done: changed, "passed_over": passed, "failed": failed});
        if is_more {
            value["more"] = true.into();
        }
        out.value(&value)?;
    } else {
        for task in failed {
            let (id, name) = (short(&member(task, "id")), member(task, "name"));
            let error = member(task, "error").replace('\n', "; ");
            out.line(format!("not {done}: {id}  {name}  {error}"))?;
        }
        let mut line = format!("{} {done}", changed.len());
        if !passed.is_empty() {
            line.push_str(&format!(", {} had changed meanwhile", passed.len()));
        }
        if !failed.is_empty() {
            line.push_str(&format!(", {} not", failed.len()));
        }
        out.line(line)?;
        if is_more {
            out.line("there are more: run the command again for the next ones")?;
        }
    }
    Ok(match failed.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::when::{Times, tests::at_noon};
    use async_trait::async_trait;
    use clap::Parser;
    use std::sync::Mutex;
    use taskledger_terminal::testing::Buffer;

    /// Five pending tasks: `t0` to `t4`. `t1` takes `t2` along, `t3` cannot be changed, and the connection breaks
    /// once for `t4`. Keeps calls with their keys.
    #[derive(Debug, Default)]
    struct Server(Mutex<Vec<(String, Value, String)>>);

    #[async_trait]
    impl Api for Server {
        async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
            self.call_keyed(method, params, "").await
        }

        async fn call_keyed(
            &self,
            method: &str,
            params: Value,
            key: &str,
        ) -> Result<Value, ApiError> {
            let mut calls = self.0.lock().expect("no call panics");
            let before = calls.iter().filter(|(_, it, _)| *it == params).count();
            calls.push((method.to_owned(), params.clone(), key.to_owned()));
            let refused = |code| ApiError::Refused {
                code,
                message: "no".to_owned(),
                data: Value::Null,
            };
            let id = member(&params, "task_id");
            let task = |id: &str, status: &str| json!({"id": id, "name": id, "status": status});
            match (method, id.as_str()) {
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
        }
    }

    #[tokio::test]
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
        let calls = server.0.into_inner().unwrap();
        assert_eq!(calls[0].1["labels"], json!({"team": "data"}));
        let cancels: Vec<_> = calls
            .iter()
            .filter(|(it, ..)| it == "tasks.cancel")
            .collect();
        assert_eq!(cancels.len(), 6);
        assert_eq!(cancels[4], cancels[5], "under the same key");
        let keys: HashSet<_> = cancels.iter().map(|(.., key)| key).collect();
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
        let calls = server.0.into_inner().unwrap();
        assert!(calls.iter().all(|(method, ..)| method == "tasks.list"));
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
}

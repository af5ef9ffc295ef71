//! Changes many tasks with one command: those that a list with the same options shows.
//!
//! The selection is made first, so that the changes do not move it. Each task is a call of its own, under an
//! idempotency key, and is tried again when the connection breaks or the server is too busy.

mod above;

use super::searching::{LOOKED_AT_MAX, looked_through};
use super::selection::Selection;
use crate::api::TOO_BUSY;
use crate::output::{Output, member, short};
use crate::when::When;
use crate::worker::pace::Pace;
use crate::{Api, ApiError, CliError, clock, ids};
use above::Above;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;
use taskledger_clock::SharedClock;
use tokio::time::sleep;

/// Names that are told before anything is done.
const NAMED_MAX: usize = 5;
/// Calls for one task, when the connection breaks or the server is too busy: the pauses between them grow to 5 s, so
/// that a server may take 15 s to restart.
const TRIES_MAX: u32 = 8;

/// Options of every command that changes a selection.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) which: Selection,
    /// Do not ask; needed for a selection where there is no terminal
    #[arg(long, short = 'y')]
    pub(super) yes: bool,
}

impl Options {
    /// Whether several tasks are meant, where no `task` is named.
    pub(super) fn are_meant(&self, task: Option<&String>) -> bool {
        task.is_none() && !self.which.is_empty()
    }
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
    /// Whether what lies below a task is changed with it, so that it is not to be changed once more.
    pub(super) takes_below: bool,
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
    let (verb, done) = change.verb;
    if let Some(status) = options.which.status_outside(change.from) {
        let from = change.from.join(" and ");
        return Err(CliError::Usage(format!(
            "`{verb}` changes {from} tasks; --status {status} selects none"
        )));
    }
    let (mut tasks, is_more) = selected(&options.which, change, api, when).await?;
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
        taskledger_terminal::message(&format!("{verb} {counted}"));
    }
    let clock = clock();
    let above = match change.takes_below {
        true => Above::find(&tasks, api, &clock).await?,
        false => Above::default(),
    };
    tasks.sort_by_key(|task| above.count(&member(task, "id")));
    let (mut outcome, mut changed) = (Outcome::default(), HashSet::new());
    let run = clock.uuid().to_string();
    for (n, task) in tasks.iter().enumerate() {
        let id = member(task, "id");
        if above.has_one_of(&id, &changed) {
            outcome.covered.push(id);
            continue;
        }
        match one(task, change, (&run, &clock), api, &mut outcome).await {
            Ok(true) => {
                changed.insert(id);
            }
            Ok(false) => {}
            Err(error) => {
                let rest = tasks[n..].iter().map(|task| member(task, "id"));
                let (covered, left) = rest.partition(|id| above.has_one_of(id, &changed));
                outcome.left = left;
                outcome.covered.extend::<Vec<_>>(covered);
                told(&outcome, (done, is_more), out)?;
                return Err(error);
            }
        }
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
    /// They lie below such, and were changed with them.
    covered: Vec<String>,
    /// They were not to be changed any more.
    passed: Vec<String>,
    failed: Vec<Value>,
    /// An error ended all before it was known that they are changed.
    left: Vec<String>,
}

/// Makes a call until the server has answered it, if that may be soon.
async fn answered(
    api: &dyn Api,
    (method, params, key): (&str, &Value, Option<&str>),
    clock: &SharedClock,
) -> Result<Value, ApiError> {
    let mut pace = Pace::new(clock.clone());
    let mut tries = 1;
    loop {
        let answer = match key {
            Some(key) => api.call_keyed(method, params.clone(), key).await,
            None => api.call(method, params.clone()).await,
        };
        let error = match answer {
            Ok(result) => return Ok(result),
            Err(error) => error,
        };
        let asked = match &error {
            ApiError::Connection(_) => None,
            ApiError::Refused { code, .. } => {
                let asked = error.retry_after();
                if *code != TOO_BUSY && asked.is_none() {
                    return Err(error);
                }
                asked
            }
            ApiError::Denied { .. } | ApiError::Protocol(_) => return Err(error),
        };
        if tries >= TRIES_MAX {
            return Err(error);
        }
        tries += 1;
        sleep(pace.pause(asked)).await;
    }
}

/// Changes one task; says whether it is changed. An error is only what ends all: the server cannot be reached, or wants
/// other credentials.
async fn one(
    task: &Value,
    change: &Change,
    (run, clock): (&str, &SharedClock),
    api: &dyn Api,
    outcome: &mut Outcome,
) -> Result<bool, CliError> {
    let id = member(task, "id");
    let mut params = change.params.clone();
    params["task_id"] = id.as_str().into();
    let key = format!("{run}-{id}");
    let refused = match answered(api, (change.method, &params, Some(&key)), clock).await {
        Ok(_) => {
            outcome.done.push(id);
            return Ok(true);
        }
        Err(refused @ ApiError::Refused { .. }) => refused,
        Err(error) => return Err(error.into()),
    };
    // Another task of the selection may have taken it along.
    let asked = json!({"task_id": id});
    let now = answered(api, ("tasks.get", &asked, None), clock).await;
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
    Ok(false)
}

fn told(
    outcome: &Outcome,
    (done, is_more): (&str, bool),
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let Outcome {
        done: changed,
        covered,
        passed,
        failed,
        left,
    } = outcome;
    if out.is_json() {
        let mut value = json!({done: changed, "passed_over": passed, "failed": failed});
        if !covered.is_empty() {
            value["covered"] = json!(covered);
        }
        if is_more {
            value["more"] = true.into();
        }
        if !left.is_empty() {
            value["left"] = json!(left);
        }
        out.value(&value)?;
    } else {
        for task in failed {
            let (id, name) = (short(&member(task, "id")), member(task, "name"));
            let error = member(task, "error").replace('\n', "; ");
            out.line(format!("not {done}: {id}  {name}  {error}"))?;
        }
        let mut line = format!("{} {done}", changed.len());
        if !covered.is_empty() {
            line.push_str(&format!(" with {} below", covered.len()));
        }
        if !passed.is_empty() {
            line.push_str(&format!(", {} had changed meanwhile", passed.len()));
        }
        if !failed.is_empty() {
            line.push_str(&format!(", {} not", failed.len()));
        }
        if !left.is_empty() {
            line.push_str(&format!(", {} left", left.len()));
        }
        out.line(line)?;
        if is_more && changed.is_empty() {
            // The same command would look at the same ones again.
            out.line(format!(
                "only the newest {LOOKED_AT_MAX} tasks were looked at: `--until TIME` reaches older ones; `--label`, \
                 `--user`, `--parent` and a whole `--name` leave fewer of them to look at"
            ))?;
        } else if is_more {
            out.line("there are more: run the command again for the next ones")?;
        }
    }
    Ok(match failed.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

#[cfg(test)]
mod tests;

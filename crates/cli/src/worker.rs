//! `taskledger worker`: any program as a worker of a server.
//!
//! Owns: claiming over HTTP long polls, one process for each claim, the renewal of its lease, and telling the
//! server how it ended. Nothing is kept on disk: what a worker holds when it is killed is claimed by another one
//! when its lease has ended.
//!
//! `work` is the loop, `attempt` keeps a claim while its `program` runs, `telling` tells how that ended, `ending`
//! shows it, `calls` makes calls and sorts their answers.

mod attempt;
mod calls;
mod claim;
mod ending;
pub(super) mod pace;
pub(super) mod program;
mod progress;
mod settings;
mod stop;
mod telling;
mod work;

use super::output::{Output, list, member};
use super::signals::Signals;
use super::{Api, CliError, Remote};
use serde_json::{Value, json};
use settings::Settings;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use stop::{Stop, say};

/// Run a program for each task of a method
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger worker --method text.upper -- ./upper.sh
  taskledger worker --method resize --method crop --concurrency 4 --progress -- python3 images.py
  taskledger worker --method ask --worker gpu-1 --url https://ledger.example -- sh -c 'jq -c {answer:.question}'

The program gets the task's input as a JSON object on stdin, and TASKLEDGER_TASK_ID, TASKLEDGER_ATTEMPT,
TASKLEDGER_METHOD, TASKLEDGER_RUN_ID and, with tracing, TRACEPARENT in its environment. TASKLEDGER_TOKEN is removed from it.

Exit code 0 completes the task: stdout must hold one JSON object of at most 1 MiB, the output. Other exit codes fail
the attempt, with the end of stderr as the error; the task is retried if it has retries left. Exit code 65, and
stdout that is not a JSON object, fail the task without a retry; exit code 77 rejects the task, because the program
does not do such tasks. With --progress, lines on stderr such as `progress 0.5 half done` are reported as progress.

If the worker itself is killed (SIGKILL), its programs are not, and another worker does their tasks when the leases have
ended; `setpriv --pdeathsig KILL -- PROGRAM` ends them with it.

When the task is cancelled, the program and everything it started get SIGTERM, and SIGKILL after the grace of the task.
When the server cannot be reached, programs go on, and their outcomes are sent when it is back.

The first SIGTERM or Ctrl-C stops claiming and waits for the programs; --grace-seconds later, or at a second signal, they
are terminated and their tasks released. Exit code 0: stopped by a signal or drained.")]
pub struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    settings: Settings,
}

/// Works until it is told to stop.
pub async fn worker(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let Args { remote, settings } = args;
    program::check(&settings.program[0], std::env::var_os("PATH"))?;
    room(settings.concurrency)?;
    let signals = Signals::listen().map_err(|error| CliError::failed(&error))?;
    let url = remote.target()?.url().to_string();
    let api = Arc::new(remote.api()?);
    claimable(&*api, &settings.methods).await?;
    let stop = Stop::default();
    let grace = Duration::from_secs(settings.grace_seconds);
    let listening = tokio::spawn(listen(signals, stop.clone(), grace));
    say(&format!(
        "asking {url} for {}; `{}` runs for each task, {} at once",
        settings.methods.join(", "),
        Path::new(&settings.program[0]).display(),
        settings.concurrency
    ));
    let ended = work::work(api, settings, super::clock(), stop, out).await;
    listening.abort();
    ended
}

/// That the server does not run these methods itself. A worker that may not ask, or whose server is away, begins
/// without the answer: its first claim tells.
async fn claimable(api: &dyn Api, methods: &[String]) -> Result<(), CliError> {
    /// How long the answer is awaited.
    const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
    let asked = api.call("system.executors", json!({}));
    let Ok(Ok(found)) = tokio::time::timeout(ANSWER_TIME_MAX, asked).await else {
        return Ok(());
    };
    let executors = list(&found, "executors").iter();
    let own = executors.filter(|it| it.get("remote") != Some(&Value::Bool(true)));
    let own: Vec<String> = own.map(|it| member(it, "name")).collect();
    let Some(method) = methods.iter().find(|method| own.contains(method)) else {
        return Ok(());
    };
    Err(CliError::Usage(format!(
        "`{method}` is built in: its tasks run in the server, and no worker can claim them; expected a method of your own, \
         which tasks name in `schemas.method` beside `schemas.type: \"remote\"`. `taskledger executors` shows what runs in \
         the server"
    )))
}

/// That so many programs may be open at once.
fn room(concurrency: u32) -> Result<(), CliError> {
    /// For each program: its three pipes, and what tells its end.
    const FILES_EACH: u64 = 4;
    /// For everything else.
    const FILES_OTHER: u64 = 64 + calls::CALLS_MAX as u64;
    let wanted = FILES_OTHER + FILES_EACH * u64::from(concurrency);
    match super::open_files::raised() {
        Some(limit) if limit < wanted => Err(CliError::Usage(format!(
            "--concurrency {concurrency} needs {wanted} open files, of which the system permits {limit}; \
             expected fewer programs, or a higher limit (`ulimit -n`)"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// The first signal ends claiming; the second one, or the end of `grace`, ends what runs.
async fn listen(mut signals: Signals, stop: Stop, grace: Duration) {
    signals.next().await;
    say(&format!(
        "stopping; programs that run get {} s, a second signal ends them now",
        grace.as_secs()
    ));
    stop.claiming.cancel();
    tokio::select! {
        () = signals.next() => {}
        () = tokio::time::sleep(grace) => {}
    }
    stop.running.cancel();
}

#[cfg(test)]
mod tests;

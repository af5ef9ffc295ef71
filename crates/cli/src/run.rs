//! Runs of workflows, followed to their ends.

pub(crate) mod changes;
pub(crate) mod end;
pub(crate) mod follow;
pub(crate) mod screen;

use super::input::Params;
use super::output::{Output, member};
use super::{Api, CliError, clock, drain};
use end::End;
use follow::{Follow, Pace};
use screen::Screen;
use serde_json::Value;
use std::process::ExitCode;
use tokio::sync::mpsc;

/// Runs workflows one after the other, until one does not complete.
pub async fn all(
    api: &dyn Api,
    workflows: Vec<Params>,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    for params in workflows {
        let end = followed(api, "tasks.execute", params, out).await?;
        if end != End::Completed {
            return Ok(ExitCode::from(end.exit_code()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts workflows and prints their ids; says whether a drain keeps them from starting.
pub async fn detached(
    api: &dyn Api,
    workflows: Vec<Params>,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    out.calls_with(api.options().to_owned());
    for params in workflows {
        let started = api.call("tasks.execute", Value::Object(params)).await?;
        if out.is_json() {
            out.value(&started)?;
        } else {
            let root = member(&started, "root_task_id");
            out.line(&root)?;
            crate::warnings::report(&started);
            drain::warn(api, &root, out).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes a call that begins a run and follows it to its end; Ctrl-C cancels it.
pub(super) async fn followed(
    api: &dyn Api,
    method: &str,
    params: Params,
    out: &mut Output,
) -> Result<End, CliError> {
    /// Interrupts that have not been looked at: the first cancels, the second leaves.
    const INTERRUPTS_WAITING_MAX: usize = 2;
    let (sender, interrupts) = mpsc::channel(INTERRUPTS_WAITING_MAX);
    let listener = tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() && sender.send(()).await.is_ok() {}
    });
    let follow = Follow {
        api,
        pace: Pace::default(),
        interrupts,
        screen: Screen::for_output(out),
        clock: clock(),
    };
    let ended = follow.begin(method, params, out).await;
    listener.abort();
    ended
}

//! `taskledger broker subscribe`

use super::client::{AGENT, Client, PAUSE, connected, failed, may_go_on, object, say, stamp};
use super::results::put;
use super::{shown, telling};
use crate::output::Output;
use crate::signals::Signals;
use crate::worker::program::{self, Assignment, Verdict};
use crate::{CliError, Remote, clock};
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::process::ExitCode;
use taskledger_eventbus::{SubscribeToTasksRequest, TaskMessage, TaskResult, TaskStatus};
use taskledger_eventbus::{WINDOW, values::struct_of};
use taskledger_process::{Order, TERMINATE_GRACE};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Streaming};

/// Receive tasks, and show or do them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --result or a program, tasks are shown and stay unfinished: another agent gets them when this one ends.

The program gets the parameters as a JSON object on stdin, and TASKLEDGER_TASK_ID, TASKLEDGER_METHOD (the type) and
TASKLEDGER_ATTEMPT in its environment. Exit code 0 completes the task with the JSON object on stdout; other exit codes
fail it with the end of stderr. A result is sent again until the server answers, also after a restart; a refused result
fails the task.")]
pub(super) struct Args {
    /// The agent
    #[arg(long, value_name = "NAME", default_value = AGENT)]
    agent: String,
    /// A type of task, or a pattern such as `data.*`; may be repeated. Default: all types
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Unfinished tasks that the agent holds at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    window: Option<u32>,
    /// Complete each task with this result, a JSON object
    #[arg(long, value_name = "JSON", value_parser = object, conflicts_with = "program")]
    result: Option<Map<String, Value>>,
    /// Stop after this many tasks
    #[arg(long, value_name = "N")]
    count: Option<usize>,
    /// A program that does each task, one after the other, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

impl Args {
    pub(super) async fn run(self, remote: &Remote, out: &mut Output) -> Result<ExitCode, CliError> {
        if let Some(first) = self.program.first() {
            program::check(first, std::env::var_os("PATH"))?;
        }
        let mut signals = Signals::listen().map_err(|error| CliError::failed(&error))?;
        let stop = CancellationToken::new();
        let mut work = std::pin::pin!(self.work(remote, &stop, out));
        tokio::select! {
            ended = &mut work => return ended,
            () = signals.next() => stop.cancel(),
        }
        // What runs may end in order; its task goes to another agent if it does not.
        tokio::select! {
            ended = work => ended,
            () = signals.next() => Ok(ExitCode::SUCCESS),
            () = sleep(TERMINATE_GRACE + PAUSE) => Ok(ExitCode::SUCCESS),
        }
    }

    /// Until there is nothing left to do, or `stop`.
    async fn work(
        &self,
        remote: &Remote,
        stop: &CancellationToken,
        out: &mut Output,
    ) -> Result<ExitCode, CliError> {
        let mut left = self.count.unwrap_or(usize::MAX);
        let mut is_first = true;
        while left > 0 {
            let opened = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
                opened = self.stream(remote) => opened,
            };
            let (client, mut tasks) = match opened {
                Ok(opened) => opened,
                Err(CliError::Api(_)) if !is_first => {
                    rest(stop).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            is_first = false;
            while left > 0 {
                let task = tokio::select! {
                    biased;
                    () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
                    task = tasks.message() => task,
                };
                let task = match task {
                    Ok(Some(task)) => task,
                    Ok(None) => break,
                    Err(status) if may_go_on(&status) => break,
                    Err(status) => return Err(failed(remote, &status)),
                };
                put(out, &shown::task(&task), &shown::task_line(&task))?;
                left -= 1;
                if let Some(result) = self.done(task, stop).await? {
                    telling::told(remote, &client, result, stop).await?;
                }
            }
            if left > 0 {
                say("the connection has ended; subscribing again");
                rest(stop).await;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn stream(&self, remote: &Remote) -> Result<(Client, Streaming<TaskMessage>), CliError> {
        let mut client = connected(remote).await?;
        let mut request = Request::new(SubscribeToTasksRequest {
            agent_id: self.agent.clone(),
            task_types: self.types.clone(),
        });
        // One that does one at a time leaves the others to others.
        let window = self.window.or((!self.program.is_empty()).then_some(1));
        if let Some(window) = window {
            request.metadata_mut().insert(WINDOW, window.into());
        }
        let stream = client.subscribe_to_tasks(request).await;
        let stream = stream.map_err(|status| failed(remote, &status))?;
        Ok((client, stream.into_inner()))
    }

    /// What is said of a task; `None`: nothing, as when it was told to end while it worked.
    async fn done(
        &self,
        task: TaskMessage,
        stop: &CancellationToken,
    ) -> Result<Option<TaskResult>, CliError> {
        let verdict = if let Some(result) = &self.result {
            Verdict::Completed(result.clone())
        } else if self.program.is_empty() {
            return Ok(None);
        } else {
            let (order, own) = mpsc::unbounded_channel();
            let assignment = assignment(&task);
            let mut running = std::pin::pin!(program::run(&self.program, &assignment, own, None));
            let ended = tokio::select! {
                biased;
                ended = &mut running => ended,
                () = stop.cancelled() => {
                    // A program that has ended hears nothing.
                    let _ = order.send(Order::Terminate(TERMINATE_GRACE));
                    // Nothing is said of it: it is another agent's soon.
                    running.await.map_err(|error| CliError::failed(&error))?;
                    return Ok(None);
                }
            };
            ended.map_err(|error| CliError::failed(&error))?
        };
        let (status, result, error_message) = match verdict {
            Verdict::Completed(result) => (TaskStatus::Completed, Some(result), String::new()),
            Verdict::Failed { error, .. } | Verdict::Rejected { error } => {
                (TaskStatus::Failed, None, error)
            }
        };
        Ok(Some(TaskResult {
            task_id: task.task_id,
            status: status.into(),
            result: result.map(struct_of),
            error_message,
            executor_agent_id: self.agent.clone(),
            // To the microsecond: the server takes two equal results of one id as one.
            completed_at: Some(stamp(clock().now(), 0)),
            execution_metadata: None,
        }))
    }
}

fn assignment(task: &TaskMessage) -> Assignment {
    /// The key of `metadata` with the number of the attempt, from the second one on.
    const ATTEMPT: &str = "taskledger.attempt";
    let shown = shown::task(task);
    let attempt = shown["metadata"][ATTEMPT].as_u64().unwrap_or(1);
    Assignment {
        task_id: task.task_id.clone(),
        attempt,
        method: task.task_type.clone(),
        run_id: None,
        traceparent: None,
        input: shown::parameters(task),
    }
}

/// Before subscribing again.
async fn rest(stop: &CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = sleep(PAUSE) => {}
    }
}

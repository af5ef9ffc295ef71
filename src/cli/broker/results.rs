//! `taskledger broker results`

use super::{AGENT, PAUSE, connected, failed, may_go_on, say, shown};
use crate::cli::output::Output;
use crate::cli::signals::Signals;
use crate::cli::{CliError, Remote};
use serde_json::Value;
use std::collections::HashSet;
use std::process::ExitCode;
use taskledger_eventbus::{SubscribeToTaskResultsRequest, TaskProgress, TaskResult};
use tokio::time::sleep;
use tonic::{Status, Streaming};

/// Results that are remembered, so that none is shown twice after a new connection.
const SHOWN_MAX: usize = 100_000;

/// Show results of tasks that an agent has published, as they come
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Who has published the tasks
    #[arg(long, value_name = "NAME", default_value = AGENT)]
    agent: String,
    /// Only those of this task, also if they were shown before; may be repeated
    #[arg(long = "id", value_name = "ID")]
    ids: Vec<String>,
    /// Show progress too
    #[arg(long)]
    progress: bool,
    /// End after so many results
    #[arg(long, value_name = "N")]
    count: Option<usize>,
}

impl Args {
    fn request(&self) -> SubscribeToTaskResultsRequest {
        SubscribeToTaskResultsRequest {
            requester_agent_id: self.agent.clone(),
            task_ids: self.ids.clone(),
        }
    }

    pub(super) async fn run(self, remote: &Remote, out: &mut Output) -> Result<ExitCode, CliError> {
        let mut signals = Signals::listen().map_err(|error| CliError::failed(&error))?;
        tokio::select! {
            () = signals.next() => Ok(ExitCode::SUCCESS),
            ended = self.follow(remote, out) => ended,
        }
    }

    async fn follow(&self, remote: &Remote, out: &mut Output) -> Result<ExitCode, CliError> {
        let mut seen = HashSet::new();
        let mut is_first = true;
        loop {
            let followed = match self.streams(remote).await {
                Ok(streams) => {
                    is_first = false;
                    self.show(streams, &mut seen, out).await?
                }
                Err(error @ CliError::Api(_)) if is_first => return Err(error),
                Err(CliError::Api(_)) => None,
                Err(error) => return Err(error),
            };
            match followed {
                None => {
                    say("the connection has ended; subscribing again");
                    sleep(PAUSE).await;
                }
                Some(Ok(())) => return Ok(ExitCode::SUCCESS),
                Some(Err(status)) => return Err(failed(remote, &status)),
            }
        }
    }

    async fn streams(
        &self,
        remote: &Remote,
    ) -> Result<(Streaming<TaskResult>, Option<Streaming<TaskProgress>>), CliError> {
        let mut client = connected(remote).await?;
        let told = |status| failed(remote, &status);
        let progress = match self.progress {
            false => None,
            true => {
                let stream = client.subscribe_to_task_progress(self.request()).await;
                Some(stream.map_err(told)?.into_inner())
            }
        };
        let results = client.subscribe_to_task_results(self.request()).await;
        Ok((results.map_err(told)?.into_inner(), progress))
    }

    /// Shows what comes. `None`: the connection has ended; else why it is over.
    async fn show(
        &self,
        (mut results, mut progress): (Streaming<TaskResult>, Option<Streaming<TaskProgress>>),
        seen: &mut HashSet<String>,
        out: &mut Output,
    ) -> Result<Option<Result<(), Status>>, CliError> {
        loop {
            let moved = async {
                match &mut progress {
                    Some(progress) => progress.message().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                moved = moved => match moved {
                    Ok(Some(moved)) => {
                        put(out, &shown::progress(&moved), &shown::progress_line(&moved))?;
                    }
                    Ok(None) => return Ok(None),
                    Err(status) if may_go_on(&status) => return Ok(None),
                    Err(status) => return Ok(Some(Err(status))),
                },
                result = results.message() => match result {
                    Ok(Some(result)) => {
                        if seen.len() >= SHOWN_MAX {
                            seen.clear();
                        }
                        if !seen.insert(result.task_id.clone()) {
                            continue;
                        }
                        put(out, &shown::result(&result), &shown::result_line(&result))?;
                        if self.count.is_some_and(|count| seen.len() >= count) {
                            return Ok(Some(Ok(())));
                        }
                    }
                    Ok(None) => return Ok(None),
                    Err(status) if may_go_on(&status) => return Ok(None),
                    Err(status) => return Ok(Some(Err(status))),
                },
            }
        }
    }
}

/// One line, at once.
pub(super) fn put(out: &mut Output, value: &Value, line: &str) -> Result<(), CliError> {
    match out.is_json() {
        true => out.line_of_many(&value.to_string())?,
        false => out.line(line)?,
    }
    out.flush()?;
    Ok(())
}

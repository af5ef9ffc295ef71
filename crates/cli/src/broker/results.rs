//! `taskledger broker results`

use super::client::{AGENT, PAUSE, connected, failed, may_go_on, say};
use super::shown;
use crate::output::Output;
use crate::signals::Signals;
use crate::{CliError, Remote};
use serde_json::Value;
use std::collections::HashSet;
use std::process::ExitCode;
use taskledger_eventbus::{SubscribeToTaskResultsRequest, TaskProgress, TaskResult};
use tokio::time::sleep;
use tonic::{Status, Streaming};

/// Results that are remembered, so that none is shown twice after a new connection.
const SHOWN_MAX: usize = 100_000;

/// What was shown. A task that is executed again has a second result, which was recorded at another time.
#[derive(Debug, Default)]
struct Seen {
    /// The task and when it ended, of the latest; at most [`SHOWN_MAX`].
    results: HashSet<(String, Option<(i64, i32)>)>,
    /// How many there were, of all.
    count: usize,
}

impl Seen {
    /// Whether a result is to be shown; then it counts.
    fn is_new(&mut self, result: &TaskResult) -> bool {
        let at = result.completed_at.map(|at| (at.seconds, at.nanos));
        if self.results.len() >= SHOWN_MAX {
            self.results.clear();
        }
        let is_new = self.results.insert((result.task_id.clone(), at));
        self.count += usize::from(is_new);
        is_new
    }
}

/// Show results of the tasks that an agent published, as they arrive
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The agent that published the tasks
    #[arg(long, value_name = "NAME", default_value = AGENT)]
    agent: String,
    /// Only results of this task, even if they were shown before; may be repeated
    #[arg(long = "id", value_name = "ID")]
    ids: Vec<String>,
    /// Show progress too
    #[arg(long)]
    progress: bool,
    /// Stop after this many results
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
        let mut seen = Seen::default();
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
        seen: &mut Seen,
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
                        if !seen.is_new(&result) {
                            continue;
                        }
                        put(out, &shown::result(&result), &shown::result_line(&result))?;
                        if self.count.is_some_and(|count| seen.count >= count) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use prost_types::Timestamp;

    #[test]
    fn each_end_of_a_task_is_shown_once_and_all_of_them_count() {
        let result = |id: usize, seconds| TaskResult {
            task_id: format!("t{id}"),
            completed_at: Some(Timestamp { seconds, nanos: 5 }),
            ..TaskResult::default()
        };
        let mut seen = Seen::default();
        assert!(seen.is_new(&result(0, 1)));
        assert!(!seen.is_new(&result(0, 1)), "after a new connection");
        assert!(seen.is_new(&result(0, 2)), "executed again");
        assert_eq!(seen.count, 2);
        for id in 1..=SHOWN_MAX {
            assert!(seen.is_new(&result(id, 1)));
        }
        assert_eq!(seen.count, SHOWN_MAX + 2);
        assert!(seen.results.len() <= SHOWN_MAX);
    }
}

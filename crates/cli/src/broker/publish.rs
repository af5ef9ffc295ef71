//! `taskledger broker publish`

use super::client::{AGENT, Client, PAUSE, connected, failed, may_go_on, object, say, stamp};
use super::shown;
use crate::output::Output;
use crate::{CliError, Remote, clock, when};
use clap::ValueEnum;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use taskledger_eventbus::values::struct_of;
use taskledger_eventbus::{
    Priority, PublishTaskRequest, SubscribeToTaskResultsRequest, TaskMessage, TaskResult,
};
use tokio::time::sleep;

/// Seconds within which a task must have ended, at most: a year.
const WITHIN_SECONDS_MAX: u32 = 31_536_000;

/// Publish a task
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The type of the task
    #[arg(long = "type", value_name = "TYPE")]
    task_type: String,
    /// Who wants the result
    #[arg(long, value_name = "NAME", default_value = AGENT)]
    agent: String,
    /// The agent that gets the task; default: any agent that takes its type
    #[arg(long, value_name = "AGENT")]
    to: Option<String>,
    /// The id of the task; a new one unless given
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The parameters, a JSON object
    #[arg(long, value_name = "JSON", value_parser = object)]
    parameters: Option<Map<String, Value>>,
    /// Further information, a JSON object
    #[arg(long, value_name = "JSON", value_parser = object)]
    metadata: Option<Map<String, Value>>,
    /// How urgent it is
    #[arg(long, value_name = "PRIORITY", default_value = "medium")]
    priority: Urgency,
    /// Deadline of the task from now: seconds, or a span such as `15m`
    #[arg(long, alias = "deadline", value_name = "SECONDS", value_parser = within)]
    within: Option<u32>,
    /// Wait for the result and show it. Exit code 0: completed, 1: failed, 3: cancelled
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Urgency {
    Low,
    Medium,
    High,
    Critical,
}

impl From<Urgency> for Priority {
    fn from(urgency: Urgency) -> Self {
        match urgency {
            Urgency::Low => Self::Low,
            Urgency::Medium => Self::Medium,
            Urgency::High => Self::High,
            Urgency::Critical => Self::Critical,
        }
    }
}

fn within(text: &str) -> Result<u32, String> {
    let seconds = when::seconds(text)?;
    let seconds = u32::try_from(seconds).ok();
    let seconds = seconds.filter(|seconds| (1..=WITHIN_SECONDS_MAX).contains(seconds));
    seconds.ok_or_else(|| format!("expected 1 to {WITHIN_SECONDS_MAX} seconds, which are a year"))
}

impl Args {
    fn message(self) -> TaskMessage {
        let clock = clock();
        let now = clock.now();
        let id = self.id;
        TaskMessage {
            task_id: id.unwrap_or_else(|| format!("task_{}_{}", self.task_type, clock.uuid())),
            task_type: self.task_type,
            parameters: self.parameters.map(struct_of),
            requester_agent_id: self.agent,
            responder_agent_id: self.to.unwrap_or_default(),
            deadline: self.within.map(|seconds| stamp(now, seconds.into())),
            priority: Priority::from(self.priority).into(),
            metadata: self.metadata.map(struct_of),
            created_at: Some(stamp(now, 0)),
        }
    }

    pub(super) async fn run(self, remote: &Remote, out: &mut Output) -> Result<ExitCode, CliError> {
        let wait = self.wait;
        let message = self.message();
        let (id, agent) = (message.task_id.clone(), message.requester_agent_id.clone());
        let mut client = connected(remote).await?;
        let told = |status| failed(remote, &status);
        let request = PublishTaskRequest {
            task: Some(message),
        };
        client.publish_task(request).await.map_err(told)?;
        if !wait {
            match out.is_json() {
                true => out.value(&json!({"task_id": id}))?,
                false => out.line(&id)?,
            }
            return Ok(ExitCode::SUCCESS);
        }
        let of_task = SubscribeToTaskResultsRequest {
            requester_agent_id: agent,
            task_ids: vec![id],
        };
        let result = awaited(remote, client, of_task).await?;
        match out.is_json() {
            true => out.value(&shown::result(&result))?,
            false => out.line(shown::result_line(&result))?,
        }
        Ok(shown::exit_code(&result))
    }
}

/// The result, over another connection when one ends: the task was accepted, so there will be one.
async fn awaited(
    remote: &Remote,
    mut client: Client,
    of_task: SubscribeToTaskResultsRequest,
) -> Result<TaskResult, CliError> {
    loop {
        let result = async {
            let results = client.subscribe_to_task_results(of_task.clone()).await?;
            results.into_inner().message().await
        };
        match result.await {
            Ok(Some(result)) => return Ok(result),
            Ok(None) => {}
            Err(status) if may_go_on(&status) => {}
            Err(status) => return Err(failed(remote, &status)),
        }
        say("the connection has ended; subscribing again");
        client = loop {
            sleep(PAUSE).await;
            match connected(remote).await {
                Ok(client) => break client,
                Err(CliError::Api(_)) => {}
                Err(error) => return Err(error),
            }
        };
    }
}

//! `taskledger broker`: an agent of the broker by hand. Publishes tasks, is given them, shows results.
//!
//! Owns: the options, how messages are shown (`shown`), the connection over gRPC (`connection`), how results are told
//! until they are answered (`telling`), one file for each command. Talks the wire of agents and nothing else of the
//! server, so what it shows is what they see.

mod connection;
mod publish;
mod results;
mod shown;
mod subscribe;
mod telling;

use super::output::Output;
use super::{ApiError, CliError, Remote};
use clap::Subcommand;
use connection::Connection;
use std::process::ExitCode;
use std::time::Duration;
use taskledger_eventbus::EventBusClient;
use tonic::{Code, Status};

/// Who publishes and subscribes, unless it is said.
const AGENT: &str = "cli";
/// Between two attempts to subscribe again.
const PAUSE: Duration = Duration::from_secs(1);

/// Publish, receive and complete tasks of the agent broker
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger broker publish --type math.add --parameters '{\"a\": 1, \"b\": 2}' --wait
  taskledger broker subscribe --type math.add --result '{\"sum\": 3}'
  taskledger broker subscribe --agent calculator --type 'math.*' -- jq -c '{sum: (.a + .b)}'
  taskledger broker results --agent orchestrator --progress

With authentication, --agent is the user or service of the token, or one of the agents that the token names.")]
pub struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Publish(publish::Args),
    Subscribe(subscribe::Args),
    Results(results::Args),
}

/// A client, connected.
type Client = EventBusClient<Connection>;

/// Does what was asked.
pub async fn broker(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    match args.command {
        Command::Publish(publish) => publish.run(&args.remote, out).await,
        Command::Subscribe(subscribe) => subscribe.run(&args.remote, out).await,
        Command::Results(results) => results.run(&args.remote, out).await,
    }
}

async fn connected(remote: &Remote) -> Result<Client, CliError> {
    let target = remote.target()?;
    let (connection, origin) = connection::open(&target).await?;
    Ok(EventBusClient::with_origin(connection, origin))
}

/// What a status means on the command line.
fn failed(remote: &Remote, status: &Status) -> CliError {
    let text = status.message();
    // It was reached, so it has one.
    let url = remote.url().unwrap_or_default();
    match status.code() {
        Code::Unauthenticated | Code::PermissionDenied => {
            let (number, what) = if status.code() == Code::Unauthenticated {
                (401, "does not take the credentials")
            } else {
                (403, "does not permit this to the credentials")
            };
            CliError::Api(ApiError::Denied {
                status: number,
                text: format!(
                    "{} {what}: {text}; set TASKLEDGER_TOKEN, or give --token-file FILE",
                    url
                ),
            })
        }
        Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded => {
            // What the server has said itself has no cause on this side.
            let what = match std::error::Error::source(status) {
                Some(_) => "gave no answer",
                None => "cannot do it now",
            };
            CliError::Api(ApiError::Connection(format!("{url} {what}: {text}")))
        }
        Code::InvalidArgument
        | Code::AlreadyExists
        | Code::NotFound
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::ResourceExhausted
        | Code::Unimplemented => CliError::Usage(format!("{} refuses it: {text}", url)),
        Code::Ok | Code::Aborted | Code::Internal | Code::DataLoss => {
            CliError::Failed(format!("{} could not do it: {text}", url))
        }
    }
}

/// Whether a stream that ended so may go on over another connection.
fn may_go_on(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal
    )
}

/// A time on the wire, so many seconds after another one.
fn stamp(at: taskledger_domain::Timestamp, seconds: i64) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: at.0.div_euclid(1_000_000) + seconds,
        nanos: i32::try_from(at.0.rem_euclid(1_000_000) * 1000).unwrap_or(0),
    }
}

/// Tells people on standard error.
fn say(text: &str) {
    taskledger_terminal::complain("taskledger broker", &text);
}

/// A JSON object, for clap.
fn object(text: &str) -> Result<serde_json::Map<String, serde_json::Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}

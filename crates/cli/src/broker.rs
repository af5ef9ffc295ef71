//! `taskledger broker`: an agent of the broker by hand. Publishes tasks, is given them, shows results.
//!
//! Owns: the options, how messages are shown (`shown`), the connection over gRPC (`connection`), how results are told
//! until they are answered (`telling`), one file for each command. Talks the wire of agents and nothing else of the
//! server, so what it shows is what they see.

mod client;
mod connection;
mod publish;
mod results;
mod shown;
mod subscribe;
mod telling;

use super::output::Output;
use super::{CliError, Remote};
use clap::Subcommand;
use std::process::ExitCode;

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

/// Does what was asked.
pub async fn broker(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    match args.command {
        Command::Publish(publish) => publish.run(&args.remote, out).await,
        Command::Subscribe(subscribe) => subscribe.run(&args.remote, out).await,
        Command::Results(results) => results.run(&args.remote, out).await,
    }
}

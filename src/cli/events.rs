//! `taskledger events`: the log as it is stored, and what a server tells of it.

mod export;
mod file;
mod import;
mod verify;

use super::CliError;
use crate::store::transfer::{Line, Source};
use clap::Subcommand;
use std::process::ExitCode;
use taskledger_cli::events::{query, tail};
use taskledger_cli::output::Output;
use taskledger_cli::when::When;
use taskledger_domain::Timestamp;

/// Export, import or verify a log; follow and search events of a server
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Export(export::Args),
    Import(import::Args),
    Query(Box<query::Args>),
    Tail(Box<tail::Args>),
    Verify(verify::Args),
}

/// Every event of a source, in order, and behind them the keys that are remembered at `keys_at`; each
/// with the text of its line.
async fn lines(
    source: &mut dyn Source,
    keys_at: Option<Timestamp>,
    mut put: impl FnMut(&Line, &str) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let failed = |e| CliError::failed(&e);
    let mut put = |line: Line| put(&line, &line.text());
    loop {
        let page = source.events().await.map_err(failed)?;
        if page.is_empty() {
            break;
        }
        page.into_iter().try_for_each(&mut put)?;
    }
    let Some(now) = keys_at else { return Ok(()) };
    loop {
        let page = source.keys(now).await.map_err(failed)?;
        if page.is_empty() {
            return Ok(());
        }
        page.into_iter().map(Line::Key).try_for_each(&mut put)?;
    }
}

/// Runs one of them.
pub(super) async fn events(
    args: Args,
    when: &When,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    match args.command {
        Command::Export(args) => export::export(args, out).await,
        Command::Import(args) => import::import(args, out).await,
        Command::Query(args) => query::query(*args, when, out).await,
        Command::Tail(args) => tail::tail(*args, when, out).await,
        Command::Verify(args) => verify::verify(args, out).await,
    }
}

#[cfg(test)]
mod tests {
    use crate::application::api::EventType;
    use taskledger_cli::events::TYPES;

    #[test]
    fn every_type_of_event_is_completed() {
        let all = EventType::ALL.iter().map(|it| it.as_str());
        assert_eq!(all.collect::<Vec<_>>(), TYPES);
    }
}

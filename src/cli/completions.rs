//! `taskledger completions`

use super::output::Output;
use super::{Cli, CliError};
use clap::CommandFactory;
use clap_complete::Shell;
use std::process::ExitCode;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger completions bash > ~/.local/share/bash-completion/completions/taskledger
  taskledger completions zsh > ~/.zfunc/_taskledger
  taskledger completions fish > ~/.config/fish/completions/taskledger.fish")]
pub(super) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes the script.
pub(super) fn completions(args: &Args, out: &mut Output) -> Result<ExitCode, CliError> {
    // Into memory first: the generator panics when the reader of a pipe goes away.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "taskledger", &mut script);
    out.bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}

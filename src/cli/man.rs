//! `taskledger man`

use super::{CliError, definition};
use clap::Command;
use clap_mangen::Man;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskledger_cli::output::Output;

/// Write man pages into a folder, one for each command
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger man ~/.local/share/man/man1 && man taskledger-tasks-list

The packages for Debian have them already.")]
pub(super) struct Args {
    /// The folder, created if it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes them.
pub(super) fn man(args: &Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let shown = args.folder.display();
    let unusable = |error: std::io::Error| {
        CliError::Usage(format!(
            "`{shown}` cannot be written to: {error}; expected a folder"
        ))
    };
    std::fs::create_dir_all(&args.folder).map_err(unusable)?;
    let mut program = definition::command().disable_help_subcommand(true);
    program.build();
    pages(&program, &args.folder).map_err(unusable)?;
    if !out.is_json() {
        out.line(format!("man pages are in `{shown}`"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The page of a command, and those of the commands below it. All name the program as their source: by itself a
/// page would
/// name the last word of its command.
fn pages(command: &Command, folder: &Path) -> std::io::Result<()> {
    let inner = command.get_subcommands();
    for command in inner.filter(|inner| !inner.is_hide_set()) {
        pages(command, folder)?;
    }
    let source = concat!("taskledger ", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command.clone()).source(source);
    page.generate_to(folder).map(drop)
}

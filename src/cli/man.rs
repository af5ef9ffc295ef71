//! `taskledger man`

use super::output::Output;
use super::{CliError, definition};
use std::path::PathBuf;
use std::process::ExitCode;

/// Write man pages into a folder, one for each command
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger man ~/.local/share/man/man1 && man taskledger-tasks-list

The packages for Debian have them already.")]
pub(super) struct Args {
    /// The folder, which is made if there is none
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
    clap_mangen::generate_to(definition::command(), &args.folder).map_err(unusable)?;
    if !out.is_json() {
        out.line(format!("man pages are in `{shown}`"))?;
    }
    Ok(ExitCode::SUCCESS)
}

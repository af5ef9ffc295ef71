//! `taskledger completions`

use super::CliError;
use super::complete::VARIABLE;
use super::output::Output;
use clap_complete::Shell;
use clap_complete::env::Shells;
use std::process::ExitCode;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger completions bash > ~/.local/share/bash-completion/completions/taskledger
  taskledger completions zsh > ~/.zfunc/_taskledger
  taskledger completions fish > ~/.config/fish/completions/taskledger.fish

The script calls `taskledger` for what is completed: commands, options, ids, methods and contexts. Write it anew after an
upgrade. Ids come from the server that the line names; one that does not answer within 0.3 s completes nothing.")]
pub(super) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// What the file of a completion that zsh has loaded by its name does at once.
const ZSH_FIRST: &str = "\nif [[ \"${funcstack[1]}\" = _taskledger ]]; then\n    \
                         _clap_dynamic_completer_taskledger \"$@\"\nfi\n";

/// Writes the script.
pub(super) fn completions(args: &Args, out: &mut Output) -> Result<ExitCode, CliError> {
    const PROGRAM: &str = "taskledger";
    let shells = Shells::builtins();
    let name = args.shell.to_string();
    let completer = shells.completer(&name);
    let completer =
        completer.ok_or_else(|| CliError::Usage(format!("there is no completion for `{name}`")))?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    if args.shell == Shell::Zsh {
        // The first time, zsh runs the file as the function that completes.
        script.extend_from_slice(ZSH_FIRST.as_bytes());
    }
    out.bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}

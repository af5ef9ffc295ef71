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

/// The page of a command, and those of the commands below it. All name the program as their source: by itself a page
/// would name the last word of its command.
fn pages(command: &Command, folder: &Path) -> std::io::Result<()> {
    let inner = command.get_subcommands();
    for command in inner.filter(|inner| !inner.is_hide_set()) {
        pages(command, folder)?;
    }
    let source = concat!("taskledger ", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command.clone()).source(source);
    page.generate_to(folder).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    /// The commands below `command` with the names of their pages.
    fn named(command: &Command, name: &str, found: &mut Vec<(String, Vec<String>)>) {
        let is_shown = |arg: &&Arg| !arg.is_hide_set();
        let options = command.get_arguments().filter(is_shown);
        let options = options.filter_map(|arg| Some(format!("\\-\\-{}", arg.get_long()?)));
        // In pages a hyphen of an option is one that is not broken at.
        let options = options.map(|option| option.replace("\\-", "-").replace('-', "\\-"));
        found.push((format!("{name}.1"), options.collect()));
        let inner = command.get_subcommands();
        for inner in inner.filter(|inner| !inner.is_hide_set()) {
            named(inner, &format!("{name}-{}", inner.get_name()), found);
        }
    }

    #[test]
    fn every_command_has_a_page_with_all_its_options() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let args = Args {
            folder: folder.path().to_owned(),
        };
        let mut out = Output::to(Box::new(Vec::new()), false, false);
        man(&args, &mut out).expect("the pages are written");
        let mut program = definition::command().disable_help_subcommand(true);
        program.build();
        let mut commands = Vec::new();
        named(&program, "taskledger", &mut commands);
        let files = std::fs::read_dir(folder.path()).expect("the folder is there");
        assert_eq!(files.count(), commands.len(), "no page is of nothing");
        let mut count = 0;
        for (page, options) in commands {
            let text = std::fs::read_to_string(folder.path().join(&page));
            let text = text.unwrap_or_else(|error| panic!("{page}: {error}"));
            for option in options {
                assert!(text.contains(&option), "{page} has no `{option}`");
                count += 1;
            }
        }
        assert!(count > 500, "options are found: {count}");
    }
}

//! `taskledger man`

use super::{CliError, definition};
use clap::{Arg, ArgAction, Command};
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
    let page = command.clone().override_usage(synopsis(command));
    let page = Man::new(page).source(source);
    page.generate_to(folder).map(drop)
}

/// A command with its own options in the order of their sections, each with its value, and with the sections of options
/// that it shares with others.
fn synopsis(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let mut words = vec![name.to_owned()];
    let mut sections: Vec<String> = Vec::new();
    let shown = |arg: &&Arg| {
        let only_tells = matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        );
        !arg.is_hide_set() && !only_tells
    };
    let options = command.get_arguments().filter(|arg| !arg.is_positional());
    for arg in options.filter(shown) {
        match arg.get_help_heading() {
            Some(heading) if !arg.is_required_set() => {
                let section = format!("[{} OPTIONS]", heading.to_uppercase());
                if !sections.contains(&section) {
                    sections.push(section);
                }
            }
            Some(_) | None => words.push(option(arg)),
        }
    }
    words.append(&mut sections);
    words.extend(command.get_positionals().filter(shown).map(|arg| {
        let value = format!("{}{}", values(arg), repeats(arg));
        let last = if arg.is_last_set() { "-- " } else { "" };
        optional(format!("{last}{value}"), arg)
    }));
    if command.has_subcommands() {
        let required = command.is_subcommand_required_set();
        words.push(if required { "COMMAND" } else { "[COMMAND]" }.to_owned());
    }
    words.join(" ")
}

fn option(arg: &Arg) -> String {
    let name = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}|--{long}"),
        (None, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => unreachable!("an option has a name"),
    };
    let value = match arg.get_action().takes_values() {
        true => format!(" {}", values(arg)),
        false => String::new(),
    };
    format!("{}{}", optional(name + &value, arg), repeats(arg))
}

/// The names of the values of an argument.
fn values(arg: &Arg) -> String {
    match arg.get_value_names() {
        Some(names) => names.join(" "),
        None => arg.get_id().as_str().to_uppercase(),
    }
}

fn optional(word: String, arg: &Arg) -> String {
    match arg.is_required_set() {
        true => word,
        false => format!("[{word}]"),
    }
}

/// What says that an argument may be repeated.
fn repeats(arg: &Arg) -> &'static str {
    match matches!(arg.get_action(), ArgAction::Append | ArgAction::Count) {
        true => "...",
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_synopsis_has_own_options_with_their_values_before_those_of_all_commands() {
        let mut program = definition::command().disable_help_subcommand(true);
        program.build();
        let command = |names: &[&str]| {
            let mut command = &program;
            for name in names {
                command = command.find_subcommand(name).expect("a command");
            }
            synopsis(command)
        };
        assert_eq!(
            command(&["tasks", "tree"]),
            "taskledger tasks tree [--as-of TIME|POSITION] [--consistency CONSISTENCY] [SERVER OPTIONS] [OUTPUT OPTIONS] ID"
        );
        let list = command(&["tasks", "list"]);
        let begin =
            "taskledger tasks list [--status STATUS] [--user USER] [--label KEY=VALUE]... [--all] ";
        assert!(list.starts_with(begin), "{list}");
        assert!(
            list.ends_with("] [SERVER OPTIONS] [OUTPUT OPTIONS]"),
            "{list}"
        );
        assert!(command(&["tasks"]).ends_with(" COMMAND"));
        let worker = command(&["worker"]);
        assert!(worker.ends_with(" -- PROGRAM..."), "{worker}");
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

//! The definition of the command line as programs use it: for parsing, for completion and for man pages.

use super::Cli;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _, Error, FromArgMatches as _};
use std::ffi::{OsStr, OsString};
use taskledger_cli::complete;

/// All commands, whose values complete themselves, and which take numbers below zero as values: what is wrong with
/// them is said then, instead of that there is no option `-1`.
pub(super) fn command() -> Command {
    refined(Cli::command(), &[])
}

/// Answers a shell that completes, if it is one that has called; then nothing else is to be done. To be called before
/// anything else.
#[must_use]
pub fn answer_shell() -> bool {
    complete::answer_shell(command)
}

fn refined(command: Command, above: &[String]) -> Command {
    let mut path = above.to_vec();
    path.push(command.get_name().to_owned());
    let of_args = path.clone();
    let is_of_server = matches!(path.get(1).map(String::as_str), Some("serve" | "doctor"));
    let help = command
        .get_after_help()
        .map(|help| flowing(&help.to_string()));
    let command = match help {
        Some(help) => command.after_help(help),
        None => command,
    };
    let command = command.mut_args(move |arg| {
        let arg = refined_arg(arg, &of_args);
        match is_of_server {
            true => arg,
            false => without_empty_variable(arg),
        }
    });
    command.mut_subcommands(move |inner| refined(inner, &path))
}

/// Columns at which texts of this program are broken by hand: a line that would have had no room for the next word was.
const BROKEN_AT: usize = 90;

/// A text whose paragraphs are a line each, for whoever shows it to break where there is no more room. Lines that are
/// indented, and those below them, stay as they are.
fn flowing(text: &str) -> String {
    let mut flowing = String::with_capacity(text.len());
    let mut last = "";
    for line in text.lines() {
        let word = line.split(' ').next().unwrap_or_default();
        let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ');
        let goes_on = is_text(last) && is_text(line) && last.len() + 1 + word.len() > BROKEN_AT;
        if !flowing.is_empty() {
            flowing.push(if goes_on { ' ' } else { '\n' });
        }
        flowing.push_str(line);
        last = line;
    }
    flowing
}

fn refined_arg(arg: Arg, path: &[String]) -> Arg {
    let arg = match arg.get_action().takes_values() && !arg.is_positional() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    complete::completed(arg, path)
}

/// The same option, which a variable without a text does not set. Those of a server are refused then, so that it does
/// not start without what its operator wanted to name.
fn without_empty_variable(arg: Arg) -> Arg {
    match arg.get_env().and_then(std::env::var_os) {
        Some(held) if held.is_empty() => arg.env(None::<&str>),
        Some(_) | None => arg,
    }
}

impl Cli {
    /// Reads the arguments of the program; ends it where they are wrong or ask for help.
    #[must_use]
    pub fn from_arguments() -> Self {
        Self::try_from_words(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// Reads arguments, of which the first is the name of the program.
    pub(super) fn try_from_words(
        words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, Error> {
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        let mut command = command();
        let matches = command.try_get_matches_from_mut(words.clone());
        let matches = matches.map_err(|mut error| {
            if let Some(error) = without_value(&error, &mut command, &words) {
                return error;
            }
            say_variable(&mut error, &command);
            let error = with_own_usage(error, words.clone());
            told(error, &mut command, &words)
        })?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

/// The same error, whose usage shows what is needed: not the options that variables give, which nobody has written.
fn with_own_usage(error: Error, words: Vec<OsString>) -> Error {
    fn without_variables(command: Command) -> Command {
        /// No variable has this name.
        const NONE: &str = "";
        let command = command.mut_args(|arg| match arg.get_env() {
            Some(_) => arg.env(NONE),
            None => arg,
        });
        command.mut_subcommands(without_variables)
    }
    if error.get(ContextKind::Usage).is_none() {
        return error;
    }
    let again = without_variables(command()).try_get_matches_from(words);
    match again.err().filter(|again| again.kind() == error.kind()) {
        Some(again) => again,
        None => error,
    }
}

/// Names the variable that an unusable value comes from, in place of the option that nobody has written.
fn say_variable(error: &mut Error, command: &Command) {
    fn of<'c>(command: &'c Command, option: &str, value: &str) -> Option<&'c OsStr> {
        let named = |arg: &&Arg| arg.get_long() == Some(option);
        let args = command.get_arguments().filter(named);
        let mut variables = args.filter_map(Arg::get_env);
        let holds = |name: &&OsStr| std::env::var(name).is_ok_and(|held| held == value);
        let below = || command.get_subcommands();
        variables
            .find(holds)
            .or_else(|| below().find_map(|inner| of(inner, option, value)))
    }
    let (Some(ContextValue::String(arg)), Some(ContextValue::String(value))) = (
        error.get(ContextKind::InvalidArg),
        error.get(ContextKind::InvalidValue),
    ) else {
        return;
    };
    let option = arg.strip_prefix("--").and_then(|arg| arg.split(' ').next());
    let variable = option.and_then(|option| of(command, option, value));
    if let Some(variable) = variable {
        let said = variable.to_string_lossy().into_owned();
        error.insert(ContextKind::InvalidArg, ContextValue::String(said));
    }
}

/// Groups whose commands take secrets.
const GROUPS_WITH_SECRETS: [&str; 3] = ["secrets", "tokens", "webhooks"];

/// The error for a word that has no place in a command that takes secrets: it may be a secret, so it is not repeated.
/// `None`: it is another error.
fn without_value(error: &Error, command: &mut Command, words: &[OsString]) -> Option<Error> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    // An option that is nearly one of the command's own is repeated by clap's suggestion anyhow.
    if error.get(ContextKind::SuggestedArg).is_some() {
        return None;
    }
    let group = words.iter().skip(1).filter_map(|word| word.to_str());
    let mut group = group.filter(|word| command.find_subcommand(word).is_some());
    let group = group.next().filter(|it| GROUPS_WITH_SECRETS.contains(it))?;
    let reason = format!(
        "an argument is unexpected; it is not shown, because it may be a secret. `taskledger {group} --help` lists what \
         is accepted; `secrets set NAME` reads the value from standard input: `taskledger secrets set NAME < FILE`"
    );
    Some(command.error(ErrorKind::UnknownArgument, reason))
}

/// Groups that are suggested for a word that is no command.
const GROUPS_MAX: usize = 4;

/// The same error, in words that help where clap's do not: an unknown command with those that are probably meant
/// ([`say_groups_with`]), and a negative value of an option with what is expected, where clap says "invalid digit".
fn told(mut error: Error, command: &mut Command, words: &[OsString]) -> Error {
    if error.kind() == ErrorKind::InvalidSubcommand {
        say_groups_with(&mut error, command, words);
        return error;
    }
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(_) | None => None,
    };
    let negative = |value: &String| value.strip_prefix('-')?.parse::<f64>().ok();
    let (Some(value), Some(arg)) = (
        text(ContextKind::InvalidValue).filter(|value| negative(value).is_some()),
        text(ContextKind::InvalidArg),
    ) else {
        return error;
    };
    if error.kind() != ErrorKind::ValueValidation || !error.to_string().contains("invalid digit") {
        return error;
    }
    let said =
        format!("invalid value '{value}' for '{arg}': expected a number that is not negative");
    command.error(ErrorKind::ValueValidation, said)
}

/// Words that mean nearly the same, of which groups have one or two.
const MEANINGS: [&[&str]; 3] = [
    &["list", "get", "show", "ls", "describe", "info"],
    &["remove", "delete", "revoke", "rm"],
    &["add", "create", "save", "set", "new"],
];

/// Suggests commands for an unknown one. Below a group, such as `tokens delete`: the commands of that group that mean
/// nearly the same ([`MEANINGS`]), here `tokens revoke`. At the top, such as `list`: the groups that have a command of
/// this name, here `tasks list` and others, up to [`GROUPS_MAX`].
fn say_groups_with(error: &mut Error, command: &Command, words: &[OsString]) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    // The group that was named, if it is one: words of others do not help there.
    let group = words.iter().skip(1).filter_map(|word| word.to_str());
    let group = group
        .take_while(|given| given != word)
        .find_map(|name| command.find_subcommand(name));
    if let Some(group) = group {
        let same = MEANINGS.iter().find(|words| words.contains(&word.as_str()));
        let found = same.into_iter().flat_map(|words| words.iter());
        let found = found.filter(|other| group.find_subcommand(other).is_some());
        let names: Vec<String> = found
            .map(|other| format!("{} {} {other}", command.get_name(), group.get_name()))
            .collect();
        if !names.is_empty() {
            error.insert(
                ContextKind::SuggestedSubcommand,
                ContextValue::Strings(names),
            );
        }
        return;
    }
    let groups = command.get_subcommands();
    let found = groups.filter(|group| group.find_subcommand(word).is_some());
    let names: Vec<String> = found
        .take(GROUPS_MAX)
        .map(|group| format!("{} {} {word}", command.get_name(), group.get_name()))
        .collect();
    if !names.is_empty() {
        // In place of words that only look similar.
        error.insert(
            ContextKind::SuggestedSubcommand,
            ContextValue::Strings(names),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap_complete::engine::ArgValueCompleter;

    #[test]
    fn the_refined_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn paragraphs_are_one_line_each() {
        let long = "word ".repeat(19);
        let text =
            format!("Examples:\n  {long}\n  two\n\n{long}end of\nit.\nExit codes: 0\n{long}.");
        let shown = flowing(&text);
        assert_eq!(
            shown,
            format!("Examples:\n  {long}\n  two\n\n{long}end of it.\nExit codes: 0\n{long}.")
        );
        fn all(command: &Command, found: &mut Vec<String>) {
            let help = command.get_after_help().map(ToString::to_string);
            found.extend(help.iter().flat_map(|help| help.lines()).map(str::to_owned));
            command
                .get_subcommands()
                .for_each(|inner| all(inner, found));
        }
        let mut lines = Vec::new();
        all(&command(), &mut lines);
        let line = "On a terminal, a flow is shown as a tree that is updated in place, and a server as one line per flow, newest";
        assert!(lines.iter().any(|it| it.starts_with(line)), "{lines:#?}");
    }

    #[test]
    fn options_of_a_command_itself_come_first_in_its_help() {
        /// What names a server and is shown to it, with the name that `webhooks` gives one of them.
        const SERVER: [&str; 10] = [
            "url",
            "token-file",
            "insecure-token",
            "client-cert",
            "client-key",
            "ca-file",
            "context",
            "proxy",
            "header",
            "request-header",
        ];
        fn check(command: &mut Command, above: &str, checked: &mut usize) {
            let path = format!("{above} {}", command.get_name());
            for arg in command.get_arguments() {
                let name = arg.get_long().unwrap_or(arg.get_id().as_str());
                match arg.get_help_heading() {
                    Some("Server") => assert!(SERVER.contains(&name), "{path}: {name}"),
                    Some("Output") => {
                        assert!(["json", "color", "time"].contains(&name), "{path}: {name}");
                    }
                    heading => assert_eq!(heading, None, "{path}: {name}"),
                }
            }
            let help = command.render_help().to_string();
            let place = |heading: &str| help.find(&format!("\n{heading}:\n"));
            if let (Some(own), Some(server)) = (place("Options"), place("Server")) {
                assert!(own < server, "{path}: {help}");
                *checked += 1;
            }
            for inner in command.get_subcommands_mut() {
                check(inner, &path, checked);
            }
        }
        let (mut command, mut checked) = (command(), 0);
        command.build();
        check(&mut command, "", &mut checked);
        assert!(checked > 40, "commands that talk to a server: {checked}");
    }

    /// What a shell is offered behind these words.
    fn offered(words: &[String], begun: &str) -> Vec<String> {
        let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
        words.push(begun.into());
        let at = words.len() - 1;
        let found = clap_complete::engine::complete(&mut command(), words, at, None);
        let found = found.expect("nothing is read");
        let text = |value: &OsStr| value.to_string_lossy().into_owned();
        found.iter().map(|it| text(it.get_value())).collect()
    }

    #[test]
    fn every_command_and_every_option_is_completed() {
        fn check(command: &Command, path: &[String]) -> usize {
            let is_shown = |arg: &&Arg| !arg.is_hide_set();
            let options = command.get_arguments().filter(is_shown);
            let options = options.filter_map(|arg| Some(format!("--{}", arg.get_long()?)));
            let inner = command
                .get_subcommands()
                .filter(|inner| !inner.is_hide_set());
            let (options, inner): (Vec<_>, Vec<_>) = (options.collect(), inner.collect());
            let (long, words) = (offered(path, "--"), offered(path, ""));
            for option in &options {
                assert!(long.contains(option), "{path:?}: `{option}` in {long:?}");
            }
            for inner in &inner {
                let name = inner.get_name().to_owned();
                assert!(words.contains(&name), "{path:?}: `{name}` in {words:?}");
            }
            let below = inner.iter().map(|inner| {
                let path = [path, &[inner.get_name().to_owned()]].concat();
                check(inner, &path)
            });
            options.len() + below.sum::<usize>()
        }
        let count = check(&Cli::command(), &["taskledger".to_owned()]);
        assert!(count > 300, "options are found: {count}");
    }

    #[test]
    fn a_word_of_which_only_groups_have_a_command_names_those() {
        let error = |line: &str| {
            let words = std::iter::once("taskledger").chain(line.split(' '));
            Cli::try_from_words(words).unwrap_err().to_string()
        };
        let told = error("create x");
        assert!(
            told.contains("exist: 'taskledger tasks create', 'taskledger schedules create',"),
            "{told}"
        );
        assert!(!error("nonsense").contains("tip"));
        for (line, meant) in [
            ("context show", "taskledger context list"),
            ("context delete x", "taskledger context remove"),
            ("--json webhooks show x", "taskledger webhooks get"),
        ] {
            let told = error(line);
            assert!(told.contains(&format!("'{meant}'")), "{told}");
            assert!(
                !told.contains("workflows") && !told.contains("tasks delete"),
                "{told}"
            );
        }
        assert!(error("task list").contains("exists: 'tasks'"));
    }

    #[test]
    fn a_number_below_zero_is_said_to_be_none_that_is_expected() {
        for (line, said) in [
            ("tasks list --limit -1", "-1 is not in 1..=1000"),
            (
                "tasks list --offset -1",
                "invalid value '-1' for '--offset <OFFSET>': expected a number that is not negative",
            ),
            (
                "events export --after -7",
                "expected a number that is not negative",
            ),
            ("tasks list --priority -1", "-1 is not in 0..=3"),
        ] {
            let words = std::iter::once("taskledger").chain(line.split(' '));
            let error = Cli::try_from_words(words).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ValueValidation, "{line}");
            assert!(error.to_string().contains(said), "{line}: {error}");
        }
    }

    #[test]
    fn an_unexpected_argument_that_may_be_a_secret_is_not_repeated() {
        for line in [
            "secrets set NAME hunter2-secret",
            "secrets set NAME --value=hunter2-secret",
            "secrets set NAME -zhunter2-secret",
            "--url http://127.0.0.1:1 secrets set NAME hunter2-secret",
            "webhooks list hunter2-secret",
            "tokens list NAME hunter2-secret",
        ] {
            let words = std::iter::once("taskledger").chain(line.split(' '));
            let error = Cli::try_from_words(words).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnknownArgument, "{line}: {error}");
            assert!(!error.to_string().contains("hunter2"), "{line}: {error}");
        }
        let error = Cli::try_from_words(["taskledger", "tasks", "list", "extra"]).unwrap_err();
        assert!(error.to_string().contains("extra"), "{error}");
    }

    #[test]
    fn what_completes_itself_is_named_by_the_definitions() {
        let command = command();
        for path in [
            &["tasks", "get", "task_id"][..],
            &["tasks", "list", "parent"],
            &["tasks", "create", "method"],
            &["watch", "id"],
            &["respond", "task_id"],
            &["events", "tail", "flow"],
            &["webhooks", "get", "id"],
            &["workers", "undeclare", "method"],
            &["worker", "methods"],
            &["context", "remove", "name"],
        ] {
            let (id, path) = path.split_last().unwrap();
            let inner = path.iter().fold(&command, |command, name| {
                command
                    .find_subcommand(name)
                    .unwrap_or_else(|| panic!("{name}"))
            });
            let arg = inner.get_arguments().find(|arg| arg.get_id() == *id);
            let arg = arg.unwrap_or_else(|| panic!("{path:?} {id}"));
            assert!(arg.get::<ArgValueCompleter>().is_some(), "{path:?} {id}");
        }
    }
}

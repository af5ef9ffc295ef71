//! `taskledger secrets`: secrets that tasks name instead of holding them.
//!
//! Owns: the calls `secrets.*`. A value is read from standard input, never from an argument, which others on the
//! machine can see, and never from a terminal, which shows what is typed.

use super::input::read_text;
use super::local::Either;
use super::output::{Column, Output, Text, list as listed, member, show_table, time};
use super::request::{Params, Request};
use super::{CliError, Remote};
use clap::Subcommand;
use serde_json::Value;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

/// Store secrets that tasks name in their inputs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger secrets set github-token < token.txt
  pass show github | taskledger secrets set github-token
  taskledger secrets list

A task names a secret as {\"$secret\": \"github-token\"}, as the value of a header or in `auth` of http_executor
and a2a_executor, or as the value of a variable in `env` of command_executor.")]
pub struct Args<Local: Subcommand> {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Either<Command, Local>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Store the text on standard input as a secret, or replace one; a line break at its end is removed
    Set(One),
    /// List the names of secrets
    List(Owner),
    /// Delete a secret
    Delete(One),
}

#[derive(Debug, clap::Args)]
struct One {
    /// The secret: letters, digits, `_`, `-` and `.`
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    owner: Owner,
}

#[derive(Debug, clap::Args)]
struct Owner {
    /// The user whose flows may use it; default: you; empty: flows without a user
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
}

impl Command {
    fn request(
        self,
        value: impl FnOnce() -> Result<String, CliError>,
    ) -> Result<Request, CliError> {
        Ok(match self {
            Self::Set(one) => Request {
                method: "secrets.set",
                params: Params::default()
                    .with("name", one.name)
                    .with("value", value()?)
                    .maybe("owner", one.owner.owner)
                    .build(),
                show: set,
            },
            Self::List(owner) => Request {
                method: "secrets.list",
                params: Params::default().maybe("owner", owner.owner).build(),
                show: list,
            },
            Self::Delete(one) => Request {
                method: "secrets.delete",
                params: Params::default()
                    .with("name", one.name)
                    .maybe("owner", one.owner.owner)
                    .build(),
                show: deleted,
            },
        })
    }
}

/// Does what was asked and shows the result. `locally` does what needs no server.
pub async fn secrets<Local: Subcommand>(
    args: Args<Local>,
    out: &mut Output,
    locally: impl AsyncFnOnce(Local, &mut Output) -> Result<ExitCode, CliError>,
) -> Result<ExitCode, CliError> {
    match args.command {
        Either::Remote(command) => remotely(command, &args.remote, out).await,
        Either::Local(command) => locally(command, out).await,
    }
}

async fn remotely(
    command: Command,
    remote: &Remote,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let request = command.request(value)?;
    request.answered(remote, out).await?;
    Ok(ExitCode::SUCCESS)
}

/// The value on standard input.
fn value() -> Result<String, CliError> {
    if io::stdin().is_terminal() {
        let text = "the value is read from standard input, for example \
                    `taskledger secrets set NAME < file`";
        return Err(CliError::Usage(text.to_owned()));
    }
    let text = read_text("-").map_err(|error| {
        CliError::Usage(format!(
            "cannot read the value from standard input: {error}"
        ))
    })?;
    Ok(without_line_break(&text).to_owned())
}

/// What `echo` and editors add is no part of a secret.
fn without_line_break(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

fn set(result: &Value, out: &mut Output) -> io::Result<()> {
    let (name, at) = (member(result, "name"), member(result, "updated_at"));
    out.line(format!("{name} set at {}", out.sentence(&at)))
}

fn list(result: &Value, out: &mut Output) -> io::Result<()> {
    let columns = [
        Column::whole("NAME"),
        Column::whole("CREATED").extra(),
        Column::whole("UPDATED").extra(),
    ];
    let row = |secret: &Value| {
        vec![
            Text::from(member(secret, "name")),
            time(out, secret, "created_at"),
            time(out, secret, "updated_at"),
        ]
    };
    let rows: Vec<_> = listed(result, "secrets").iter().map(row).collect();
    show_table(&columns, &rows, out)
}

fn deleted(_: &Value, out: &mut Output) -> io::Result<()> {
    out.line("deleted")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_comes_from_standard_input_and_not_from_an_argument() {
        let one = One {
            name: "a".to_owned(),
            owner: Owner {
                owner: Some("ann".to_owned()),
            },
        };
        let request = Command::Set(one).request(|| Ok("hunter2-hunter2".to_owned()));
        let request = request.expect("a request");
        assert_eq!(request.method, "secrets.set");
        let expected = json!({"name": "a", "value": "hunter2-hunter2", "owner": "ann"});
        assert_eq!(request.params, expected);
    }

    #[test]
    fn one_line_break_at_the_end_is_left_out() {
        for (text, value) in [
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            ("a b ", "a b "),
        ] {
            assert_eq!(without_line_break(text), value);
        }
    }
}

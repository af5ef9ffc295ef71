//! `taskledger tokens`, `whoami` and `audit`: who may do what, and who did.
//!
//! Owns: the calls `tokens.*`, `system.whoami` and `audit.list`, one command each, and how answers are shown.
//! With `--data-dir` or `--database-url` they work on the store itself, beside a server that does not run: the
//! way back in for whoever has lost the last token. Secrets go to standard output, once.

mod audit;
mod change;
mod create;
mod deny;
mod list;
mod place;
mod time;
mod whoami;

use super::CliError;
use clap::Subcommand;
use place::Place;
use serde_json::Value;
use std::io;
use std::process::ExitCode;
use taskledger_auth::Token;
use taskledger_cli::following::say;
use taskledger_cli::nothing::shown_or_said;
use taskledger_cli::output::{Output, member, only, printable, say_next_page};
use taskledger_cli::request::{Params, Request};
use taskledger_cli::when::When;

/// Create, list, rotate and revoke tokens
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tokens create ci --service --scopes tasks:read,tasks:run
  taskledger tokens create ann --scopes tasks:read --expires-in 30d --json
  taskledger tokens list
  taskledger tokens rotate ab23cd45ef67gh2j --grace 1h
  taskledger tokens revoke ab23cd45ef67gh2j
  taskledger tokens deny https://login.example.com --sub ann
  taskledger tokens create admin --service --scopes all --data-dir ./taskledger-data

The last one needs no token: it writes into the data folder of a stopped server, or with --database-url into
a database, whose servers may be running.")]
pub(super) struct Args {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(create::Args),
    List(list::Args),
    Rotate(change::Rotate),
    /// End a token with all of its secrets
    Revoke(change::One),
    Deny(deny::Args),
    /// Print a new token that is not stored, for `serve --admin-token-file`
    Generate,
}

/// Does what was asked and shows the result.
pub(super) async fn tokens(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let request = match args.command {
        Command::Create(args) => args.request(),
        Command::List(args) => args.request(),
        Command::Rotate(args) => args.request(),
        Command::Revoke(args) => args.request("tokens.revoke"),
        Command::Deny(args) => args.request(),
        Command::Generate => {
            let token = Token::fresh(&*super::storage::clock());
            out.line(token.reveal())?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    answered(args.place, request, out).await
}

/// Show the principal and the scopes of the credentials
#[derive(Debug, clap::Args)]
pub(super) struct WhoAmI {
    #[command(flatten)]
    remote: super::Remote,
}

/// Asks the server and shows the answer.
pub(super) async fn whoami(args: WhoAmI, out: &mut Output) -> Result<ExitCode, CliError> {
    answered(Place::of(args.remote), whoami::request(), out).await
}

/// Show the audit log: changes of tokens and secrets, failed logins, reads of other users' flows, and more
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger audit
  taskledger audit --principal user:ann --since yesterday
  taskledger audit --action login.failed --json
  taskledger audit --data-dir ./taskledger-data")]
pub(super) struct Audit {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    filter: audit::Args,
}

/// Reads the audit log and shows it.
pub(super) async fn audit(
    args: Audit,
    when: &When,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let of_principal = args.filter.of_principal();
    let mut request = args.filter.request();
    let asked = request.params.clone();
    when.resolve_in(&mut request.params, &["since", "until"])?;
    let resolved = request.params.clone();
    let store = args.place.store_option();
    let opened = args.place.open().await?;
    out.calls_with(format!("{}{store}", opened.api().options()));
    let called = opened.api().call(request.method, request.params).await;
    let is_empty = called.as_ref().is_ok_and(audit::is_empty);
    let is_told = is_empty && !out.is_json();
    let named = match of_principal.filter(|_| is_told) {
        Some((principal, any)) => {
            let page = opened.api().call(any.method, any.params).await;
            Some((principal, page))
        }
        None => None,
    };
    opened.close().await;
    let result = called?;
    let nobody = match named {
        Some((principal, page)) => audit::is_empty(&page?).then_some(principal),
        None => None,
    };
    match nobody {
        Some(principal) => say(&format!("no entry names `{}`", printable(&principal))),
        None => shown_or_said(request.method, &asked, &result, request.show, out)?,
    }
    if !out.is_json() && !audit::is_empty(&result) {
        say_next_page(audit::next(&resolved, &result, out), out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the call and shows the result.
async fn answered(place: Place, request: Request, out: &mut Output) -> Result<ExitCode, CliError> {
    let opened = place.open().await?;
    out.calls_with(opened.api().options().to_owned());
    let asked = request.params.clone();
    let called = opened.api().call(request.method, request.params).await;
    opened.close().await;
    shown_or_said(request.method, &asked, &called?, request.show, out)?;
    Ok(ExitCode::SUCCESS)
}

/// A token; its secret, if it is there, at the end.
fn show(token: &Value, out: &mut Output) -> io::Result<()> {
    const MEMBERS: [&str; 14] = [
        "id",
        "kind",
        "name",
        "scopes",
        "methods",
        "agents",
        "note",
        "state",
        "created_at",
        "rotated_at",
        "previous_until",
        "expires_at",
        "revoked_at",
        "last_used_at",
    ];
    only(token, &MEMBERS, out)?;
    let secret = member(token, "token");
    if secret.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.line(format!("token            {secret}"))?;
    out.line("Keep it: it is shown now and never again.")
}
